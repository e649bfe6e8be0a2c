//! `portolan ship schema`: the JSON schema of the document.

use portolan_ship::schema as json_schema;

use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the JSON schema of the document
///
/// Editors check and complete a `portolan.yaml` by it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan ship schema > portolan.schema.json
  sed -i '1i # yaml-language-server: $schema=portolan.schema.json' portolan.yaml")]
pub(crate) struct SchemaArgs {}

pub(crate) fn schema(_: &SchemaArgs, printer: &Printer) -> CommandResult {
    printer.data(format!("{:#}\n", json_schema()))?;
    Ok(ExitStatus::Clean)
}
