//! `portolan rollout`: canaries decided by measured traffic.

mod adopt;
mod arms;
mod cluster_args;
mod command;
mod convert;
mod edit;
mod explain;
mod get;
mod judge;
mod lint;
mod list;
mod output_args;
mod prometheus_args;
mod query;
mod replay;
mod settings_args;
mod simulate;
mod status;

use portolan_rollout::Command;

use super::CommandResult;
use crate::app::App;
use crate::cli::Later;

/// Judge canaries by measurement, look after them, and convert those of other tools
#[derive(Debug, clap::Args)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RolloutCommand {
    /// Go back to the old revision
    #[command(
        after_help = "Examples:\n  portolan rollout abort shop/web\n  portolan rollout abort web -n shop"
    )]
    Abort(Later<command::CommandArgs>),
    /// Print the rollout that takes a running Deployment over, and the steps without an outage
    Adopt(Later<adopt::AdoptArgs>),
    /// Convert canaries of Flagger and Argo Rollouts
    Convert(Later<convert::ConvertArgs>),
    /// Say why a rollout stands where it stands, with numbers
    Explain(Later<explain::ExplainArgs>),
    /// Make the new revision the stable one without judging it
    #[command(
        after_help = "Examples:\n  portolan rollout force shop/web\n  portolan rollout force web -n shop"
    )]
    Force(Later<command::CommandArgs>),
    /// Show one rollout: slots, pods, weights and evidence
    Get(Later<get::GetArgs>),
    /// Show what happened to a rollout, with the evidence of each step
    History(Later<explain::HistoryArgs>),
    /// Judge the counts of a recorded release, row by row
    Judge(Later<judge::JudgeArgs>),
    /// Check rollouts in files, and tell the most pods that each has at once
    Lint(Later<lint::LintArgs>),
    /// List rollouts with where they stand
    List(Later<list::ListArgs>),
    /// Hold the weight where it is
    #[command(
        after_help = "Examples:\n  portolan rollout pause shop/web\n  portolan rollout pause web -n shop"
    )]
    Pause(Later<command::CommandArgs>),
    /// Make the running canary the stable revision now
    #[command(
        after_help = "Examples:\n  portolan rollout promote shop/web\n  portolan rollout promote web -n shop"
    )]
    Promote(Later<command::CommandArgs>),
    /// Ask Prometheus for the requests of both revisions now
    Query(Later<query::QueryArgs>),
    /// Let the operator go of an application, which keeps running
    Release(Later<edit::ReleaseArgs>),
    /// Judge a past release again by what Prometheus has kept of it
    Replay(Later<replay::ReplayArgs>),
    /// Start all pods again, as a new revision that is judged like any other
    Restart(Later<edit::RestartArgs>),
    /// End `pause`, and a step that waits for a person
    #[command(
        after_help = "Examples:\n  portolan rollout resume shop/web\n  portolan rollout resume web -n shop"
    )]
    Resume(Later<command::CommandArgs>),
    /// Try a revision again that was rolled back
    #[command(
        after_help = "Examples:\n  portolan rollout retry shop/web\n  portolan rollout retry web -n shop"
    )]
    Retry(Later<command::CommandArgs>),
    /// Change something of the pod template
    Set(Later<edit::SetArgs>),
    /// Pretend many releases, and count how often a rule decides wrongly
    Simulate(Later<simulate::SimulateArgs>),
    /// Say whether the newest revision made it
    Status(Later<status::StatusArgs>),
    /// Go back to the revision that was stable before
    #[command(
        after_help = "Examples:\n  portolan rollout undo shop/web\n  portolan rollout undo web -n shop"
    )]
    Undo(Later<command::CommandArgs>),
}

pub(crate) fn rollout(args: &RolloutArgs, app: &App) -> CommandResult {
    use RolloutCommand as Asked;
    match &args.command {
        Asked::Abort(args) => command::command(args, Command::Abort, app),
        Asked::Adopt(args) => adopt::adopt(args, app),
        Asked::Convert(args) => convert::convert(args, &app.printer),
        Asked::Explain(args) => explain::explain(args, app),
        Asked::Force(args) => command::command(args, Command::Force, app),
        Asked::Get(args) => get::get(args, app),
        Asked::History(args) => explain::history(args, app),
        Asked::Judge(args) => judge::judge(args, &app.printer),
        Asked::Lint(args) => lint::lint(args, app),
        Asked::List(args) => list::list(args, app),
        Asked::Pause(args) => command::command(args, Command::Pause, app),
        Asked::Promote(args) => command::command(args, Command::Promote, app),
        Asked::Query(args) => query::query(args, app),
        Asked::Release(args) => edit::release(args, app),
        Asked::Replay(args) => replay::replay(args, app),
        Asked::Restart(args) => edit::restart(args, app),
        Asked::Resume(args) => command::command(args, Command::Resume, app),
        Asked::Retry(args) => command::command(args, Command::Retry, app),
        Asked::Set(args) => edit::set(args, app),
        Asked::Simulate(args) => simulate::simulate(args, &app.printer),
        Asked::Status(args) => status::status(args, app),
        Asked::Undo(args) => command::command(args, Command::Undo, app),
    }
}
