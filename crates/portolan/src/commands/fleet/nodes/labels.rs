//! `portolan fleet nodes label|drain`: labels of nodes, and whether runs take them.

use portolan_server::LabelChange;

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// The label of nodes that new runs leave out.
const DRAINED: &str = "portolan.dev/drained";

/// Leave a node out of new runs, or take it in again
///
/// Runs that have begun go on. A drained node has the label `portolan.dev/drained`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes drain web-3
  portolan fleet nodes drain web-3 --undo")]
pub(super) struct DrainArgs {
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
pub(super) struct LabelArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    name: String,

    /// KEY=VALUE sets a label, KEY- removes one
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn drain(args: &DrainArgs, app: &App) -> CommandResult {
    let (change, word) = if args.undo {
        (
            LabelChange::Remove(DRAINED.to_owned()),
            "takes part in runs again",
        )
    } else {
        let drained = LabelChange::Set(DRAINED.to_owned(), "true".to_owned());
        (drained, "is left out of new runs")
    };
    change_labels(&args.connection, &args.name, &[change], word, app)
}

pub(super) fn label(args: &LabelArgs, app: &App) -> CommandResult {
    let read = |text: &String| {
        let wrong = || CommandError::usage(format!("`{text}` is neither KEY=VALUE nor KEY-"));
        LabelChange::read(text).ok_or_else(wrong)
    };
    let changes: Result<Vec<LabelChange>, CommandError> = args.labels.iter().map(read).collect();
    change_labels(&args.connection, &args.name, &changes?, "labelled", app)
}

fn change_labels(
    connection: &ConnectionArgs,
    node: &str,
    changes: &[LabelChange],
    word: &str,
    app: &App,
) -> CommandResult {
    let client = connection.connect()?;
    let changed = client.change_node_labels(node, changes);
    app.wait(changed)?.map_err(told)?;
    app.printer.data(format!("node/{node} {word}\n"))?;
    Ok(ExitStatus::Clean)
}
