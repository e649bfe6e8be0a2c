//! `portolan fleet cron`: schedules, with their last and next slots.

use portolan_kinds::find_kind;
use portolan_server::ObjectPath;

use super::connection::{ConnectionArgs, told};
use super::get::print;
use super::object_args::SelectionArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;

/// List CronJobs with their last and next slots
///
/// Slots are moments in UTC. Why a slot did not start stands in the column ERROR, and with `-o wide` which slots were skipped and
/// which runs the last one made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet cron
  portolan fleet cron -n shop -o wide
  portolan fleet cron -A -o json")]
pub(crate) struct CronArgs {
    #[command(flatten)]
    selection: SelectionArgs,

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

pub(crate) fn cron(args: &CronArgs, app: &App) -> CommandResult {
    list(
        "CronJob",
        &args.selection,
        args.output,
        &args.connection,
        app,
    )?;
    Ok(ExitStatus::Clean)
}

/// Prints the objects of a kind.
pub(super) fn list(
    kind: &str,
    selection: &SelectionArgs,
    output: Format,
    connection: &ConnectionArgs,
    app: &App,
) -> Result<(), CommandError> {
    let client = connection.connect()?;
    let kind =
        find_kind(kind).ok_or_else(|| CommandError::usage(format!("there is no kind {kind}")))?;
    let path = ObjectPath {
        kind,
        namespace: selection.namespace_of(kind),
        name: None,
    };
    let query = selection.query();
    let (items, _) = app.wait(client.list(&path, &query))?.map_err(told)?;
    print(items, output, selection.all_namespaces, &app.printer)
}
