//! `portolan man`: the manual pages, made from the same text as `--help`.

use std::fs;

use camino::Utf8PathBuf;
use clap::CommandFactory;

use super::CommandResult;
use crate::cli::Cli;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Write the manual pages, one file per command
///
/// Without a directory the first page goes to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan man | man -l -
  portolan man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory to write the pages to; it is made when it is missing
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    dir: Option<Utf8PathBuf>,
}

pub(crate) fn man(args: &ManArgs, printer: &Printer) -> CommandResult {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        printer.data(page)?;
        return Ok(ExitStatus::Clean);
    };
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.map_err(|error| {
        CommandError::user(
            anyhow::Error::new(error).context(format!("cannot write manual pages to `{dir}`")),
        )
    })?;
    Ok(ExitStatus::Clean)
}
