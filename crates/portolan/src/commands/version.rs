//! `portolan version`: the version of this program.

use super::CommandResult;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan version")]
pub(crate) struct VersionArgs {}

pub(crate) fn version(_args: &VersionArgs, printer: &Printer) -> CommandResult {
    printer.data(concat!("portolan ", env!("CARGO_PKG_VERSION"), "\n"))?;
    Ok(ExitStatus::Clean)
}
