//! `portolan fleet beacons`: what nodes watch, and what they saw last.

use portolan_server::{ObjectPath, beacon_rows};
use serde_json::json;

use super::connection::{ConnectionArgs, told};
use super::object_args::{NamespaceArgs, kind_of};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// List what beacons see on each node
///
/// Beacons watch on their nodes, also while no server is there. A node that is not connected is shown with what it saw
/// last. Changes are events: `portolan fleet get events`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet beacons
  portolan fleet beacons -n shop --beacon web-conf
  portolan fleet beacons -o json")]
pub(crate) struct BeaconsArgs {
    /// Only this beacon
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    beacon: Option<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: BeaconFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of beacons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BeaconFormat {
    /// Columns
    Table,
    /// A list of rows
    Json,
}

pub(crate) fn beacons(args: &BeaconsArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let path = |kind: &str, namespace: Option<&String>| {
        Ok::<_, crate::error::CommandError>(ObjectPath {
            kind: kind_of(kind)?,
            namespace: namespace.cloned(),
            name: None,
        })
    };
    let field = args
        .beacon
        .as_ref()
        .map(|name| format!("metadata.name={name}"));
    let query: Vec<(&str, &str)> = field
        .iter()
        .map(|text| ("fieldSelector", text.as_str()))
        .collect();
    let wanted = path("Beacon", Some(&args.namespace.namespace))?;
    let (beacons, _) = app.wait(client.list(&wanted, &query))?.map_err(told)?;
    let nodes = path("Node", None)?;
    let (nodes, _) = app.wait(client.list(&nodes, &[]))?.map_err(told)?;
    let rows = beacon_rows(&beacons, &nodes);
    if args.output == BeaconFormat::Json {
        app.printer.data(format!("{:#}\n", json!(rows)))?;
        return Ok(ExitStatus::Clean);
    }
    if rows.is_empty() {
        app.printer.say_unless_quiet("nothing found");
        return Ok(ExitStatus::Clean);
    }
    let mut table = Table::new([
        "BEACON",
        "NODE",
        "NODE STATE",
        "STATE",
        "NORMAL",
        "LAST SEEN",
    ]);
    for row in &rows {
        let normal = match row["normal"].as_bool() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        table.push(vec![
            Cell::name(shown::text(row, "beacon")),
            Cell::from(shown::text(row, "node")),
            Cell::from(shown::text(row, "nodeState")),
            Cell::from(shown::text(row, "condition")),
            Cell::from(normal.to_owned()),
            Cell::from(shown::age(&shown::text(row, "lastSeen"))),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
    Ok(ExitStatus::Clean)
}
