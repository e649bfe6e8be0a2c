//! `portolan fleet cron`: schedules, with their last and next slots.

use portolan_kinds::find_kind;
use portolan_server::{ObjectPath, cron_rows};
use serde_json::json;

use super::connection::{ConnectionArgs, told};
use super::get::print;
use super::object_args::{SelectionArgs, kind_of};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::table::{Cell, Table};

/// List CronJobs with their last and next slots
///
/// Slots are moments in UTC. Why a slot did not start stands in the column ERROR, and with `-o wide` which slots were skipped and
/// which runs the last one made. Of schedules that nodes keep themselves, the last slot is that of any node; `--by-node` shows
/// each of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet cron
  portolan fleet cron -n shop -o wide
  portolan fleet cron --by-node
  portolan fleet cron -A -o json")]
pub(crate) struct CronArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// List the nodes that keep schedules themselves, as a table or as JSON
    #[arg(long, help_heading = "Output")]
    by_node: bool,

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
    if args.by_node {
        return by_node(args, app);
    }
    list(
        "CronJob",
        &args.selection,
        args.output,
        &args.connection,
        app,
    )?;
    Ok(ExitStatus::Clean)
}

/// Prints the nodes that keep schedules.
fn by_node(args: &CronArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let jobs = ObjectPath {
        kind: kind_of("CronJob")?,
        namespace: args.selection.namespace_of(kind_of("CronJob")?),
        name: None,
    };
    let query = args.selection.query();
    let (jobs, _) = app.wait(client.list(&jobs, &query))?.map_err(told)?;
    let nodes = ObjectPath {
        kind: kind_of("Node")?,
        namespace: None,
        name: None,
    };
    let (nodes, _) = app.wait(client.list(&nodes, &[]))?.map_err(told)?;
    let rows = cron_rows(&jobs, &nodes);
    if !matches!(args.output, Format::Table | Format::Wide) {
        app.printer.data(format!("{:#}\n", json!(rows)))?;
        return Ok(ExitStatus::Clean);
    }
    if rows.is_empty() {
        app.printer.say_unless_quiet("nothing found");
        return Ok(ExitStatus::Clean);
    }
    let mut table = Table::new(["CRONJOB", "NODE", "LAST", "STATE", "NEXT", "ERROR"]);
    for row in &rows {
        table.push(vec![
            Cell::name(shown::text(row, "job")),
            Cell::from(shown::text(row, "node")),
            Cell::from(shown::text(row, "lastSlot")),
            Cell::from(shown::text(row, "state")),
            Cell::from(shown::text(row, "nextSlot")),
            Cell::from(shown::text(row, "error")),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
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
