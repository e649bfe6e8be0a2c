//! `portolan fleet delete`: objects by name or from files.

use std::io::{BufRead as _, IsTerminal as _};

use camino::Utf8PathBuf;
use portolan_server::{FleetClient, FleetMethod, ObjectPath};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::documents::{FileArgs, path_of};
use super::object_args::{NamespaceArgs, paths};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Delete objects
///
/// A namespace is deleted with all it holds, and an object with everything that it owns. The command first says how many these
/// are, and asks on a terminal. An object with finalizers is deleted when they are gone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet delete variable region -n web
  portolan fleet delete namespace shop --yes
  portolan fleet delete -f fleet/ --dry-run")]
pub(crate) struct DeleteArgs {
    /// KIND NAME… or KIND/NAME…
    #[arg(value_name = "OBJECT")]
    objects: Vec<String>,

    /// A file or directory whose objects are deleted; `-` is standard input
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE",
        help_heading = "Input"
    )]
    files: Vec<Utf8PathBuf>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Say what would be deleted, and delete nothing
    #[arg(long, help_heading = "Output")]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long, help_heading = "Output")]
    yes: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn delete(args: &DeleteArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    for path in args.paths()? {
        app.runtime()?.block_on(args.delete(&client, &path, app))?;
    }
    Ok(ExitStatus::Clean)
}

impl DeleteArgs {
    fn paths(&self) -> Result<Vec<ObjectPath>, CommandError> {
        let namespace = &self.namespace.namespace;
        let mut all = paths(&self.objects, |kind| {
            kind.is_namespaced.then(|| namespace.clone())
        })?;
        if !self.files.is_empty() {
            let files = FileArgs {
                files: self.files.clone(),
            };
            all.extend(
                files
                    .read(namespace)?
                    .iter()
                    .map(|document| path_of(&document.object)),
            );
        }
        if all.is_empty() || all.iter().any(|path| path.name.is_none()) {
            return Err(CommandError::usage("nothing is named")
                .hint("write KIND NAME…, KIND/NAME… or -f FILE"));
        }
        Ok(all)
    }

    async fn delete(
        &self,
        client: &FleetClient,
        path: &ObjectPath,
        app: &App,
    ) -> Result<(), CommandError> {
        let address = path.to_string();
        let dry = [("dryRun", "true")];
        let would = client
            .request(FleetMethod::Delete, &address, &dry, None)
            .await
            .map_err(told)?;
        let name = shown::name(&would["object"]);
        let dependents = would["dependents"].as_u64().unwrap_or(0);
        if self.dry_run {
            return app
                .printer
                .data(format!("{name} would be deleted{}\n", with(dependents)));
        }
        if dependents > 0 && !self.yes {
            confirm(&format!("delete {name}{}?", with(dependents)), app)?;
        }
        // Only the object that was looked at.
        let uuid = would["object"]["metadata"]["uuid"]
            .as_str()
            .unwrap_or_default();
        let same = [("uuid", uuid)];
        let done = client
            .request(FleetMethod::Delete, &address, &same, None)
            .await
            .map_err(told)?;
        let state = if done["deleted"] == Value::Bool(true) {
            "deleted"
        } else {
            "is being deleted"
        };
        app.printer
            .data(format!("{name} {state}{}\n", with(dependents)))
    }
}

fn with(dependents: u64) -> String {
    match dependents {
        0 => String::new(),
        1 => " with 1 object that depends on it".to_owned(),
        count => format!(" with {count} objects that depend on it"),
    }
}

fn confirm(question: &str, app: &App) -> Result<(), CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CommandError::usage(question).hint("--yes says so"));
    }
    app.printer.note(&format!("{question} Type `yes`."));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "yes") {
        Ok(())
    } else {
        Err(CommandError::usage("nothing was deleted"))
    }
}
