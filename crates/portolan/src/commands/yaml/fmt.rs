//! `portolan yaml fmt`: a file printed again as Go's libraries print it.

use super::{CommandResult, DialectName, Files, Problem, convert_files, documents};
use crate::printer::Printer;

/// Print YAML again as Go's libraries do
///
/// With the helm dialect as Helm's `toYaml` prints the first document, with the kustomize dialect as `kustomize build`
/// prints all of them: keys sorted, comments dropped. The exit code is 1 when a file is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan yaml fmt --dialect helm values.yaml
  portolan yaml fmt --dialect kustomize deployment.yaml service.yaml")]
pub(super) struct FmtArgs {
    #[command(flatten)]
    files: Files,

    /// Whose rules apply
    #[arg(
        long,
        value_name = "NAME",
        default_value = "kustomize",
        help_heading = "Input"
    )]
    dialect: DialectName,
}

pub(super) fn fmt(args: &FmtArgs, printer: &Printer) -> CommandResult {
    convert_files(&args.files, printer, |bytes| {
        print_again(bytes, args.dialect)
    })
}

fn print_again(bytes: &[u8], dialect: DialectName) -> Result<String, Problem> {
    let print = match dialect {
        DialectName::Helm => portolan_yaml::write_v2,
        DialectName::Kustomize => portolan_yaml::write_kustomize,
    };
    let documents = documents(bytes, dialect)?;
    let texts: Result<Vec<_>, _> = documents.iter().map(print).collect();
    Ok(texts?.join("---\n"))
}
