//! `portolan fleet why`: why a run, a node or a step is as it is.

use std::fmt::Write as _;

use portolan_fleet::{RunReport, WhyError, explain};
use portolan_kinds::find_kind;
use portolan_server::{FleetClient, FleetError, FleetMethod, ObjectPath};
use serde_json::Value;

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::runs::{order_in_time, run_path};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Explain why a run, a node or a step is as it is
///
/// WHAT is a run, or a node in its newest run. Behind a run may stand a node, and behind that a step: its path, or the last
/// name of it. A step is explained by its condition with the values that were looked at, by the variables that it uses and
/// where they came from, by who notified it, and by why it failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet why web-20261118-010203-4f1c
  portolan fleet why web-20261118-010203-4f1c web-3 package
  portolan fleet why web-3
  portolan fleet why web-3 restart -o json")]
pub(crate) struct WhyArgs {
    /// A run or a node, behind a run a node, then a step
    #[arg(value_name = "WHAT", required = true, num_args = 1..=3)]
    what: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: WhyFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WhyFormat {
    /// Sentences
    Text,
    /// `[{"subject", "state", "because": […]}]`
    Json,
}

pub(crate) fn why(args: &WhyArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let (report, node, step) = found(args, &client, app)?;
    let explained = explain(&report, node, step).map_err(not_explained)?;
    let text = match args.output {
        WhyFormat::Json => {
            let all: Vec<Value> = explained
                .iter()
                .map(portolan_fleet::RunExplanation::to_json)
                .collect();
            format!("{:#}\n", Value::from(all))
        }
        WhyFormat::Text => {
            let mut text = String::new();
            for one in &explained {
                let _ = writeln!(text, "{}: {}", one.subject, one.state);
                for reason in &one.because {
                    let _ = writeln!(text, "  {}", reason.replace('\n', "\n  "));
                }
            }
            text
        }
    };
    app.printer.data(text)?;
    Ok(ExitStatus::Clean)
}

/// The run that is asked about, with the node and the step.
type Asked<'a> = (RunReport, Option<&'a str>, Option<&'a str>);

fn found<'a>(
    args: &'a WhyArgs,
    client: &FleetClient,
    app: &App,
) -> Result<Asked<'a>, CommandError> {
    let mut words = args.what.iter().map(String::as_str);
    let first = words.next().unwrap_or_default();
    if let Some(report) = report(args, client, first, app)? {
        return Ok((report, words.next(), words.next()));
    }
    let (step, too_much) = (words.next(), words.next());
    let newest = newest_run(args, client, first, app)?;
    let report = match newest.filter(|_| too_much.is_none()) {
        Some(run) => report(args, client, &run, app)?,
        None => None,
    };
    let report = report.ok_or_else(|| {
        let namespace = &args.namespace.namespace;
        let message =
            format!("namespace {namespace} has no run `{first}`, and none with such a node");
        CommandError::user(anyhow::anyhow!(message)).hint("`portolan fleet runs list` lists runs")
    })?;
    Ok((report, Some(first), step))
}

/// What became of a run; `None` if there is no such run.
fn report(
    args: &WhyArgs,
    client: &FleetClient,
    run: &str,
    app: &App,
) -> Result<Option<RunReport>, CommandError> {
    let path = format!("{}/nodes", run_path(&args.namespace, run));
    let found = match app.wait(client.request(FleetMethod::Get, &path, &[], None))? {
        Ok(found) => found,
        Err(FleetError::Refused { status: 404, .. }) => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    let report = RunReport::read(&found);
    let unknown = || CommandError::usage("the server answers in a way that is not known here");
    report.map(Some).ok_or_else(unknown)
}

/// The name of the newest run that a node has a part in.
fn newest_run(
    args: &WhyArgs,
    client: &FleetClient,
    node: &str,
    app: &App,
) -> Result<Option<String>, CommandError> {
    let kind = find_kind("Run").ok_or_else(|| CommandError::usage("there is no kind Run"))?;
    let path = ObjectPath {
        kind,
        namespace: Some(args.namespace.namespace.clone()),
        name: None,
    };
    let (mut runs, _) = app.wait(client.list(&path, &[]))?.map_err(told)?;
    runs.retain(|run| {
        let mut nodes = run["spec"]["nodes"].as_array().into_iter().flatten();
        nodes.any(|one| one["name"] == node)
    });
    let newest = runs.iter().max_by_key(|run| order_in_time(run));
    Ok(newest.map(|run| shown::text(run, "metadata.name")))
}

fn not_explained(error: WhyError) -> CommandError {
    let hint = match &error {
        WhyError::NoStep { known, .. } if !known.is_empty() => {
            Some(format!("it has reported {}", known.join(", ")))
        }
        _ => None,
    };
    let error = CommandError::user(anyhow::anyhow!(error));
    hint.into_iter().fold(error, CommandError::hint)
}
