//! `portolan fleet triggers`: triggers, and what an event would do to them.

mod test;

use self::test::TestArgs;
use super::connection::ConnectionArgs;
use super::cron;
use super::object_args::SelectionArgs;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::listing::Format;

/// List Triggers, and ask what they would do about an event
///
/// Without a command, it lists triggers with how often they fired, their last run, and why they are switched off.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  portolan fleet triggers
  portolan fleet triggers -A -o wide
  portolan fleet triggers test -f event.yaml")]
pub(crate) struct TriggersArgs {
    #[command(subcommand)]
    command: Option<TriggersCommand>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum TriggersCommand {
    /// Say whether an event would fire each trigger, and why, without firing any
    Test(Later<TestArgs>),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn triggers(args: &TriggersArgs, app: &App) -> CommandResult {
    if let Some(TriggersCommand::Test(args)) = &args.command {
        return test::test(args, app);
    }
    let list = &args.list;
    cron::list(
        "Trigger",
        &list.selection,
        list.output,
        &list.connection,
        app,
    )?;
    Ok(ExitStatus::Clean)
}
