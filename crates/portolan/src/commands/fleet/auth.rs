//! `portolan fleet auth`: rights, tokens and certificates.

mod certificate;
mod token;

use portolan_server::FleetMethod;
use serde_json::{Value, json};

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};
use certificate::CertificateArgs;
use token::TokenArgs;

/// Ask what you may do, and make tokens and certificates
#[derive(Debug, clap::Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuthCommand {
    /// Say whether you may do something
    CanI(Later<CanIArgs>),
    /// Make a client certificate
    Certificate(Later<CertificateArgs>),
    /// Make, list and end tokens
    Token(Later<TokenArgs>),
    /// Say why you may do something, or what is missing
    Why(Later<WhyArgs>),
}

/// Say whether you may do something
///
/// Exits with 1 for no.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet auth can-i update variables -n web
  portolan fleet auth can-i --list")]
struct CanIArgs {
    #[command(flatten)]
    action: ActionArgs,

    /// List all your rights
    #[arg(long, conflicts_with_all = ["verb", "kind"], help_heading = "Output")]
    list: bool,
}

/// Say why you may do something, or what is missing
///
/// Exits with 1 if you may not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet auth why read-secret secrets -n web")]
struct WhyArgs {
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, clap::Args)]
struct ActionArgs {
    /// The verb, such as get, update or read-secret
    #[arg(value_name = "VERB")]
    verb: Option<String>,

    /// The kind
    #[arg(value_name = "KIND")]
    kind: Option<String>,

    /// The name of an object
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn auth(args: &AuthArgs, app: &App) -> CommandResult {
    match &args.command {
        AuthCommand::CanI(args) if args.list => list_rights(args, app),
        AuthCommand::CanI(args) => {
            let answer = ask(&args.action, app)?;
            app.printer.data(format!("{}\n", answer.word()))?;
            Ok(answer.status())
        }
        AuthCommand::Why(args) => {
            let answer = ask(&args.action, app)?;
            let because = &answer.because;
            app.printer
                .data(format!("{}: {because}\n", answer.word()))?;
            Ok(answer.status())
        }
        AuthCommand::Certificate(args) => certificate::certificate(args, app),
        AuthCommand::Token(args) => token::token(args, app),
    }
}

/// What the server says about an action.
struct Answer {
    is_allowed: bool,
    because: String,
}

impl Answer {
    fn word(&self) -> &'static str {
        if self.is_allowed { "yes" } else { "no" }
    }

    fn status(&self) -> ExitStatus {
        if self.is_allowed {
            ExitStatus::Clean
        } else {
            ExitStatus::Findings
        }
    }
}

fn ask(args: &ActionArgs, app: &App) -> Result<Answer, CommandError> {
    let (Some(verb), Some(kind)) = (&args.verb, &args.kind) else {
        return Err(CommandError::usage("VERB and KIND are needed"));
    };
    let client = args.connection.connect()?;
    let body = json!({"verb": verb, "kind": kind, "name": args.name, "namespace": args.namespace.namespace});
    let body = body.to_string();
    let asked = client.request(
        FleetMethod::Post,
        "/api/v1alpha/auth/can-i",
        &[],
        Some(&body),
    );
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    Ok(Answer {
        is_allowed: answer["allowed"] == Value::Bool(true),
        because: answer["because"].as_str().unwrap_or_default().to_owned(),
    })
}

fn list_rights(args: &CanIArgs, app: &App) -> CommandResult {
    let client = args.action.connection.connect()?;
    let asked = client.request(FleetMethod::Get, "/api/v1alpha/auth/rights", &[], None);
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    let mut table = Table::new(["NAMESPACE", "KINDS", "VERBS", "NAMES", "BECAUSE"]);
    for right in answer["items"].as_array().into_iter().flatten() {
        let text = |path: &str, empty: &str| {
            let text = shown::text(right, path);
            Cell::from(if text.is_empty() {
                empty.to_owned()
            } else {
                text
            })
        };
        table.push(vec![
            text("namespace", "all"),
            text("kinds", ""),
            text("verbs", ""),
            text("names", "all"),
            text("because", ""),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
    Ok(ExitStatus::Clean)
}
