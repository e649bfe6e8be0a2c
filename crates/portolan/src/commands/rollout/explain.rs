//! `portolan rollout explain` and `history`: why a rollout is in its current state, and what happened before.

use std::fmt::Write as _;

use portolan_canary::{explain as words, metric_line};
use portolan_object::API_VERSION;
use serde_json::json;

use super::cluster_args::OneArgs;
use super::output_args::{Format, OutputArgs};
use crate::app::App;
use crate::commands::CommandResult;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// Say why a rollout stands where it stands, with numbers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout explain web
  portolan rollout explain shop/web -o json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    one: OneArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Show what happened to a rollout, with the evidence of each step
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout history web
  portolan rollout history web -o json")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    one: OneArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn explain(args: &ExplainArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let rollout = app
        .runtime()?
        .block_on(async { args.one.find().await?.rollout().await })?;
    let lines = words(&rollout);
    match args.output.format {
        Format::Table => printer.data(format!("{}\n", lines.join("\n")))?,
        Format::Json => {
            let evidence = rollout
                .status
                .as_ref()
                .map(portolan_rollout::Status::evidence);
            let document = json!({
                "apiVersion": API_VERSION,
                "kind": "RolloutExplanation",
                "namespace": rollout.namespace,
                "name": rollout.name,
                "lines": lines,
                "evidence": evidence,
            });
            printer.data(format!("{document:#}\n"))?;
        }
    }
    Ok(ExitStatus::Clean)
}

pub(crate) fn history(args: &HistoryArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let rollout = app
        .runtime()?
        .block_on(async { args.one.find().await?.rollout().await })?;
    let records = rollout
        .status
        .map(|status| status.history)
        .unwrap_or_default();
    if args.output.format == Format::Json {
        let document =
            json!({"apiVersion": API_VERSION, "kind": "RolloutHistory", "items": records});
        printer.data(format!("{document:#}\n"))?;
        return Ok(ExitStatus::Clean);
    }
    if records.is_empty() {
        printer.say_unless_quiet("nothing happened yet");
        return Ok(ExitStatus::Clean);
    }
    let mut table = Table::new(["TIME", "REVISION", "PHASE", "WEIGHT", "REASON", "MESSAGE"]);
    for record in &records {
        let revision = record
            .revision
            .as_ref()
            .map(portolan_rollout::Revision::as_str);
        let outcome = record
            .outcome
            .map(|outcome| format!(" ({outcome})"))
            .unwrap_or_default();
        table.push(vec![
            record.at.to_string().as_str().into(),
            Cell::name(revision.unwrap_or_default()),
            format!("{}{outcome}", record.to).as_str().into(),
            format!("{} %", record.weight).as_str().into(),
            record.reason.as_str().into(),
            record.message.as_str().into(),
        ]);
    }
    let mut text = table.render(printer.canvas());
    if let Some(last) = records.iter().rfind(|record| !record.evidence.is_empty()) {
        text.push_str("\nevidence of the last that was judged:\n");
        for summary in &last.evidence {
            let _ = writeln!(
                text,
                "  {}",
                metric_line(summary, &rollout.spec.analysis, None)
            );
        }
    }
    printer.data(text)?;
    Ok(ExitStatus::Clean)
}
