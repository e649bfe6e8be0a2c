//! `portolan fleet status`: the state of the server.

use portolan_server::FleetMethod;
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};
use crate::units::shown_size;

/// Print the state of the server
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
    let warnings: Vec<&str> = answer["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if args.output == StatusFormat::Json {
        app.printer.data(format!("{answer:#}\n"))?;
    } else {
        app.printer
            .data(table(&answer, client.server()).render(app.printer.canvas()))?;
        for warning in &warnings {
            app.printer.warning(warning);
        }
    }
    Ok(if warnings.is_empty() {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}

fn table(answer: &Value, address: &str) -> Table {
    let text = |path: &str| shown::text(answer, path);
    let servers: Vec<&Value> = answer["servers"].as_array().into_iter().flatten().collect();
    let owner = servers
        .iter()
        .find(|server| server["isOwner"] == Value::Bool(true))
        .map_or_else(|| text("controllers.owner"), |owner| server_name(owner));
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
                "{}, revision {}, {}{}, level {}",
                text("store.engine"),
                text("store.revision"),
                size(&answer["store"]["bytes"]),
                match &answer["store"]["maxBytes"] {
                    Value::Null => String::new(),
                    most => format!(" of {}", size(most)),
                },
                text("store.level")
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
        (
            "events",
            format!(
                "{} kept, {}",
                text("events.kept"),
                size(&answer["events"]["bytes"])
            ),
        ),
        (
            "servers",
            servers
                .iter()
                .map(|server| server_name(server))
                .collect::<Vec<_>>()
                .join(", "),
        ),
        ("controllers", owner),
        ("backup", backup(&answer["backup"])),
        (
            "certificates",
            format!(
                "the authority ends {}",
                text("certificates.authorityExpires")
            ),
        ),
        (
            "audit log",
            format!(
                "entry {} {}",
                text("audit.number"),
                text("audit.digest").chars().take(12).collect::<String>()
            ),
        ),
        ("secret key", text("secrets.key")),
        ("server time", text("time") + &clock_difference(answer)),
    ];
    let mut table = Table::new(["", ""]);
    for (name, value) in rows {
        table.push(vec![Cell::name(name), Cell::from(value)]);
    }
    table
}

/// How far the server's clock is from this machine's. The answer was on its way for a moment, and has whole seconds.
fn clock_difference(answer: &Value) -> String {
    let time = answer["time"].as_str().unwrap_or_default();
    match shown::seconds_since(time) {
        None => String::new(),
        Some(-2..=2) => " (as this machine's)".to_owned(),
        Some(seconds @ 3..) => format!(" ({seconds} s behind this machine's)"),
        Some(seconds) => format!(" ({} s ahead of this machine's)", seconds.unsigned_abs()),
    }
}

/// The address of a server, this one marked.
fn server_name(server: &Value) -> String {
    let address = server["address"].as_str();
    // One that was started without an address has its name only.
    let address = address.filter(|address| !address.is_empty());
    let address = address.or(server["server"].as_str()).unwrap_or_default();
    match server["clockAheadMillis"].as_i64() {
        _ if server["isThis"] == Value::Bool(true) => format!("{address} (this one)"),
        Some(ahead) => format!("{address} (clock {:+.1} s)", ahead as f64 / 1e3),
        None => address.to_owned(),
    }
}

/// How old the newest backup is.
fn backup(told: &Value) -> String {
    if told.is_null() {
        return "none: start the server with --backup-dir".to_owned();
    }
    let Some(time) = told["last"]["time"].as_str() else {
        return "none yet".to_owned();
    };
    let file = told["last"]["file"].as_str().unwrap_or_default();
    format!("{} ago, restored and compared: {file}", shown::age(time))
}

fn size(bytes: &Value) -> String {
    shown_size(bytes.as_u64().unwrap_or_default())
}
