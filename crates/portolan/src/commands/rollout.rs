//! `portolan rollout`: canaries judged by measurement.

mod judge;
mod settings_args;
mod simulate;

use super::CommandResult;
use crate::cli::Later;
use crate::printer::Printer;

/// Judge canaries by measurement, and try the judgement before trusting it
#[derive(Debug, clap::Args)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RolloutCommand {
    /// Judge the counts of a recorded release, row by row
    Judge(Later<judge::JudgeArgs>),
    /// Pretend many releases, and count how often a rule decides wrongly
    Simulate(Later<simulate::SimulateArgs>),
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    /// Columns
    #[default]
    Table,
    /// One JSON object
    Json,
}

pub(crate) fn rollout(args: &RolloutArgs, printer: &Printer) -> CommandResult {
    match &args.command {
        RolloutCommand::Judge(args) => judge::judge(args, printer),
        RolloutCommand::Simulate(args) => simulate::simulate(args, printer),
    }
}
