//! `portolan fleet logs`: what became of every step of a run.

use portolan_fleet::RunReport;
use portolan_server::FleetMethod;

use super::connection::{ConnectionArgs, told};
use super::object_args::NamespaceArgs;
use super::run::RunScreen;
use super::runs::run_path;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Print what became of the steps of a run
///
/// Steps that did the same on several nodes are printed once, failures last with the end of their output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet logs web-20261118-010203-4f1c
  portolan fleet logs web-20261118-010203-4f1c --node web-3
  portolan fleet logs web-20261118-010203-4f1c -o json")]
pub(crate) struct LogsArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,

    /// Only these nodes
    #[arg(
        long = "node",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    nodes: Vec<String>,

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
    output: LogsFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of a run's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogsFormat {
    /// Steps, failures last
    Text,
    /// `{"run", "state", "nodes": [{"name", "state", "steps": […]}]}`, with notes, hints and output
    Json,
}

pub(crate) fn logs(args: &LogsArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let path = format!("{}/nodes", run_path(&args.namespace, &args.run));
    let asked = client.request(FleetMethod::Get, &path, &[], None);
    let found = app.wait(asked)?.map_err(told)?;
    let report = RunReport::read(&found);
    let mut report = report
        .ok_or_else(|| CommandError::usage("the server answers in a way that is not known here"))?;
    for name in &args.nodes {
        if !report.nodes.iter().any(|node| node.name == *name) {
            let message = format!("node `{name}` has no part in the run {}", args.run);
            return Err(CommandError::usage(message));
        }
    }
    report
        .nodes
        .retain(|node| args.nodes.is_empty() || args.nodes.contains(&node.name));
    match args.output {
        LogsFormat::Json => app.printer.data(format!("{:#}\n", report.to_record()))?,
        LogsFormat::Text => RunScreen::new(&app.printer, false).end_of_many(&report)?,
    }
    Ok(ExitStatus::Clean)
}
