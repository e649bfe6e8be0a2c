//! `portolan fleet status`: how the server stands.

use portolan_server::FleetMethod;
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// Print how the server stands
///
/// Exits with 1 if there is something to do about it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet status
  portolan fleet status -o json")]
pub(crate) struct StatusArgs {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: StatusFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of the state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatusFormat {
    /// One line for each thing
    Table,
    /// The server's answer
    Json,
}

pub(crate) fn status(args: &StatusArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let asked = client.request(FleetMethod::Get, "/api/v1alpha/status", &[], None);
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    let warnings = answer["store"]["warnings"].as_array().map_or(0, Vec::len);
    if args.output == StatusFormat::Json {
        app.printer.data(format!("{answer:#}\n"))?;
    } else {
        app.printer
            .data(table(&answer, client.server()).render(app.printer.canvas()))?;
        for warning in answer["store"]["warnings"].as_array().into_iter().flatten() {
            app.printer.warning(warning.as_str().unwrap_or_default());
        }
    }
    Ok(if warnings == 0 {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

fn table(answer: &Value, address: &str) -> Table {
    let text = |path: &str| shown::text(answer, path);
    let owner = if answer["controllers"]["isOwner"] == Value::Bool(true) {
        "this server".to_owned()
    } else {
        text("controllers.owner")
    };
    let rows = [
        (
            "server",
            format!(
                "{address} ({}, version {})",
                text("server"),
                text("version")
            ),
        ),
        (
            "store",
            format!(
                "{}, revision {}, {} bytes",
                text("store.engine"),
                text("store.revision"),
                text("store.bytes")
            ),
        ),
        ("incarnation", text("incarnation")),
        (
            "objects",
            format!(
                "{} ({} changes kept, {} revisions behind)",
                text("cache.objects"),
                text("cache.changes"),
                text("cache.lag")
            ),
        ),
        ("controllers", owner),
        (
            "audit log",
            format!(
                "entry {} {}",
                text("audit.number"),
                text("audit.digest").chars().take(12).collect::<String>()
            ),
        ),
        ("secret key", text("secrets.key")),
        ("server time", text("time")),
    ];
    let mut table = Table::new(["", ""]);
    for (name, value) in rows {
        table.push(vec![Cell::name(name), Cell::from(value)]);
    }
    table
}
