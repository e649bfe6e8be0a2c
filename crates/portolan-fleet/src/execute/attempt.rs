//! How an attempt of a step ended: its state, what it changed, and what later steps and people see of it.

use portolan_modules::{Applied, ModuleError, Plan};
use serde_json::{Map, Value, json};

use super::NodeStop;
use crate::book::Step;
use crate::outcome::{PlannedChange, StepError, StepState};

/// The last lines of a program's output that are kept with a failure.
const OUTPUT_LINES: usize = 20;

/// How an attempt ended.
pub(super) struct Attempt {
    pub(super) state: StepState,
    /// What later steps see; `None` if there is nothing to see.
    pub(super) result: Option<Map<String, Value>>,
    pub(super) diff: Option<String>,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) error: Option<StepError>,
    pub(super) notes: Vec<String>,
    /// Why it was taken.
    pub(super) reasons: Vec<String>,
    /// Whether the journal has its end already.
    pub(super) is_recorded: bool,
    /// Whether an effect was begun, so that its end belongs into the journal.
    pub(super) has_effect: bool,
    /// Why the run ends here: the journal could not be written.
    pub(super) halt: Option<NodeStop>,
}

impl Attempt {
    pub(super) fn ended(state: StepState) -> Self {
        Self {
            state,
            result: None,
            diff: None,
            changes: Vec::new(),
            error: None,
            notes: Vec::new(),
            reasons: Vec::new(),
            is_recorded: false,
            has_effect: false,
            halt: None,
        }
    }

    pub(super) fn halted(reason: NodeStop) -> Self {
        Self {
            halt: Some(reason),
            ..Self::ended(StepState::Failed)
        }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        let error = StepError {
            message: message.into(),
            hint: None,
            output: None,
        };
        Self {
            error: Some(error),
            ..Self::ended(StepState::Failed)
        }
    }
}

/// Work that was begun before a crash and that a look finds done: it was this run that changed something, so its handlers
/// are notified.
pub(super) fn done_before(step: &Step, mut attempt: Attempt) -> Attempt {
    if attempt.state == StepState::Ok && step.options.changed.is_none() {
        attempt.state = StepState::Changed;
        attempt.has_effect = true;
        attempt
            .notes
            .push("done before the run was interrupted".to_owned());
        if let Some(result) = &mut attempt.result {
            result.insert("changed".to_owned(), json!(true));
        }
    }
    attempt
}

/// Work that the journal says was finished.
pub(super) fn finished_before(state: StepState, result: Value) -> Attempt {
    let mut attempt = Attempt::ended(state);
    attempt.is_recorded = true;
    attempt.has_effect = true;
    attempt
        .notes
        .push("done before the run was interrupted".to_owned());
    if state == StepState::Failed {
        attempt.error = Some(StepError {
            message: "failed before the run was interrupted".to_owned(),
            hint: None,
            output: None,
        });
    }
    attempt.result = match result {
        Value::Object(result) => Some(result),
        _ => None,
    };
    attempt
}

/// What a plan says will happen.
pub(super) fn planned(state: StepState, plan: &Plan) -> Attempt {
    let diffs: Vec<&str> = plan
        .changes()
        .iter()
        .map(|change| change.diff.as_str())
        .collect();
    let diff = diffs.join("\n");
    let changes = plan.changes().iter().map(|change| PlannedChange {
        subject: change.subject.to_string(),
        before: change.before.to_string(),
        after: change.after.to_string(),
    });
    Attempt {
        diff: (!diff.is_empty()).then_some(diff),
        changes: changes.collect(),
        ..Attempt::ended(state)
    }
}

pub(super) fn failed_by(error: &ModuleError) -> Attempt {
    let mut attempt = Attempt::failed(error.to_string());
    if let Some(told) = &mut attempt.error {
        told.hint = error.hint().map(str::to_owned);
    }
    attempt
}

/// What was done before a module failed.
pub(super) fn partial(error: &ModuleError) -> Applied {
    match error {
        ModuleError::Unsuccessful { applied, .. } => (**applied).clone(),
        _ => Applied::default(),
    }
}

/// The last lines that a program printed.
pub(super) fn last_lines(result: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
    let output = [text("stdout"), text("stderr")].join("\n");
    let lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(OUTPUT_LINES);
    let last = lines.get(first..).unwrap_or_default().join("\n");
    (!last.is_empty()).then_some(last)
}
