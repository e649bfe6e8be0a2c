//! `portolan yaml to-json`: converts a file to the JSON that Go makes from it.

use super::{CommandResult, DialectName, Files, Problem, convert_files, documents};
use crate::printer::Printer;

/// Print the JSON that Go's libraries make of YAML
///
/// One line per document. The helm dialect reads the first document only, as Helm does. The exit code is 1 when a
/// file is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan yaml to-json --dialect helm values.yaml
  portolan yaml to-json --dialect kustomize deployment.yaml | jq .spec.replicas")]
pub(super) struct ToJsonArgs {
    #[command(flatten)]
    files: Files,

    /// Whose rules apply
    #[arg(
        long,
        value_name = "NAME",
        default_value = "helm",
        help_heading = "Input"
    )]
    dialect: DialectName,
}

pub(super) fn to_json(args: &ToJsonArgs, printer: &Printer) -> CommandResult {
    convert_files(&args.files, printer, |bytes| {
        json_lines(bytes, args.dialect)
    })
}

fn json_lines(bytes: &[u8], dialect: DialectName) -> Result<String, Problem> {
    let mut text = String::new();
    for document in documents(bytes, dialect)? {
        text.push_str(&portolan_yaml::to_json(&document)?);
        text.push('\n');
    }
    Ok(text)
}
