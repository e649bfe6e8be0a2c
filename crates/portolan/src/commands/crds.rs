//! `portolan crds`: the definitions of Portolan's own kinds.

use portolan_rollout::{analysis_crds_yaml, crd_yaml};
use portolan_yaml::{Dialect, parse_one, to_json};

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the definitions of Portolan's own kinds
///
/// `IstioCanaryDeployment`, `RolloutAnalysis` and `ClusterRolloutAnalysis`, to be applied before the operator starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan crds | kubectl apply --server-side -f -
  portolan crds -o json")]
pub(crate) struct CrdsArgs {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "yaml",
        help_heading = "Output"
    )]
    output: Format,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One YAML document for each
    Yaml,
    /// A list in JSON
    Json,
}

pub(crate) fn crds(args: &CrdsArgs, printer: &Printer) -> CommandResult {
    let all = std::iter::once(crd_yaml()).chain(analysis_crds_yaml());
    match args.output {
        Format::Yaml => {
            let documents: Vec<&str> = all.collect();
            printer.data(documents.join("---\n"))?;
        }
        Format::Json => {
            let mut items = Vec::new();
            for definition in all {
                let node = parse_one(definition, Dialect::Helm).map_err(CommandError::user)?;
                let json = to_json(&node).map_err(CommandError::user)?;
                items.push(
                    serde_json::from_str::<serde_json::Value>(&json).map_err(CommandError::user)?,
                );
            }
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
            printer.data(format!("{list:#}\n"))?;
        }
    }
    Ok(ExitStatus::Clean)
}
