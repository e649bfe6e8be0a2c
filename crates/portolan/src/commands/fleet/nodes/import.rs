//! `portolan fleet nodes import`: groups and variables of an inventory of Ansible.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{AnsibleInventory, ExpectedNode, ImportedInventory, VariableFile};
use portolan_object::counted;
use portolan_server::{FleetClient, FleetMethod, ObjectPath};
use serde_json::Value;

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::object_args::{NamespaceArgs, kind_of};
use crate::commands::fleet::shown;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;

/// How many machines that are no nodes yet are named.
const SHOWN: usize = 20;

/// The most files of variables beside an inventory.
const MAX_FILES: usize = 5_000;

/// How deep directories of `group_vars` and `host_vars` are looked into.
const MAX_DEPTH: usize = 5;

/// Make groups of nodes and variables of an inventory of Ansible
///
/// Groups become groups of nodes by the names of their hosts, those of their children included; variables become Variables for all nodes, for
/// groups and for nodes; so do YAML files in `group_vars` and `host_vars` beside the inventory. The objects are printed, or brought to the server with --apply. Hosts are not made nodes: with --apply, those
/// that are none yet are named with the command that makes them nodes. What has no counterpart is named.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet nodes import inventory.ini
  portolan fleet nodes import inventory.ini -n shop --apply")]
pub(super) struct ImportArgs {
    /// The inventory, in INI format; `-` is standard input
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Bring the objects to the server instead of printing them
    #[arg(long, help_heading = "Output")]
    apply: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn import(args: &ImportArgs, app: &App) -> CommandResult {
    let imported = args.read()?;
    for remark in &imported.remarks {
        app.printer.note(remark);
    }
    if !args.apply {
        let texts: Result<Vec<String>, CommandError> =
            imported.objects.iter().map(shown::yaml).collect();
        app.printer.data(texts?.join("---\n"))?;
        return Ok(ExitStatus::Clean);
    }
    let client = args.connection.connect()?;
    let missing = app.wait(send(&client, &imported, app))??;
    name_missing(&missing, app);
    Ok(ExitStatus::Clean)
}

/// Applies the objects, and returns the machines that are no nodes yet.
async fn send(
    client: &FleetClient,
    imported: &ImportedInventory,
    app: &App,
) -> Result<Vec<ExpectedNode>, CommandError> {
    for object in &imported.objects {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let path = ObjectPath {
            kind: kind_of(object["kind"].as_str().unwrap_or_default())?,
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        };
        let (path, body) = (path.to_string(), object.to_string());
        let applied = client.request(FleetMethod::Put, &path, &[("apply", "true")], Some(&body));
        let applied = applied.await.map_err(told)?;
        app.printer
            .data(format!("{} applied\n", shown::name(&applied)))?;
    }
    let mut missing = Vec::new();
    for node in &imported.nodes {
        if client.node(&node.name).await.map_err(told)?.is_none() {
            missing.push(node.clone());
        }
    }
    Ok(missing)
}

fn name_missing(missing: &[ExpectedNode], app: &App) {
    if missing.is_empty() {
        return;
    }
    app.printer.say_unless_quiet(&format!(
        "{} no nodes yet; to make them nodes:",
        are(missing.len())
    ));
    for node in missing.iter().take(SHOWN) {
        let port = node.port.map(|port| format!(" --port {port}"));
        app.printer.say_unless_quiet(&format!(
            "  portolan fleet bootstrap {} --name {}{}",
            node.destination,
            node.name,
            port.unwrap_or_default()
        ));
    }
    if let Some(more) = missing.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        app.printer.say_unless_quiet(&format!("  and {more} more"));
    }
}

fn are(count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count, "host"))
}

impl ImportArgs {
    fn read(&self) -> Result<ImportedInventory, CommandError> {
        let input = Input::read(&self.file)?;
        let text = std::str::from_utf8(&input.bytes);
        let text = text
            .map_err(|_| CommandError::usage(format!("`{}` is not text in UTF-8", input.name)))?;
        let mut inventory = AnsibleInventory::read(&input.name, text).map_err(|faults| {
            let lines: Vec<String> = faults
                .iter()
                .map(|fault| {
                    let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})"));
                    format!("{fault}{}", hint.unwrap_or_default())
                })
                .collect();
            CommandError::usage(lines.join("\n"))
        })?;
        if self.file != "-" {
            let directory = self.file.parent().unwrap_or(Utf8Path::new(""));
            add_files_beside(&mut inventory, directory)?;
        }
        inventory
            .import(&self.namespace.namespace)
            .map_err(CommandError::user)
    }
}

/// Adds the variables of the files in `group_vars` and `host_vars`, in the order of their names.
fn add_files_beside(
    inventory: &mut AnsibleInventory,
    directory: &Utf8Path,
) -> Result<(), CommandError> {
    let mut paths = Vec::new();
    for name in ["group_vars", "host_vars"] {
        collect(directory, Utf8Path::new(name), &mut paths)?;
    }
    paths.sort();
    for path in &paths {
        if let Some(file) = VariableFile::of(path.as_str()) {
            let input = Input::read(&directory.join(path))?;
            inventory.add_variables(&file, path.as_str(), &input.bytes);
        }
    }
    Ok(())
}

/// The files below a directory and the directories in it, as paths from the inventory's. Links lead nowhere.
fn collect(
    top: &Utf8Path,
    below: &Utf8Path,
    paths: &mut Vec<Utf8PathBuf>,
) -> Result<(), CommandError> {
    let directory = top.join(below);
    let entries = match directory.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot_read(&directory, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| cannot_read(&directory, error))?;
        let kind = entry
            .file_type()
            .map_err(|error| cannot_read(entry.path(), error))?;
        let path = below.join(entry.file_name());
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && path.components().count() < MAX_DEPTH {
            collect(top, &path, paths)?;
        }
        if paths.len() > MAX_FILES {
            let message = format!("`{directory}`: more than {MAX_FILES} files of variables");
            return Err(CommandError::usage(message));
        }
    }
    Ok(())
}

fn cannot_read(path: &Utf8Path, error: std::io::Error) -> CommandError {
    CommandError::user(anyhow::Error::new(error).context(format!("cannot read `{path}`")))
}
