//! `portolan completions`: the completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use super::CommandResult;
use crate::cli::Cli;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Print the completion script of a shell
///
/// The script goes to standard output; load it in the shell's start file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan completions bash > ~/.local/share/bash-completion/completions/portolan
  portolan completions fish > ~/.config/fish/completions/portolan.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell to print it for
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, printer: &Printer) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "portolan", &mut script);
    printer.data(script)?;
    Ok(ExitStatus::Clean)
}
