//! `portolan fleet login`: remembers a server.

use portolan_server::{FleetContext, FleetContexts, FleetMethod};

use super::connection::{ConnectionArgs, contexts_file, told};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Remember a server, a token and an authority
///
/// The server is asked whether it knows the token before anything is written. The file of contexts, `portolan/contexts.json` in
/// `XDG_CONFIG_HOME` or `~/.config`, holds the names of files, not the token.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet login --server https://localhost:7443 --token-file data/admin.token --ca-file data/ca.pem
  portolan fleet login production --server https://fleet.example.com:7443 --token-file ~/.fleet-token")]
pub(crate) struct LoginArgs {
    /// The name of the context
    #[arg(value_name = "NAME", default_value = "default")]
    name: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn login(args: &LoginArgs, app: &App) -> CommandResult {
    let (Some(server), Some(token_file)) = (&args.connection.server, &args.connection.token_file)
    else {
        return Err(CommandError::usage("--server and --token-file are needed"));
    };
    let client = args.connection.connect()?;
    let asked = client.request(FleetMethod::Get, "/api/v1alpha/auth/rights", &[], None);
    let rights = app.runtime()?.block_on(asked).map_err(told)?;
    let absolute = |path: &std::path::Path| std::path::absolute(path);
    let context = FleetContext {
        server: server.clone(),
        token_file: Some(absolute(token_file)?),
        ca_file: args
            .connection
            .ca_file
            .as_deref()
            .map(absolute)
            .transpose()?,
    };
    let Some(file) = contexts_file() else {
        let error = CommandError::usage("there is no home directory to remember it in");
        return Err(error.hint("set HOME"));
    };
    let mut contexts = FleetContexts::read(&file).map_err(CommandError::user)?;
    contexts.all.insert(args.name.clone(), context);
    contexts.current = Some(args.name.clone());
    contexts.write(&file).map_err(CommandError::user)?;
    let user = rights["user"].as_str().unwrap_or_default();
    app.printer.say_unless_quiet(&format!(
        "user {user} at {server}, remembered in {}",
        file.display()
    ));
    Ok(ExitStatus::Clean)
}
