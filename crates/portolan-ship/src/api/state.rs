//! Where a run stands, as JSON: one table for builds, pushes and whatever else is a unit.
//!
//! | state | it is | Skaffold's word |
//! | --- | --- | --- |
//! | `not started` | queued | `NotStarted` |
//! | `in progress` | started, or tried again | `InProgress` |
//! | `complete` | done, also if it was there | `Complete` |
//! | `failed` | failed | `Failed` |
//! | `skipped` | something that it needs failed | `Canceled` |
//! | `cancelled` | called off | `Canceled` |

use portolan_engine::{Key, Phase, ReadError, RunPhase, RunState, State, UnitState};
use serde_json::{Map, Value, json};

use crate::document::API_VERSION;
use crate::runs::ShipRun;

/// Folds the events of a run up to a number.
pub(super) fn fold(run: &ShipRun, at: u64) -> Result<State, ReadError> {
    let mut state = State::default();
    let mut files = run.events_after(0);
    loop {
        let records = match files.read() {
            // The oldest may be gone: what is left says how units stand that are told of later.
            Err(ReadError::Forgotten { oldest, .. }) => {
                files.seek(oldest - 1);
                continue;
            }
            records => records?,
        };
        if records.is_empty() {
            return Ok(state);
        }
        for record in records {
            if record.seq > at {
                return Ok(state);
            }
            state.apply(&record);
        }
    }
}

pub(super) fn to_json(state: &State, run: &str) -> Value {
    let newest = state.runs().next_back().map(|(_, run)| run);
    let phase = match newest.map(RunState::phase) {
        None => "not started",
        Some(RunPhase::Running) => "running",
        Some(RunPhase::Ended { .. }) => "ended",
        Some(RunPhase::Interrupted) => "interrupted",
    };
    let mut stages: Map<String, Value> = Map::new();
    for (key, unit) in newest.map(RunState::units).unwrap_or_default() {
        let (stage, name) = split(key);
        let units = stages.entry(stage.to_owned()).or_insert_with(|| json!({}));
        units[name] = unit_to_json(unit);
    }
    let mut value = json!({
        "apiVersion": API_VERSION, "kind": "State", "run": run, "seq": state.seq(), "phase": phase,
    });
    for (stage, units) in stages {
        value[stage] = units;
    }
    value
}

pub(super) fn unit_to_json(unit: &UnitState) -> Value {
    let (word, skaffold) = words(&unit.phase);
    let mut value = json!({"state": word, "skaffold": skaffold, "attempts": unit.attempts});
    if let Some(progress) = &unit.progress {
        value["progress"] =
            json!({"done": progress.done, "total": progress.total, "text": progress.text});
    }
    match &unit.phase {
        Phase::Failed { error } | Phase::Retrying { error } => {
            value["error"] = error.as_str().into();
        }
        Phase::Skipped { because } => value["because"] = because.as_str().into(),
        _ => {}
    }
    if unit.phase.is_end() {
        value["durationMs"] = (unit.took_us / 1000).into();
    }
    if let Some(summary) = &unit.summary {
        value["summary"] = serde_json::from_str(summary).unwrap_or(Value::Null);
    }
    value
}

fn words(phase: &Phase) -> (&'static str, &'static str) {
    match phase {
        Phase::Queued => ("not started", "NotStarted"),
        Phase::Running | Phase::Retrying { .. } => ("in progress", "InProgress"),
        Phase::Done => ("complete", "Complete"),
        Phase::Failed { .. } => ("failed", "Failed"),
        Phase::Skipped { .. } => ("skipped", "Canceled"),
        Phase::Cancelled => ("cancelled", "Canceled"),
    }
}

/// `artifacts` and `web` of `artifact/web`.
fn split(key: &Key) -> (&'static str, &str) {
    let whole = key.as_str();
    let (kind, name) = whole.split_once('/').unwrap_or(("", whole));
    match kind {
        "artifact" => ("artifacts", name),
        "push" => ("pushes", name),
        "test" => ("tests", name),
        "deploy" => ("deploys", name),
        "verify" => ("verifications", name),
        _ => ("others", whole),
    }
}
