//! `portolan fleet nodes`: which machines may be nodes, their labels, and whether runs take them.

use portolan_server::{FleetClient, FleetMethod};
use serde_json::{Value, json};

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

/// The label of nodes that new runs leave out.
const DRAINED: &str = "portolan.dev/drained";

/// Approve machines that want to be nodes, label nodes, and remove them
///
/// `portolan fleet get nodes` lists the nodes. A machine waits for approval when it has no join token, or wants a name that another key has.
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
    /// Leave a node out of new runs, or take it in again
    Drain(Later<DrainArgs>),
    /// Set and remove labels of a node
    Label(Later<LabelArgs>),
    /// List machines that wait for approval
    Pending(Later<PendingArgs>),
    /// Delete a node, and make its certificates useless
    Remove(Later<RevokeArgs>),
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

/// Leave a node out of new runs, or take it in again
///
/// Runs that have begun go on. A drained node has the label `portolan.dev/drained`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes drain web-3
  portolan fleet nodes drain web-3 --undo")]
struct DrainArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,

    /// Take the node in again
    #[arg(long, help_heading = "Node")]
    undo: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Set and remove labels of a node
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes label web-3 role=web zone=a
  portolan fleet nodes label web-3 zone-")]
struct LabelArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,

    /// KEY=VALUE sets a label, KEY- removes one
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,

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
        NodesCommand::Drain(args) => {
            let (label, word) = if args.undo {
                (format!("{DRAINED}-"), "takes part in runs again")
            } else {
                (format!("{DRAINED}=true"), "is left out of new runs")
            };
            change_labels(&args.connection, &args.name, &[label], app)?;
            app.printer.data(format!("node/{} {word}\n", args.name))?;
        }
        NodesCommand::Label(args) => {
            change_labels(&args.connection, &args.name, &args.labels, app)?;
            app.printer.data(format!("node/{} labelled\n", args.name))?;
        }
        NodesCommand::Remove(args) => {
            let client = args.connection.connect()?;
            let path = format!("/api/v1alpha/nodes/{}", args.name);
            ask(&client, FleetMethod::Post, &format!("{path}/revoke"), app)?;
            ask(&client, FleetMethod::Delete, &path, app)?;
            app.printer.data(format!("node/{} removed\n", args.name))?;
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

/// Reads a node, changes its labels, and writes it back.
fn change_labels(
    connection: &ConnectionArgs,
    node: &str,
    changes: &[String],
    app: &App,
) -> Result<(), CommandError> {
    let client = connection.connect()?;
    let path = format!("/api/v1alpha/nodes/{node}");
    let mut object = ask(&client, FleetMethod::Get, &path, app)?;
    let metadata = &mut object["metadata"];
    if metadata["labels"].is_null() {
        metadata["labels"] = json!({});
    }
    for change in changes {
        match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) => metadata["labels"][key] = value.into(),
            (None, Some(key)) => {
                if let Some(labels) = metadata["labels"].as_object_mut() {
                    labels.remove(key);
                }
            }
            (None, None) => {
                let message = format!("`{change}` is neither KEY=VALUE nor KEY-");
                return Err(CommandError::usage(message));
            }
        }
    }
    let body = object.to_string();
    let written = client.request(FleetMethod::Put, &path, &[], Some(&body));
    app.wait(written)?.map_err(told)?;
    Ok(())
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
