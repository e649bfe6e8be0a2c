//! `portolan rollout query` and `replay`: what both revisions' metrics say now, and what they would have decided.

use std::fmt::Write as _;
use std::time::SystemTime;

use portolan_canary::Rollout;
use portolan_judge::{Corrections, Judgement, Settings, judge_rows};
use portolan_object::API_VERSION;
use portolan_prometheus::{ArmLabels, Arms, Measured, Question, measure};
use portolan_rollout::{Analysis, Measurement, Metric, Slot, Span, Time};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::Format;
use super::cluster_args::OneArgs;
use super::prometheus_args::PrometheusArgs;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Ask Prometheus for the requests of both revisions now
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout query web --prometheus http://localhost:9090
  portolan rollout query web --over 5m -o json")]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    one: OneArgs,

    /// How far back requests are counted
    #[arg(long, value_name = "TIME", default_value = "1m", help_heading = "Time")]
    over: Span,

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
    prometheus: PrometheusArgs,
}

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
    prometheus: PrometheusArgs,
}

/// So many intervals are replayed at most.
const MOST_INTERVALS: u64 = 10_000;

pub(crate) fn query(args: &QueryArgs, printer: &Printer) -> CommandResult {
    let prometheus = args.prometheus.server()?;
    let answers = Runtime::new()?.block_on(async {
        let rollout = args.one.find().await?.rollout().await?;
        let arms = arms(&rollout, None, true);
        let now = SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .as_secs();
        let to = i64::try_from(now).unwrap_or(0) - 1;
        let from = to.saturating_sub_unsigned(args.over.seconds());
        let mut answers = Vec::new();
        for metric in analysis(&rollout).metrics_or_default() {
            let question = question(&arms, (Time::from_unix(from), Time::from_unix(to)));
            answers.push((
                metric.name.clone(),
                measure(&prometheus, &metric, question).await,
            ));
        }
        Ok::<_, CommandError>(answers)
    })?;
    match args.output {
        Format::Json => {
            let items: Vec<Value> = answers
                .iter()
                .map(|(name, measured)| as_json(name, measured))
                .collect();
            let document =
                json!({"apiVersion": API_VERSION, "kind": "RolloutQuery", "items": items});
            printer.data(format!("{document:#}\n"))?;
        }
        Format::Table => {
            for (name, measured) in &answers {
                printer.data(format!("{name}: {}\n", in_words(measured)))?;
            }
        }
    }
    let is_blind = |measured: &Measured| {
        matches!(
            measured.measurement,
            None | Some(Measurement::Slow | Measurement::Down(_))
        )
    };
    if answers.iter().any(|(_, measured)| is_blind(measured)) {
        return Err(CommandError::usage("not every metric could be read"));
    }
    Ok(ExitStatus::Clean)
}

pub(crate) fn replay(args: &ReplayArgs, printer: &Printer) -> CommandResult {
    let prometheus = args.prometheus.server()?;
    let replayed = Runtime::new()?.block_on(async {
        let rollout = args.one.find().await?.rollout().await?;
        let new = match args.new_slot.as_deref() {
            Some("a") => Some(Slot::A),
            Some(_) => Some(Slot::B),
            None => None,
        };
        let arms = arms(&rollout, new, false);
        let analysis = analysis(&rollout);
        let step = analysis.interval.seconds().max(1);
        if args.to.since(args.from) / step > MOST_INTERVALS {
            return Err(CommandError::usage(format!(
                "more than {MOST_INTERVALS} intervals lie between the two moments"
            )));
        }
        let mut replayed = Vec::new();
        for metric in analysis.metrics_or_default() {
            if metric.threshold().is_some() {
                continue;
            }
            let (rows, unread) =
                rows(&prometheus, &metric, &arms, (args.from, args.to), step).await;
            let settings = settings(analysis, &metric);
            let judgement = judge_rows(&rows, &settings).map_err(CommandError::user)?;
            replayed.push((metric.name, judgement, unread));
        }
        Ok(replayed)
    })?;
    let mut status = ExitStatus::Clean;
    if replayed
        .iter()
        .any(|(_, judgement, _)| judgement.rows.is_empty())
    {
        status = ExitStatus::Failure;
    }
    match args.output {
        Format::Json => {
            let items: Vec<Value> = replayed
                .iter()
                .map(|(name, judgement, unread)| json!({"metric": name, "judgement": judgement, "unread": unread}))
                .collect();
            let document =
                json!({"apiVersion": API_VERSION, "kind": "RolloutReplay", "items": items});
            printer.data(format!("{document:#}\n"))?;
        }
        Format::Table => {
            for (name, judgement, unread) in &replayed {
                printer.data(format!(
                    "{name}: {}; {unread} intervals could not be read\n",
                    decided(judgement)
                ))?;
            }
        }
    }
    Ok(status)
}

