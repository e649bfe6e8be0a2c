//! `portolan fleet login`: remembers a server.

use std::path::PathBuf;

use portolan_server::{FleetContext, FleetContexts, FleetMethod};

use super::connection::{ConnectionArgs, by_certificate, connect, contexts_file, told};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Remember a server, a token or certificate, and an authority
///
/// The server is asked whether it knows the token or certificate before anything is written. The file of contexts, `portolan/contexts.json` in
/// `XDG_CONFIG_HOME` or `~/.config`, holds the names of files, never a token or key.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet login --server https://localhost:7443 --token-file data/admin.token --ca-file data/ca.pem
  portolan fleet login production --server https://fleet.example.com:7443 --token-file ~/.fleet-token
  portolan fleet login me --server https://localhost:7443 --certificate-file me.pem --key-file me.key --ca-file data/ca.pem")]
pub(crate) struct LoginArgs {
    /// The name of the context
    #[arg(value_name = "NAME", default_value = "default")]
    name: String,

    /// The file with a client certificate, instead of a token
    #[arg(
        long,
        value_name = "FILE",
        requires = "key_file",
        conflicts_with = "token_file",
        help_heading = "Server"
    )]
    certificate_file: Option<PathBuf>,

    /// The file with the key of the certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "certificate_file",
        help_heading = "Server"
    )]
    key_file: Option<PathBuf>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn login(args: &LoginArgs, app: &App) -> CommandResult {
    let certificate = args.certificate_file.as_ref().zip(args.key_file.as_ref());
    let token_file = args.connection.token_file.as_deref();
    let Some(server) = &args.connection.server else {
        return Err(CommandError::usage("--server is needed"));
    };
    let client = match certificate {
        Some((certificate, key)) => {
            let credential = by_certificate(certificate, key)?;
            connect(server, credential, args.connection.ca_file.as_deref())?
        }
        None if token_file.is_some() => args.connection.connect()?,
        None => {
            let needed = "--token-file is needed, or --certificate-file with --key-file";
            return Err(CommandError::usage(needed));
        }
    };
    let asked = client.request(FleetMethod::Get, "/api/v1alpha/auth/rights", &[], None);
    let rights = app.runtime()?.block_on(asked).map_err(told)?;
    let absolute = |path: &std::path::Path| std::path::absolute(path);
    let context = FleetContext {
        server: server.clone(),
        token_file: token_file.map(absolute).transpose()?,
        certificate: match certificate {
            Some((certificate, key)) => Some((absolute(certificate)?, absolute(key)?)),
            None => None,
        },
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
