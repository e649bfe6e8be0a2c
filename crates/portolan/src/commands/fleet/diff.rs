//! `portolan fleet diff`: what an apply would change.

use portolan_server::{FleetClient, FleetError, FleetMethod};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::documents::{Document, FileArgs, path_of};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::Tone;

/// Show what an apply would change
///
/// Of secrets only the names of values are compared. Exits with 1 if something would change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet diff -f fleet/
  portolan fleet diff -f variable.yaml -n web")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    files: FileArgs,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn diff(args: &DiffArgs, app: &App) -> CommandResult {
    let documents = args.files.read(&args.namespace.namespace)?;
    let client = args.connection.connect()?;
    let mut differs = false;
    for document in &documents {
        let (before, after) = app.runtime()?.block_on(both(&client, document))?;
        let mut lines = Vec::new();
        compare(&before, &after, "", &mut lines);
        if lines.is_empty() {
            continue;
        }
        differs = true;
        let change = if before.is_null() {
            "would be created"
        } else {
            "would change"
        };
        app.printer
            .data(format!("{} {change}\n", shown::name(&after)))?;
        let styled = app.printer.canvas().styled;
        for line in lines {
            let tone = if line.starts_with('-') {
                Tone::Bad
            } else {
                Tone::Good
            };
            let tone = if line.starts_with(' ') {
                Tone::Plain
            } else {
                tone
            };
            app.printer
                .data(format!("{}\n", tone.paint(&line, styled)))?;
        }
    }
    Ok(if differs {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

/// The object as it is and as it would be, without what every write changes.
async fn both(client: &FleetClient, document: &Document) -> Result<(Value, Value), CommandError> {
    let path = path_of(&document.object).to_string();
    let before = match client.request(FleetMethod::Get, &path, &[], None).await {
        Ok(before) => before,
        Err(FleetError::Refused { status: 404, .. }) => Value::Null,
        Err(error) => return Err(told(error)),
    };
    let body = document.object.to_json().to_string();
    let query = [("apply", "true"), ("dryRun", "true")];
    let after = client
        .request(FleetMethod::Put, &path, &query, Some(&body))
        .await
        .map_err(told)?;
    Ok((settled(before), settled(after)))
}

fn settled(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["resourceVersion", "generation", "uuid", "creationTimestamp"] {
            metadata.remove(key);
        }
    }
    object
}

/// The fields that differ, each with its path and both values.
fn compare(before: &Value, after: &Value, path: &str, lines: &mut Vec<String>) {
    if before == after {
        return;
    }
    if let (Value::Object(_) | Value::Null, Value::Object(map)) = (before, after) {
        let empty = serde_json::Map::new();
        let old = before.as_object().unwrap_or(&empty);
        let keys: std::collections::BTreeSet<&String> = old.keys().chain(map.keys()).collect();
        for key in keys {
            let below = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            let nothing = Value::Null;
            compare(
                old.get(key).unwrap_or(&nothing),
                map.get(key).unwrap_or(&nothing),
                &below,
                lines,
            );
        }
        return;
    }
    lines.push(format!("  {path}"));
    if !before.is_null() {
        lines.push(format!("-   {before}"));
    }
    if !after.is_null() {
        lines.push(format!("+   {after}"));
    }
}