fn decided(judgement: &Judgement) -> String {
    let intervals = judgement.rows.len();
    match judgement.row {
        Some(row) => format!(
            "{} after {row} of {intervals} intervals",
            judgement.decision
        ),
        None => format!(
            "{}: nothing is shown by {intervals} intervals",
            judgement.decision
        ),
    }
}

/// Counts of every interval as rows of a table, and how many intervals could not be read.
async fn rows(
    prometheus: &portolan_prometheus::Prometheus,
    metric: &Metric,
    arms: &Arms,
    (from, to): (Time, Time),
    step: u64,
) -> (String, usize) {
    let mut rows = "time,canary_total,canary_bad,stable_total,stable_bad\n".to_owned();
    let (mut unread, mut begin, mut end) = (0, from, from);
    while end < to {
        end = end.after(Span::from_seconds(step)).min(to);
        let measured = measure(prometheus, metric, question(arms, (begin, end))).await;
        match &measured.measurement {
            Some(Measurement::Counts { canary, stable, .. }) => {
                let (canary, stable) = (canary.counts, stable.counts);
                let _ = writeln!(
                    rows,
                    "{},{},{},{},{}",
                    end.unix(),
                    canary.total,
                    canary.bad,
                    stable.total,
                    stable.bad
                );
            }
            None => {}
            Some(_) => unread += 1,
        }
        begin = measured.next_from;
    }
    (rows, unread)
}

fn question(arms: &Arms, (from, to): (Time, Time)) -> Question<'_> {
    Question {
        arms,
        from,
        to,
        warm_up_seconds: 0,
    }
}

fn settings(analysis: &Analysis, metric: &Metric) -> Settings {
    let settings = analysis.settings(metric, 1, Corrections::default().noise);
    Settings {
        attempt: None,
        ..settings
    }
}

/// The analysis of the running canary, or else of the spec.
fn analysis(rollout: &Rollout) -> &Analysis {
    let canary = rollout
        .status
        .as_ref()
        .and_then(|status| status.canary.as_deref());
    canary.map_or(&rollout.spec.analysis, |canary| &canary.plan.analysis)
}

/// The two revisions by slots; by their names too if they run now.
fn arms(rollout: &Rollout, new: Option<Slot>, is_now: bool) -> Arms {
    let status = rollout.status.as_ref();
    let stable = status.map_or(Slot::A, portolan_rollout::Status::stable_slot);
    let new = new.unwrap_or_else(|| stable.other());
    let labels = |slot: Slot| {
        let plan = status.and_then(|status| status.slots.get(slot).as_ref());
        let revision = plan
            .filter(|_| is_now)
            .map(|plan| plan.revision.as_str().to_owned());
        ArmLabels {
            slot: format!("{}-{slot}", rollout.name),
            revision: revision.unwrap_or_default(),
            ..ArmLabels::default()
        }
    };
    Arms {
        namespace: rollout.namespace.clone(),
        name: rollout.name.clone(),
        canary: labels(new),
        stable: labels(new.other()),
        ..Arms::default()
    }
}

fn in_words(measured: &Measured) -> String {
    let answer = match &measured.measurement {
        None => "fewer than two scrapes so far".to_owned(),
        Some(Measurement::Counts { canary, stable, .. }) => format!(
            "new {} bad of {}, old {} bad of {}",
            canary.counts.bad, canary.counts.total, stable.counts.bad, stable.counts.total
        ),
        Some(Measurement::Value { value, .. }) => value.to_string(),
        Some(Measurement::Nothing) => {
            "nothing found: no requests, or the query finds no series".to_owned()
        }
        Some(Measurement::NotANumber) => "not a number".to_owned(),
        Some(Measurement::Slow) => "no answer in time".to_owned(),
        Some(Measurement::Down(message)) => message.clone(),
    };
    let notes: Vec<String> = measured
        .notes
        .iter()
        .map(|note| format!("; {note}"))
        .collect();
    format!("{answer}{}", notes.concat())
}

fn as_json(name: &str, measured: &Measured) -> Value {
    let (answer, canary, stable, value) = match &measured.measurement {
        None => ("TooSoon", None, None, None),
        Some(Measurement::Counts { canary, stable, .. }) => {
            ("Counts", Some(canary.counts), Some(stable.counts), None)
        }
        Some(Measurement::Value { value, .. }) => ("Value", None, None, Some(*value)),
        Some(Measurement::Nothing) => ("Nothing", None, None, None),
        Some(Measurement::NotANumber) => ("NotANumber", None, None, None),
        Some(Measurement::Slow) => ("Slow", None, None, None),
        Some(Measurement::Down(_)) => ("Down", None, None, None),
    };
    json!({
        "metric": name,
        "answer": answer,
        "canary": canary,
        "stable": stable,
        "value": value,
        "message": in_words(measured),
        "notes": measured.notes,
    })
}

fn parse_time(text: &str) -> Result<Time, String> {
    let quoted = Value::String(text.to_owned());
    serde_json::from_value(quoted)
        .map_err(|_| format!("`{text}` is no moment such as 2026-01-31T12:00:00Z"))
}
