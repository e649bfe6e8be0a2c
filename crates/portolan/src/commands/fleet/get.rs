//! `portolan fleet get`: objects as a table, YAML, JSON or names.

use portolan_server::{FleetClient, FleetMethod};
use serde_json::{Value, json};

use super::connection::{ConnectionArgs, told};
use super::object_args::{SelectionArgs, paths};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::Format;
use crate::printer::Printer;
use crate::table::Table;

/// List objects, or print them
///
/// Values of secrets are shown only with --reveal, and only to those who may `read-secret`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet get nodes
  portolan fleet get variables -n web -o yaml
  portolan fleet get var/region secret/db -n web
  portolan fleet get namespaces,nodegroups -o name
  portolan fleet get nodes -l role=web -o wide")]
pub(crate) struct GetArgs {
    /// KIND, KIND NAME…, or KIND/NAME…
    #[arg(value_name = "OBJECT", required = true)]
    objects: Vec<String>,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,

    /// Show the values of secrets
    #[arg(long, help_heading = "Output")]
    reveal: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn get(args: &GetArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let objects = app.runtime()?.block_on(fetch(args, &client))?;
    print(
        objects,
        args.output,
        args.selection.all_namespaces,
        &app.printer,
    )?;
    Ok(ExitStatus::Clean)
}

async fn fetch(args: &GetArgs, client: &FleetClient) -> Result<Vec<Value>, CommandError> {
    let paths = paths(&args.objects, |kind| args.selection.namespace_of(kind))?;
    let mut found = Vec::new();
    for path in paths {
        if path.name.is_none() {
            let (items, _) = client
                .list(&path, &args.selection.query())
                .await
                .map_err(told)?;
            found.extend(items);
            continue;
        }
        let reveal = args.reveal && path.kind.name == "Secret";
        let query: &[(&str, &str)] = if reveal { &[("reveal", "true")] } else { &[] };
        let object = client
            .request(FleetMethod::Get, &path.to_string(), query, None)
            .await;
        found.push(object.map_err(told)?);
    }
    Ok(found)
}

/// Prints objects; those of several namespaces with their namespaces.
pub(super) fn print(
    objects: Vec<Value>,
    output: Format,
    is_of_all_namespaces: bool,
    printer: &Printer,
) -> Result<(), CommandError> {
    match output {
        Format::Name => {
            let names: String = objects
                .iter()
                .flat_map(|object| [shown::name(object), "\n".to_owned()])
                .collect();
            printer.data(names)
        }
        Format::Yaml => {
            let texts: Result<Vec<String>, CommandError> =
                objects.iter().map(shown::yaml).collect();
            printer.data(texts?.join("---\n"))
        }
        Format::Json => {
            let one = if objects.len() == 1 {
                objects.into_iter().next().unwrap_or_default()
            } else {
                json!({"apiVersion": portolan_kinds::VERSION, "kind": "List", "items": objects})
            };
            printer.data(format!("{one:#}\n"))
        }
        Format::Table | Format::Wide if objects.is_empty() => {
            printer.say_unless_quiet("nothing found");
            Ok(())
        }
        Format::Table | Format::Wide => {
            let is_wide = output == Format::Wide;
            printer.data(tables(&objects, is_wide, is_of_all_namespaces, printer))
        }
    }
}

/// A table for each kind.
fn tables(
    objects: &[Value],
    is_wide: bool,
    is_of_all_namespaces: bool,
    printer: &Printer,
) -> String {
    let mut texts: Vec<String> = Vec::new();
    for kind in portolan_kinds::KINDS {
        let of_kind: Vec<&Value> = objects
            .iter()
            .filter(|object| object["kind"] == kind.name)
            .collect();
        if of_kind.is_empty() {
            continue;
        }
        let with_namespace = is_of_all_namespaces && kind.is_namespaced;
        let mut table = Table::new(shown::titles(kind, is_wide, with_namespace));
        for object in of_kind {
            table.push(shown::row(kind, object, is_wide, with_namespace));
        }
        texts.push(table.render(printer.canvas()));
    }
    texts.join("\n")
}
