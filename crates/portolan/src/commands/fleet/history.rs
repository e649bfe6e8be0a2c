//! `portolan fleet history`: who changed an object, when and what.

use portolan_server::FleetMethod;
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::{NamespaceArgs, paths};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// Print who changed an object, when and what
///
/// The server knows the changes of its history only, ten minutes at least. Of secrets it says that values changed, not which.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet history variable region -n web
  portolan fleet history node/db-1 -o json")]
pub(crate) struct HistoryArgs {
    /// KIND NAME or KIND/NAME
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    object: Vec<String>,

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
    output: HistoryFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HistoryFormat {
    /// Columns
    Table,
    /// The server's answer
    Json,
}

pub(crate) fn history(args: &HistoryArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let namespace = &args.namespace.namespace;
    let paths = paths(&args.object, |kind| {
        kind.is_namespaced.then(|| namespace.clone())
    })?;
    let [path] = paths.as_slice() else {
        return Err(CommandError::usage("one object has one history"));
    };
    let (address, query) = (path.to_string(), [("history", "true")]);
    let asked = client.request(FleetMethod::Get, &address, &query, None);
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    if args.output == HistoryFormat::Json {
        app.printer.data(format!("{answer:#}\n"))?;
        return Ok(ExitStatus::Clean);
    }
    let mut table = Table::new(["VERSION", "AGE", "BY", "CHANGE", "COMMIT", "FIELDS"]);
    for change in answer["items"].as_array().into_iter().flatten() {
        let text = |key: &str| change[key].as_str().unwrap_or("-").to_owned();
        let fields = shown::text(change, "fields");
        table.push(vec![
            Cell::whole(text("resourceVersion")),
            Cell::from(shown::age(&text("at"))),
            Cell::from(text("by")),
            Cell::from(text("change")),
            Cell::from(text("commit").chars().take(12).collect::<String>()),
            Cell::from(fields),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
    if answer["complete"] != Value::Bool(true) {
        app.printer
            .note("older changes are not in the history any more");
    }
    Ok(ExitStatus::Clean)
}
