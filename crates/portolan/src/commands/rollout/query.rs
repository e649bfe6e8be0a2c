//! `portolan rollout query`: what the metrics of both revisions say now.

use std::time::SystemTime;

use portolan_object::API_VERSION;
use portolan_prometheus::{Measured, Question, measure};
use portolan_rollout::{Measurement, Span, Time};
use serde_json::{Value, json};

use super::arms::arms;
use super::cluster_args::OneArgs;
use super::output_args::{Format, OutputArgs};
use super::prometheus_args::PrometheusArgs;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

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

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    prometheus: PrometheusArgs,
}

pub(crate) fn query(args: &QueryArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    let prometheus = args.prometheus.server()?;
    let answers = app.runtime()?.block_on(async {
        let rollout = args.one.find().await?.rollout().await?;
        let arms = arms(&rollout, None, true);
        let now = SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .as_secs();
        let to = i64::try_from(now).unwrap_or(0) - 1;
        let from = to.saturating_sub_unsigned(args.over.seconds());
        let mut answers = Vec::new();
        for metric in rollout.analysis().metrics_or_default() {
            let question = Question {
                arms: &arms,
                from: Time::from_unix(from),
                to: Time::from_unix(to),
                warm_up_seconds: 0,
            };
            answers.push((
                metric.name.clone(),
                measure(&prometheus, &metric, question).await,
            ));
        }
        Ok::<_, CommandError>(answers)
    })?;
    match args.output.format {
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
