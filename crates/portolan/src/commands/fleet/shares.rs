//! `portolan fleet shares`: what nodes give to each other.

use portolan_server::{ObjectPath, share_rows};
use serde_json::json;

use super::connection::{ConnectionArgs, told};
use super::object_args::{NamespaceArgs, kind_of};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// List what nodes give to each other
///
/// A share is made by the module `publish` and taken by `fetch`. Its content is encrypted by the node that publishes it;
/// the server cannot read it. A node that is pending waits until one that has the share is connected.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet shares
  portolan fleet shares -n shop -o json")]
pub(crate) struct SharesArgs {
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
    output: ShareFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ShareFormat {
    /// Columns
    Table,
    /// A list of rows
    Json,
}

pub(crate) fn shares(args: &SharesArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let path = ObjectPath {
        kind: kind_of("Share")?,
        namespace: Some(args.namespace.namespace.clone()),
        name: None,
    };
    let (found, _) = app.wait(client.list(&path, &[]))?.map_err(told)?;
    let rows = share_rows(&found);
    if args.output == ShareFormat::Json {
        app.printer.data(format!("{:#}\n", json!(rows)))?;
        return Ok(ExitStatus::Clean);
    }
    if rows.is_empty() {
        app.printer.say_unless_quiet("nothing found");
        return Ok(ExitStatus::Clean);
    }
    let mut table = Table::new([
        "SHARE",
        "VERSION",
        "STATE",
        "PUBLISHER",
        "AGE",
        "TAKEN",
        "WITHOUT IT",
    ]);
    for row in &rows {
        let count = |field: &str| row[field].as_array().map_or(0, Vec::len);
        let lacking = row["lacking"].as_array().into_iter().flatten();
        let lacking: Vec<String> = lacking
            .map(|one| {
                format!(
                    "{} ({})",
                    shown::text(one, "node"),
                    shown::text(one, "reason")
                )
            })
            .collect();
        table.push(vec![
            Cell::name(shown::text(row, "share")),
            Cell::from(shown::text(row, "version")),
            Cell::from(shown::text(row, "state")),
            Cell::from(shown::text(row, "publisher")),
            Cell::from(shown::age(&shown::text(row, "published"))),
            Cell::from(format!("{} of {}", count("taken"), count("holders"))),
            Cell::from(lacking.join(", ")),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
    Ok(ExitStatus::Clean)
}
