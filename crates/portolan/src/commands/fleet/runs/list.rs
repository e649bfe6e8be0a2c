//! `portolan fleet runs list`: which runs there were.

use portolan_kinds::find_kind;
use portolan_server::ObjectPath;
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::object_args::NamespaceArgs;
use crate::commands::fleet::shown;
use crate::error::CommandError;
use crate::table::{Cell, Table};

use super::order_in_time;

/// List runs, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs list
  portolan fleet runs list -n shop --book web
  portolan fleet runs list -o json")]
pub(super) struct ListArgs {
    /// Only runs of this book
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    book: Option<String>,

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
    output: ListFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ListFormat {
    /// Columns
    Table,
    /// The objects
    Json,
}

pub(super) fn list(args: &ListArgs, app: &App) -> Result<(), CommandError> {
    let client = args.connection.connect()?;
    let kind = find_kind("Run").ok_or_else(|| CommandError::usage("there is no kind Run"))?;
    let path = ObjectPath {
        kind,
        namespace: Some(args.namespace.namespace.clone()),
        name: None,
    };
    let fields = args.book.as_ref().map(|book| format!("spec.book={book}"));
    let query: Vec<(&str, &str)> = fields
        .iter()
        .map(|text| ("fieldSelector", text.as_str()))
        .collect();
    let (mut items, _) = app.wait(client.list(&path, &query))?.map_err(told)?;
    items.sort_by_key(|run| std::cmp::Reverse(order_in_time(run)));
    if args.output == ListFormat::Json {
        let list =
            json!({"apiVersion": portolan_kinds::VERSION, "kind": "RunList", "items": items});
        return app.printer.data(format!("{list:#}\n"));
    }
    let mut table = Table::new(["NAME", "BOOK", "MODE", "PHASE", "NODES", "AGE", "REASON"]);
    for run in &items {
        table.push(vec![
            Cell::name(shown::text(run, "metadata.name")),
            Cell::from(shown::text(run, "spec.book")),
            Cell::from(shown::text(run, "spec.mode")),
            Cell::from(shown::text(run, "status.phase")),
            Cell::from(nodes(run)),
            Cell::from(shown::age(&shown::text(run, "metadata.creationTimestamp"))),
            Cell::from(shown::text(run, "status.reason")),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))
}

/// How many nodes ended in each state, or how many there are.
fn nodes(run: &Value) -> String {
    let counts = run["status"]["counts"].as_object().into_iter().flatten();
    let counts: Vec<String> = counts
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    if counts.is_empty() {
        let all = run["spec"]["nodes"].as_array().map_or(0, Vec::len);
        return all.to_string();
    }
    counts.join(", ")
}
