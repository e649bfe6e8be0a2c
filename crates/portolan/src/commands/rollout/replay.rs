//! `portolan rollout replay`: a past release judged again.

use portolan_judge::Judgement;
use portolan_object::API_VERSION;
use portolan_prometheus::{ReplayError, Replayed, replay as replayed};
use portolan_rollout::{Slot, Time};
use serde_json::{Value, json};

use super::arms::arms;
use super::cluster_args::OneArgs;
use super::output_args::{Format, OutputArgs};
use super::prometheus_args::PrometheusArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Judge a past release again by what Prometheus has kept of it
///
/// Every metric that counts requests is read interval by interval between the two moments, and judged as the operator
/// would have. The slots are those of now unless the new revision's is named.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout replay web --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z
  portolan rollout replay web --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z --new-slot a -o json")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    one: OneArgs,

    /// The first moment, as in 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Time")]
    from: Time,

    /// The last moment
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Time")]
    to: Time,

    /// The slot of the new revision then; that of now when it is not given
    #[arg(long, value_name = "SLOT", value_parser = ["a", "b"], help_heading = "Selection")]
    new_slot: Option<String>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    prometheus: PrometheusArgs,
}

pub(crate) fn replay(args: &ReplayArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let prometheus = args.prometheus.server()?;
    let found = app.runtime()?.block_on(async {
        let rollout = args.one.find().await?.rollout().await?;
        let new = args.new_slot.as_deref().map(|slot| match slot {
            "a" => Slot::A,
            _ => Slot::B,
        });
        let arms = arms(&rollout, new, false);
        let between = (args.from, args.to);
        let found = replayed(&prometheus, rollout.analysis(), &arms, between).await;
        found.map_err(|error| match error {
            ReplayError::Rows(_) => CommandError::user(error),
            ReplayError::NoTime | ReplayError::TooLong { .. } => {
                CommandError::usage(error.to_string())
            }
        })
    })?;
    match args.output.format {
        Format::Json => printer.data(as_json(&found))?,
        Format::Table => printer.data(as_text(&found))?,
    }
    // What was not read may have decided otherwise.
    if found.iter().any(|replayed| replayed.unread > 0) {
        return Err(CommandError::usage("not every interval could be read"));
    }
    if found
        .iter()
        .any(|replayed| replayed.judgement.rows.is_empty())
    {
        return Err(CommandError::usage(
            "Prometheus has no requests of both revisions between the two moments",
        ));
    }
    Ok(ExitStatus::Clean)
}

fn as_json(found: &[Replayed]) -> String {
    let item = |replayed: &Replayed| {
        let Replayed {
            metric,
            judgement,
            unread,
        } = replayed;
        json!({"metric": metric, "judgement": judgement, "unread": unread})
    };
    let items: Vec<Value> = found.iter().map(item).collect();
    let document = json!({"apiVersion": API_VERSION, "kind": "RolloutReplay", "items": items});
    format!("{document:#}\n")
}

fn as_text(found: &[Replayed]) -> String {
    let line = |replayed: &Replayed| {
        let decided = decided(&replayed.judgement);
        let (metric, unread) = (&replayed.metric, replayed.unread);
        format!("{metric}: {decided}; intervals that could not be read: {unread}\n")
    };
    found.iter().map(line).collect()
}

fn decided(judgement: &Judgement) -> String {
    let (decision, intervals) = (&judgement.decision, judgement.rows.len());
    match judgement.row {
        Some(row) => format!("{decision} after {row} of {intervals} intervals"),
        None => format!("{decision}: nothing is shown by {intervals} intervals"),
    }
}

fn parse_time(text: &str) -> Result<Time, String> {
    let quoted = Value::String(text.to_owned());
    serde_json::from_value(quoted)
        .map_err(|_| format!("`{text}` is no moment such as 2026-01-31T12:00:00Z"))
}
