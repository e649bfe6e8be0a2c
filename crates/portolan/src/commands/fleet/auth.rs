//! `portolan fleet auth`: rights and tokens.

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

/// Ask what you may do, and make tokens
#[derive(Debug, clap::Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuthCommand {
    /// Say whether you may do something
    CanI(Later<CanIArgs>),
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

/// Make, list and end tokens
///
/// A new token is printed once and cannot be read again. You can make tokens for users who have no right that you do not have.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet auth token --user ci --life 720h > ci.token
  portolan fleet auth token --list
  portolan fleet auth token --end 0123456789abcdef")]
struct TokenArgs {
    /// The user that the token is for
    #[arg(long, value_name = "NAME", required_unless_present_any = ["list", "end"], help_heading = "Token")]
    user: Option<String>,

    /// A group of the user
    #[arg(long = "group", value_name = "NAME", help_heading = "Token")]
    groups: Vec<String>,

    /// How long the token works, as in 720h; without it, until it is ended
    #[arg(long, value_name = "TIME", help_heading = "Token")]
    life: Option<String>,

    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "", help_heading = "Token")]
    description: String,

    /// List tokens
    #[arg(long, conflicts_with = "end", help_heading = "Output")]
    list: bool,

    /// End the token with this id
    #[arg(long, value_name = "ID", help_heading = "Token")]
    end: Option<String>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn auth(args: &AuthArgs, app: &App) -> CommandResult {
    match &args.command {
        AuthCommand::CanI(args) if args.list => list_rights(args, app),
        AuthCommand::CanI(args) => {
            let answer = ask(&args.action, app)?;
            let allowed = answer["allowed"] == Value::Bool(true);
            app.printer.data(if allowed { "yes\n" } else { "no\n" })?;
            Ok(if allowed {
                ExitStatus::Clean
            } else {
                ExitStatus::Findings
            })
        }
        AuthCommand::Why(args) => {
            let answer = ask(&args.action, app)?;
            let allowed = answer["allowed"] == Value::Bool(true);
            let because = answer["because"].as_str().unwrap_or_default();
            app.printer.data(format!(
                "{}: {because}\n",
                if allowed { "yes" } else { "no" }
            ))?;
            Ok(if allowed {
                ExitStatus::Clean
            } else {
                ExitStatus::Findings
            })
        }
        AuthCommand::Token(args) => token(args, app),
    }
}

fn ask(args: &ActionArgs, app: &App) -> Result<Value, CommandError> {
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
    app.runtime()?.block_on(asked).map_err(told)
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

fn token(args: &TokenArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    const PATH: &str = "/api/v1alpha/auth/tokens";
    if let Some(id) = &args.end {
        let path = format!("{PATH}/{id}");
        let asked = client.request(FleetMethod::Delete, &path, &[], None);
        app.runtime()?.block_on(asked).map_err(told)?;
        app.printer.data(format!("token {id} ended\n"))?;
        return Ok(ExitStatus::Clean);
    }
    if args.list {
        let asked = client.request(FleetMethod::Get, PATH, &[], None);
        let answer = app.runtime()?.block_on(asked).map_err(told)?;
        let mut table = Table::new(["ID", "USER", "GROUPS", "EXPIRES", "DESCRIPTION"]);
        for one in answer["items"].as_array().into_iter().flatten() {
            let text = |path: &str| Cell::from(shown::text(one, path));
            table.push(vec![
                Cell::name(shown::text(one, "id")),
                text("user"),
                text("groups"),
                text("expires"),
                text("description"),
            ]);
        }
        app.printer.data(table.render(app.printer.canvas()))?;
        return Ok(ExitStatus::Clean);
    }
    let body = json!({"user": args.user, "groups": args.groups, "life": args.life, "description": args.description});
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, PATH, &[], Some(&body));
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    app.printer.data(format!(
        "{}\n",
        answer["token"].as_str().unwrap_or_default()
    ))?;
    Ok(ExitStatus::Clean)
}
