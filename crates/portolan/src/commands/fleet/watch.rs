//! `portolan fleet watch`: changes of objects as they happen.

use portolan_server::{FleetClient, FleetError, ObjectPath};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::{SelectionArgs, kind_of};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print changes of objects as they happen
///
/// The objects that exist come first. A watch that the server ends is resumed where it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet watch events -n system
  portolan fleet watch nodes -l role=web -o json")]
pub(crate) struct WatchArgs {
    /// The kind
    #[arg(value_name = "KIND")]
    kind: String,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: WatchFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WatchFormat {
    /// A line for each change
    Text,
    /// The server's messages
    Json,
}

pub(crate) fn watch(args: &WatchArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let kind = kind_of(&args.kind)?;
    let path = ObjectPath {
        kind,
        namespace: args.selection.namespace_of(kind),
        name: None,
    };
    app.runtime()?
        .block_on(follow(args, &client, &path, &app.printer))?;
    Ok(ExitStatus::Clean)
}

async fn follow(
    args: &WatchArgs,
    client: &FleetClient,
    path: &ObjectPath,
    printer: &Printer,
) -> Result<(), CommandError> {
    let mut version = String::new();
    loop {
        let mut query = args.selection.query();
        let resumed = version.clone();
        if !resumed.is_empty() {
            query.push(("resourceVersion", &resumed));
        }
        let mut failed = None;
        let ended = client
            .watch(path, &query, |message| {
                if let Some(now) = message["object"]["metadata"]["resourceVersion"].as_str() {
                    now.clone_into(&mut version);
                }
                if message["type"] == "EXPIRED" {
                    version.clear();
                }
                failed = print(args.output, &message, printer).err();
                failed.is_none()
            })
            .await;
        match (failed, ended) {
            (Some(error), _) => return Err(error),
            (None, Ok(())) => {}
            // History that is gone is listed anew.
            (None, Err(FleetError::Refused { status: 410, .. })) => version.clear(),
            (None, Err(error)) => return Err(told(error)),
        }
    }
}

fn print(format: WatchFormat, message: &Value, printer: &Printer) -> Result<(), CommandError> {
    if format == WatchFormat::Json {
        return printer.data(format!("{message}\n"));
    }
    let word = match message["type"].as_str().unwrap_or_default() {
        "ADDED" => "added",
        "MODIFIED" => "changed",
        "DELETED" => "deleted",
        _ => return Ok(()),
    };
    let object = &message["object"];
    let namespace = shown::text(object, "metadata.namespace");
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!(" in {namespace}")
    };
    let summary = shown::text(object, "spec.summary");
    let summary = if summary.is_empty() {
        summary
    } else {
        format!(": {summary}")
    };
    printer.data(format!(
        "{word:<8} {}{place}{summary}\n",
        shown::name(object)
    ))
}
