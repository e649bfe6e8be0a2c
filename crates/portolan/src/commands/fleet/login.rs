//! `portolan fleet login`: remembers a server.

use portolan_server::FleetMethod;

use super::connection::{ConnectionArgs, Context, Contexts, told};
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
    let context = Context {
        server: server.clone(),
        token_file: Some(absolute(token_file)?),
        ca_file: args
            .connection
            .ca_file
            .as_deref()
            .map(absolute)
            .transpose()?,
    };
    let mut contexts = Contexts::read()?;
    contexts.all.insert(args.name.clone(), context);
    contexts.current = Some(args.name.clone());
    let path = contexts.write()?;
    let user = rights["user"].as_str().unwrap_or_default();
    app.printer.say_unless_quiet(&format!(
        "user {user} at {server}, remembered in {}",
        path.display()
    ));
    Ok(ExitStatus::Clean)
}
