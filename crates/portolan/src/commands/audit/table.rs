//! `portolan audit table`: what is known about APIs.

use portolan_audit::{Lifecycle, NEWEST, Release, Table};
use portolan_yaml::{Map, Node, Value};

use super::judge_options::not_known;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the lifecycle table as YAML
///
/// One entry for every API version of every kind: when it was introduced, deprecated and removed, and what replaces it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan audit table
  portolan audit table --kind Ingress
  portolan audit table --component flux")]
pub(crate) struct TableArgs {
    /// Only this kind
    #[arg(long, help_heading = "Selection")]
    kind: Option<String>,

    /// Only this component: `k8s`, `flux`, `cert-manager` and so on
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    component: Option<String>,
}

pub(crate) fn table(args: &TableArgs, printer: &Printer) -> CommandResult {
    let wanted = |row: &&Lifecycle| {
        let kind = args.kind.as_deref().is_none_or(|kind| kind == row.api.kind);
        kind && args
            .component
            .as_deref()
            .is_none_or(|name| name == row.component)
    };
    let table = Table::default();
    args.check(&table)?;
    let mut text = format!("newest: \"{NEWEST}\"\napis:\n");
    for row in table.rows().filter(wanted) {
        let entry = portolan_yaml::write_v2(&record(row)).unwrap_or_default();
        for (number, line) in entry.lines().enumerate() {
            text.push_str(if number == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    printer.data(text)?;
    Ok(ExitStatus::Clean)
}

impl TableArgs {
    /// A misspelt name must not look like a table without the row.
    fn check(&self, table: &Table) -> Result<(), CommandError> {
        let kinds = table.rows().map(|row| &*row.api.kind).collect();
        for (what, name, known) in [
            ("kind", &self.kind, kinds),
            ("component", &self.component, table.components()),
        ] {
            if let Some(name) = name.as_deref().filter(|name| !known.contains(name)) {
                let error = format!("the table knows no {what} `{name}`");
                return Err(not_known(error, name, &known));
            }
        }
        Ok(())
    }
}

fn record(row: &Lifecycle) -> Node {
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            map.insert(key, Node::string(value));
        }
    };
    let release = |release: Option<Release>| release.map(|release| release.to_string());
    put("apiVersion", Some(row.api.api_version()));
    put("kind", Some(row.api.kind.to_string()));
    put("component", Some(row.component.to_string()));
    put("introduced", release(row.introduced));
    put("deprecated", release(row.deprecated));
    put("removed", release(row.removed));
    put(
        "replacement",
        row.replacement.as_ref().map(ToString::to_string),
    );
    put("note", Some(row.note.to_string()));
    Node::new(Value::Map(map))
}
