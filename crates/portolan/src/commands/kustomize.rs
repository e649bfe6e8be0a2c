//! `portolan kustomize`: overlays built without kustomize.

mod build;
mod charts;
mod remote;

use super::CommandResult;
use crate::app::App;

/// Build kustomize overlays
#[derive(Debug, clap::Args)]
pub(crate) struct KustomizeArgs {
    #[command(subcommand)]
    command: KustomizeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KustomizeCommand {
    Build(build::BuildArgs),
}

pub(crate) fn kustomize(args: &KustomizeArgs, app: &App) -> CommandResult {
    match &args.command {
        KustomizeCommand::Build(args) => build::build(args, app),
    }
}
