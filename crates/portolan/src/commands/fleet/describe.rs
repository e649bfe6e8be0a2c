//! `portolan fleet describe`: everything about objects.

use portolan_server::FleetMethod;
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::{NamespaceArgs, paths};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// How many changes are shown.
const CHANGES: usize = 5;

/// Print everything about objects, with their last changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet describe node db-1
  portolan fleet describe var/region -n web")]
pub(crate) struct DescribeArgs {
    /// KIND NAME… or KIND/NAME…
    #[arg(value_name = "OBJECT", required = true)]
    objects: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn describe(args: &DescribeArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let namespace = &args.namespace.namespace;
    let paths = paths(&args.objects, |kind| {
        kind.is_namespaced.then(|| namespace.clone())
    })?;
    for (number, path) in paths.iter().enumerate() {
        if path.name.is_none() {
            return Err(
                CommandError::usage("no object is named").hint("write KIND NAME… or KIND/NAME…")
            );
        }
        let address = path.to_string();
        let ask = |query: &'static [(&'static str, &'static str)]| {
            client.request(FleetMethod::Get, &address, query, None)
        };
        let object = app.runtime()?.block_on(ask(&[])).map_err(told)?;
        let history = app
            .runtime()?
            .block_on(ask(&[("history", "true")]))
            .map_err(told)?;
        if number > 0 {
            app.printer.data("---\n")?;
        }
        app.printer.data(shown::yaml(&object)?)?;
        app.printer.data(changes(&history))?;
    }
    Ok(ExitStatus::Clean)
}

/// The last changes as comments, so that the whole stays YAML.
fn changes(history: &Value) -> String {
    let items = history["items"]
        .as_array()
        .into_iter()
        .flatten()
        .take(CHANGES);
    let lines = items.map(|change| {
        let word = |key: &str| change[key].as_str().unwrap_or("-").to_owned();
        let fields: Vec<&str> = change["fields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        format!(
            "#   {} {} by {}: {}\n",
            word("at"),
            word("change"),
            word("by"),
            fields.join(", ")
        )
    });
    let lines: String = lines.collect();
    format!("# last changes:\n{lines}")
}
