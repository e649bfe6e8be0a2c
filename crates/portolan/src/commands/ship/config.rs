//! `portolan ship config`: the document as it is understood.

use portolan_object::API_VERSION;
use portolan_ship::EffectiveValue;

use super::project_args::{NamespaceArgs, Place, ProjectArgs};
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the document as it is understood, each value with where it comes from
///
/// Variables are put in and defaults filled in. A comment after each value says which line or option it comes from, or that it
/// is a default.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship config
  TEAM=red portolan ship config
  portolan ship config -p staging --registry localhost:5000 -n try
  portolan ship config -o json | jq '.values[] | select(.from == \"default\")'")]
pub(crate) struct ConfigArgs {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "yaml",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    project: ProjectArgs,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The document, with comments
    Yaml,
    /// A list of values in one JSON object
    Json,
}

pub(crate) fn config(args: &ConfigArgs, printer: &Printer) -> CommandResult {
    let place = Place {
        namespace: args.namespace.namespace.clone(),
        ..Place::default()
    };
    let project = args.project.read_for("config", place, printer)?;
    let variable = |name: &str| project.env.get(name).cloned();
    let effective = portolan_ship::effective(
        &project.text,
        project.file.as_str(),
        &variable,
        &project.asked,
    );
    let effective = effective.map_err(crate::error::CommandError::user)?;
    printer.data(match args.output {
        Format::Yaml => effective.to_yaml(),
        Format::Json => {
            let value = |value: &EffectiveValue| {
                serde_json::json!({"path": value.path, "value": value.text, "from": value.from})
            };
            let values: Vec<_> = effective.values.iter().map(value).collect();
            let json = serde_json::json!({
                "apiVersion": API_VERSION, "kind": "EffectiveDocument", "values": values,
            });
            format!("{json:#}\n")
        }
    })?;
    Ok(ExitStatus::Clean)
}
