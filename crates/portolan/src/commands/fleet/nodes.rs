//! `portolan fleet nodes`: the nodes, and everything that is done with them.

mod approval;
mod import;
mod labels;

use portolan_server::{FleetClient, FleetMethod, ObjectPath};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::get::print;
use super::object_args::kind_of;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;

/// List nodes, approve machines that want to be nodes, label nodes, and remove them
///
/// Without a command, the nodes are listed. A machine waits for approval when it has no join token, or wants a name that another key has.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  portolan fleet nodes
  portolan fleet nodes -l role=web -o wide
  portolan fleet nodes approve sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
  portolan fleet nodes import inventory.ini"
)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    command: Option<NodesCommand>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum NodesCommand {
    /// Make a waiting machine a node
    Approve(Later<approval::KeyArgs>),
    /// Forget a waiting machine
    Deny(Later<approval::KeyArgs>),
    /// Leave a node out of new runs, or take it in again
    Drain(Later<labels::DrainArgs>),
    /// Make groups of nodes and variables of an inventory of Ansible
    Import(Later<import::ImportArgs>),
    /// Set and remove labels of a node
    Label(Later<labels::LabelArgs>),
    /// List machines that wait for approval
    Pending(Later<approval::PendingArgs>),
    /// Delete a node, and make its certificates useless
    Remove(Later<approval::RevokeArgs>),
    /// Make all certificates of a node useless, and cut its connections
    Revoke(Later<approval::RevokeArgs>),
}

/// Which nodes are listed, and how.
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only nodes with these labels, as in `role=web,zone in (a,b)`
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    selector: Option<String>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn nodes(args: &NodesArgs, app: &App) -> CommandResult {
    let Some(command) = &args.command else {
        return list(&args.list, app);
    };
    match command {
        NodesCommand::Approve(args) => approval::approve(args, app),
        NodesCommand::Deny(args) => approval::deny(args, app),
        NodesCommand::Drain(args) => labels::drain(args, app),
        NodesCommand::Import(args) => import::import(args, app),
        NodesCommand::Label(args) => labels::label(args, app),
        NodesCommand::Pending(args) => approval::pending(args, app),
        NodesCommand::Remove(args) => approval::remove(args, app),
        NodesCommand::Revoke(args) => approval::revoke(args, app),
    }
}

fn list(args: &ListArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let path = ObjectPath {
        kind: kind_of("nodes")?,
        namespace: None,
        name: None,
    };
    let selector = args.selector.as_deref();
    let query: Vec<(&str, &str)> = selector
        .map(|text| ("labelSelector", text))
        .into_iter()
        .collect();
    let (nodes, _) = app.wait(client.list(&path, &query))?.map_err(told)?;
    print(nodes, args.output, false, &app.printer)?;
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
