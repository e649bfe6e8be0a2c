//! `portolan fleet runs`: which runs there were, and what to do about them.

use portolan_kinds::find_kind;
use portolan_server::{FleetMethod, ObjectPath};
use serde_json::{Value, json};

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// List runs, end them, and let stalled ones go on
#[derive(Debug, clap::Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RunsCommand {
    /// End a run: current steps end, and no more are begun
    Cancel(Later<CancelArgs>),
    /// List runs, the newest first
    List(Later<ListArgs>),
    /// Let a stalled run go on
    Resume(Later<ResumeArgs>),
}

/// List runs, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet runs list
  portolan fleet runs list -n shop --book web
  portolan fleet runs list -o json")]
struct ListArgs {
    /// Only runs of this book
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    book: Option<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: ListFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ListFormat {
    /// Columns
    Table,
    /// The objects
    Json,
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
    match &args.command {
        RunsCommand::List(args) => list(args, app)?,
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

fn list(args: &ListArgs, app: &App) -> Result<(), CommandError> {
    let client = args.connection.connect()?;
    let kind = find_kind("Run").ok_or_else(|| CommandError::usage("there is no kind Run"))?;
    let path = ObjectPath {
        kind,
        namespace: Some(args.namespace.namespace.clone()),
        name: None,
    };
    let fields = args.book.as_ref().map(|book| format!("spec.book={book}"));
    let query: Vec<(&str, &str)> = fields
        .iter()
        .map(|text| ("fieldSelector", text.as_str()))
        .collect();
    let (mut items, _) = app.wait(client.list(&path, &query))?.map_err(told)?;
    items.sort_by_key(|run| std::cmp::Reverse(shown::text(run, "metadata.creationTimestamp")));
    if args.output == ListFormat::Json {
        let list =
            json!({"apiVersion": portolan_kinds::VERSION, "kind": "RunList", "items": items});
        return app.printer.data(format!("{list:#}\n"));
    }
    let mut table = Table::new(["NAME", "BOOK", "MODE", "PHASE", "NODES", "AGE", "REASON"]);
    for run in &items {
        table.push(vec![
            Cell::name(shown::text(run, "metadata.name")),
            Cell::from(shown::text(run, "spec.book")),
            Cell::from(shown::text(run, "spec.mode")),
            Cell::from(shown::text(run, "status.phase")),
            Cell::from(nodes(run)),
            Cell::from(shown::age(&shown::text(run, "metadata.creationTimestamp"))),
            Cell::from(shown::text(run, "status.reason")),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))
}

/// How many nodes ended in each state, or how many there are.
fn nodes(run: &Value) -> String {
    let counts = run["status"]["counts"].as_object().into_iter().flatten();
    let counts: Vec<String> = counts
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    if counts.is_empty() {
        let all = run["spec"]["nodes"].as_array().map_or(0, Vec::len);
        return all.to_string();
    }
    counts.join(", ")
}
