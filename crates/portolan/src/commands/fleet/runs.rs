//! `portolan fleet runs`: which runs there were, and what to do about them.

mod list;
mod rerun;

use portolan_server::FleetMethod;
use serde_json::{Value, json};

use self::list::ListArgs;
use self::rerun::RerunArgs;
use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// List runs, approve, end and repeat them, and let stalled ones go on
///
/// Without a command, it lists runs as `list` does.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum RunsCommand {
    /// Let the next batch of a run begin that waits for an approval
    Approve(Later<ApproveArgs>),
    /// End a run: current steps end, and no more are begun
    Cancel(Later<CancelArgs>),
    /// List runs, the newest first
    List(Later<ListArgs>),
    /// Make a new run of what a run was made from
    Rerun(Later<RerunArgs>),
    /// Let a stalled run go on
    Resume(Later<ResumeArgs>),
}

/// End a run: current steps end, and no more are begun
///
/// Nodes that were not begun are skipped. With --now, current steps get SIGTERM, and SIGKILL after ten seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs cancel web-20261118-010203-4f1c
  portolan fleet runs cancel web-20261118-010203-4f1c --now -n shop")]
struct CancelArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,

    /// End current steps, too
    #[arg(long, help_heading = "Run")]
    now: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Let the next batch of a run begin that waits for an approval
///
/// Each gate between two batches needs an approval of its own, by somebody with the right `approve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs approve web-20261118-010203-4f1c")]
struct ApproveArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Let a stalled run go on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs resume web-20261118-010203-4f1c")]
struct ResumeArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn runs(args: &RunsArgs, app: &App) -> CommandResult {
    let Some(command) = &args.command else {
        list::list(&args.list, app)?;
        return Ok(ExitStatus::Clean);
    };
    match command {
        RunsCommand::List(args) => list::list(args, app)?,
        RunsCommand::Rerun(args) => return rerun::rerun(args, app),
        RunsCommand::Approve(args) => {
            let path = format!("{}/approve", run_path(&args.namespace, &args.run));
            ask(&args.connection, &path, &json!({}), app)?;
            app.printer.data(format!("run/{} approved\n", args.run))?;
        }
        RunsCommand::Cancel(args) => {
            let body = json!({"how": if args.now { "now" } else { "drain" }});
            let path = format!("{}/cancel", run_path(&args.namespace, &args.run));
            ask(&args.connection, &path, &body, app)?;
            app.printer.data(format!("run/{} ends\n", args.run))?;
        }
        RunsCommand::Resume(args) => {
            let path = format!("{}/resume", run_path(&args.namespace, &args.run));
            ask(&args.connection, &path, &json!({}), app)?;
            app.printer.data(format!("run/{} goes on\n", args.run))?;
        }
    }
    Ok(ExitStatus::Clean)
}

/// What orders runs by when they were made: their status has that with microseconds. Runs of older servers have whole seconds;
/// of two in one second the one that was written last is later.
pub(super) fn order_in_time(run: &Value) -> (String, Vec<u64>) {
    let made = shown::text(run, "status.startedAt");
    let version = shown::text(run, "metadata.resourceVersion");
    let numbers = version.split(|letter: char| !letter.is_ascii_digit());
    let numbers = numbers.filter_map(|number| number.parse().ok());
    let made = match made.as_str() {
        "" => shown::text(run, "metadata.creationTimestamp"),
        _ => made,
    };
    // A point sorts before the `Z` of a time without a fraction.
    (made.replace('Z', ""), numbers.collect())
}

pub(super) fn run_path(namespace: &NamespaceArgs, run: &str) -> String {
    format!("/api/v1alpha/namespaces/{}/runs/{run}", namespace.namespace)
}

fn ask(
    connection: &ConnectionArgs,
    path: &str,
    body: &Value,
    app: &App,
) -> Result<Value, CommandError> {
    let client = connection.connect()?;
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, path, &[], Some(&body));
    app.wait(asked)?.map_err(told)
}
