//! `portolan rollout judge`: what the decision about a recorded release would have been.

use camino::Utf8PathBuf;
use portolan_judge::{Judgement, judge_rows};
use portolan_object::API_VERSION;
use serde_json::json;

use super::output_args::{Format, OutputArgs};
use super::settings_args::SettingsArgs;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;
use crate::table::{Cell, Table};

/// Judge the counts of a recorded release, row by row
///
/// The file has the columns `time`, `canary_total`, `canary_bad`, `stable_total` and `stable_bad`, named in its first line;
/// each row holds the requests of one interval. The evidence after each row is printed as natural logarithms, and the first row
/// that decides. The exit code is 0 whatever the decision.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout judge release.csv
  portolan rollout judge release.csv --corrected -o json
  portolan rollout judge release.csv --harmful-odds 3 --false-promote-rate 0.01")]
pub(crate) struct JudgeArgs {
    /// Comma-separated counts; `-` is standard input
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,

    /// Use the corrections for real traffic that need no more than these columns
    ///
    /// Releases without errors can be proven, noise of one arm counts less, one interval decides nothing alone, a late
    /// regression is found, and differences that do not matter are no reason. Without it the plain test is used.
    #[arg(long, help_heading = "Input")]
    corrected: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) fn judge(args: &JudgeArgs, printer: &Printer) -> CommandResult {
    let settings = args.settings.settings(args.corrected)?;
    let input = Input::read(&args.file)?;
    let text = String::from_utf8(input.bytes)
        .map_err(|_| CommandError::usage(format!("`{}` is not UTF-8", input.name)))?;
    let judgement = judge_rows(&text, &settings).map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("cannot judge `{}`", input.name)))
            .hint("time,canary_total,canary_bad,stable_total,stable_bad: the counts of one interval a row")
    })?;
    match args.output.format {
        Format::Json => printer.data(as_json(&judgement))?,
        Format::Table => printer.data(as_table(&judgement, printer))?,
    }
    Ok(ExitStatus::Clean)
}

fn as_json(judgement: &Judgement) -> String {
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "RolloutJudgement",
        "decision": judgement.decision,
        "row": judgement.row,
        "rows": judgement.rows,
    });
    format!("{document:#}\n")
}

fn as_table(judgement: &Judgement, printer: &Printer) -> String {
    let mut table = Table::new(["ROW", "LN ROLLBACK", "LN PROMOTE"]);
    for (index, row) in judgement.rows.iter().enumerate() {
        table.push(vec![
            Cell::name((index + 1).to_string()),
            format!("{:.4}", row.ln_rollback).into(),
            format!("{:.4}", row.ln_promote).into(),
        ]);
    }
    let decision = match judgement.row {
        Some(row) => format!("{} after row {row}", judgement.decision),
        None => format!("{}: nothing is shown yet", judgement.decision),
    };
    format!("{}\n{decision}\n", table.render(printer.canvas()))
}
