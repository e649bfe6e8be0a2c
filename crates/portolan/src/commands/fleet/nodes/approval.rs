//! `portolan fleet nodes approve|deny|pending|remove|revoke`: which machines may be nodes.

use portolan_server::FleetMethod;
use serde_json::Value;

use super::ask;
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::ConnectionArgs;
use crate::commands::fleet::join_token::labels;
use crate::commands::fleet::shown;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

const PATH: &str = "/api/v1alpha/enrolments";

/// Make a waiting machine a node
///
/// Compare the fingerprint with the one that the agent prints on the machine. A node that has the name already is deleted: the new
/// key gets nothing of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes pending
  portolan fleet nodes approve sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")]
pub(super) struct KeyArgs {
    /// The fingerprint of the machine's key
    #[arg(value_name = "FINGERPRINT")]
    fingerprint: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// List machines that wait for approval
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes pending
  portolan fleet nodes pending -o json")]
pub(super) struct PendingArgs {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: PendingFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of waiting machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PendingFormat {
    /// Columns
    Table,
    /// The server's answer
    Json,
}

/// Make all certificates of a node useless, and cut its connections
///
/// The machine can come back with a new key and an approval only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes revoke web-3")]
pub(super) struct RevokeArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn approve(args: &KeyArgs, app: &App) -> CommandResult {
    let path = format!("{PATH}/{}/approve", args.fingerprint);
    let client = args.connection.connect()?;
    let answer = ask(&client, FleetMethod::Post, &path, app)?;
    done(&answer["name"], "approved", app)
}

pub(super) fn deny(args: &KeyArgs, app: &App) -> CommandResult {
    let path = format!("{PATH}/{}", args.fingerprint);
    let client = args.connection.connect()?;
    let answer = ask(&client, FleetMethod::Delete, &path, app)?;
    done(&answer["name"], "denied", app)
}

pub(super) fn pending(args: &PendingArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let answer = ask(&client, FleetMethod::Get, PATH, app)?;
    app.printer.data(match args.output {
        PendingFormat::Json => format!("{answer:#}\n"),
        PendingFormat::Table => table(&answer).render(app.printer.canvas()),
    })?;
    Ok(ExitStatus::Clean)
}

pub(super) fn remove(args: &RevokeArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let path = format!("/api/v1alpha/nodes/{}", args.name);
    ask(&client, FleetMethod::Post, &format!("{path}/revoke"), app)?;
    ask(&client, FleetMethod::Delete, &path, app)?;
    done(&args.name.as_str().into(), "removed", app)
}

pub(super) fn revoke(args: &RevokeArgs, app: &App) -> CommandResult {
    let path = format!("/api/v1alpha/nodes/{}/revoke", args.name);
    let client = args.connection.connect()?;
    ask(&client, FleetMethod::Post, &path, app)?;
    done(&args.name.as_str().into(), "revoked", app)
}

/// Says what became of a node.
fn done(name: &Value, what: &str, app: &App) -> CommandResult {
    let name = name.as_str().unwrap_or_default();
    app.printer.data(format!("node/{name} {what}\n"))?;
    Ok(ExitStatus::Clean)
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(["NAME", "FINGERPRINT", "ADDRESS", "LABELS", "AGE"]);
    for one in answer["items"].as_array().into_iter().flatten() {
        table.push(vec![
            Cell::name(shown::text(one, "name")),
            Cell::whole(shown::text(one, "fingerprint")),
            Cell::from(shown::text(one, "address")),
            Cell::from(labels(&one["labels"])),
            Cell::from(shown::age(&shown::text(one, "requested"))),
        ]);
    }
    table
}
