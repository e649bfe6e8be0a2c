//! `portolan fleet apply`: objects of files, brought to a server.

use portolan_server::{FleetClient, FleetMethod};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::documents::{Document, FileArgs, path_of};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Create objects from files, or bring them to what the files say
///
/// All files are checked before anything is sent. Labels and annotations that others added stay; those of an earlier apply that
/// are no longer in the file are removed. Objects that do not change are left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet apply -f variable.yaml
  portolan fleet apply -f fleet/ -n web
  portolan fleet apply -f fleet/ --dry-run
  cat node.json | portolan fleet apply -f -")]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    files: FileArgs,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Let the server check everything and change nothing
    #[arg(long, help_heading = "Output")]
    dry_run: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn apply(args: &ApplyArgs, app: &App) -> CommandResult {
    let documents = args.files.read(&args.namespace.namespace)?;
    let client = args.connection.connect()?;
    let mut failed = Vec::new();
    for document in in_order(&documents) {
        let sent = app
            .runtime()?
            .block_on(send(&client, document, args.dry_run));
        match sent {
            Ok(line) => app.printer.data(format!("{line}\n"))?,
            Err(error) => failed.push(format!("{}: {:#}", document.place, error.source)),
        }
    }
    if failed.is_empty() {
        Ok(ExitStatus::Clean)
    } else {
        Err(CommandError::usage(failed.join("\n")))
    }
}

/// Namespaces first, then roles, then the rest, so that one directory can be applied to an empty server.
fn in_order(documents: &[Document]) -> Vec<&Document> {
    let mut sorted: Vec<&Document> = documents.iter().collect();
    sorted.sort_by_key(|document| match document.object.kind.name {
        "Namespace" => 0,
        "ClusterRole" | "Role" => 1,
        _ => 2,
    });
    sorted
}

async fn send(
    client: &FleetClient,
    document: &Document,
    is_dry_run: bool,
) -> Result<String, CommandError> {
    let path = path_of(&document.object).to_string();
    let before = client.request(FleetMethod::Get, &path, &[], None).await;
    let mut query = vec![("apply", "true")];
    if is_dry_run {
        query.push(("dryRun", "true"));
    }
    let body = document.object.to_json().to_string();
    let after = client
        .request(FleetMethod::Put, &path, &query, Some(&body))
        .await
        .map_err(told)?;
    let change = match before {
        Err(_) => "created",
        Ok(before) if is_same(&before, &after) => "unchanged",
        Ok(_) => "configured",
    };
    let note = if is_dry_run { " (dry run)" } else { "" };
    Ok(format!("{} {change}{note}", shown::name(&after)))
}

fn is_same(before: &Value, after: &Value) -> bool {
    let parts = |object: &Value| {
        let metadata = &object["metadata"];
        (
            metadata["generation"].clone(),
            metadata["labels"].clone(),
            metadata["annotations"].clone(),
        )
    };
    parts(before) == parts(after)
}
