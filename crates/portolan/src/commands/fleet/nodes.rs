//! `portolan fleet nodes`: which machines may be nodes.

use portolan_server::{FleetClient, FleetMethod};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::join_token::labels;
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

const PATH: &str = "/api/v1alpha/enrolments";

/// Approve machines that want to be nodes, and throw nodes out
///
/// A machine waits for approval when it has no join token, or wants a name that another key has.
#[derive(Debug, clap::Args)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    command: NodesCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NodesCommand {
    /// Make a waiting machine a node
    Approve(Later<KeyArgs>),
    /// Forget a waiting machine
    Deny(Later<KeyArgs>),
    /// List machines that wait for approval
    Pending(Later<PendingArgs>),
    /// Make all certificates of a node useless, and cut its connections
    Revoke(Later<RevokeArgs>),
}

/// Make a waiting machine a node
///
/// Compare the fingerprint with the one that the agent prints on the machine. A node that has the name already is deleted: the new
/// key gets nothing of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes pending
  portolan fleet nodes approve sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")]
struct KeyArgs {
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
struct PendingArgs {
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
struct RevokeArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn nodes(args: &NodesArgs, app: &App) -> CommandResult {
    match &args.command {
        NodesCommand::Approve(args) => {
            let path = format!("{PATH}/{}/approve", args.fingerprint);
            let client = args.connection.connect()?;
            let answer = ask(&client, FleetMethod::Post, &path, app)?;
            let name = answer["name"].as_str().unwrap_or_default();
            app.printer.data(format!("node/{name} approved\n"))?;
        }
        NodesCommand::Deny(args) => {
            let path = format!("{PATH}/{}", args.fingerprint);
            let client = args.connection.connect()?;
            let answer = ask(&client, FleetMethod::Delete, &path, app)?;
            let name = answer["name"].as_str().unwrap_or_default();
            app.printer.data(format!("node/{name} denied\n"))?;
        }
        NodesCommand::Pending(args) => {
            let client = args.connection.connect()?;
            let answer = ask(&client, FleetMethod::Get, PATH, app)?;
            app.printer.data(match args.output {
                PendingFormat::Json => format!("{answer:#}\n"),
                PendingFormat::Table => table(&answer).render(app.printer.canvas()),
            })?;
        }
        NodesCommand::Revoke(args) => {
            let path = format!("/api/v1alpha/nodes/{}/revoke", args.name);
            let client = args.connection.connect()?;
            ask(&client, FleetMethod::Post, &path, app)?;
            app.printer.data(format!("node/{} revoked\n", args.name))?;
        }
    }
    Ok(ExitStatus::Clean)
}

fn ask(
    client: &FleetClient,
    method: FleetMethod,
    path: &str,
    app: &App,
) -> Result<Value, CommandError> {
    let asked = client.request(method, path, &[], None);
    app.runtime()?.block_on(asked).map_err(told)
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
