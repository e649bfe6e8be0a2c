//! `portolan helm`: charts rendered and checked without Helm.

mod chart_options;
mod lint;
mod template;

use super::CommandResult;
use crate::printer::Printer;

/// Render and check Helm charts
#[derive(Debug, clap::Args)]
pub(crate) struct HelmArgs {
    #[command(subcommand)]
    command: HelmCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HelmCommand {
    Lint(lint::LintArgs),
    Template(template::TemplateArgs),
}

pub(crate) fn helm(args: &HelmArgs, printer: &Printer) -> CommandResult {
    match &args.command {
        HelmCommand::Lint(args) => lint::lint(args, printer),
        HelmCommand::Template(args) => template::template(args, printer),
    }
}
