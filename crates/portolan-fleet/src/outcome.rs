//! How steps and nodes ended.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fault::Place;

/// How a step ended, or would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Everything was as it should be.
    Ok,
    /// Something was changed.
    Changed,
    /// It failed.
    Failed,
    /// It was not taken.
    Skipped,
    /// Nobody knows whether it was done; in a check, whether it would change something.
    Unknown,
    /// It failed, and its book says to go on.
    Ignored,
    /// It failed, and `rescue` put it right.
    Rescued,
}

/// How a node ended: the worst of its steps. The worst is last.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// No step was taken.
    Skipped,
    /// Everything was as it should be.
    Ok,
    /// Something was changed.
    Changed,
    /// It could not be reached.
    Unreachable,
    /// A step failed.
    Failed,
    /// Nobody knows how a step ended.
    Unknown,
}

/// What became of a step, once for each of its items.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// The step's path of names.
    pub name: String,
    /// The item, if the step has several.
    pub item: Option<Value>,
    /// How it ended.
    pub state: StepState,
    /// What changed; never of a sensitive step.
    pub diff: Option<String>,
    /// Why it failed or is unknown.
    pub error: Option<StepError>,
    /// What people should know.
    pub notes: Vec<String>,
    /// Why it was taken or not: what decided, with the values that were looked at, and who notified it.
    pub reasons: Vec<String>,
    /// What it would change, with digests, for a plan.
    pub changes: Vec<PlannedChange>,
    /// How long it took.
    pub took: Duration,
    /// Where it was written.
    pub place: Place,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    /// What went wrong, as a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The end of what a program printed.
    pub output: Option<String>,
}

/// One thing that a step would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// What changes.
    pub subject: String,
    /// A digest of its state now.
    pub before: String,
    /// A digest of its state afterwards.
    pub after: String,
}

impl StepState {
    /// The word in JSON and on screens.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
            Self::Ignored => "ignored",
            Self::Rescued => "rescued",
        }
    }
}

impl NodeState {
    /// The word in JSON and on screens.
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Changed => "changed",
            Self::Unreachable => "unreachable",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The state of a word.
    pub fn read(word: &str) -> Option<Self> {
        serde_json::from_value(Value::from(word)).ok()
    }

    /// The worst of some steps.
    pub fn of(steps: impl IntoIterator<Item = StepState>) -> Self {
        let states = steps.into_iter().map(|state| match state {
            StepState::Ok | StepState::Ignored | StepState::Rescued => Self::Ok,
            StepState::Changed => Self::Changed,
            StepState::Failed => Self::Failed,
            StepState::Skipped => Self::Skipped,
            StepState::Unknown => Self::Unknown,
        });
        states.max().unwrap_or(Self::Skipped)
    }

    /// Whether a run with such a node did not succeed.
    pub fn is_bad(self) -> bool {
        self >= Self::Unreachable
    }
}

impl StepReport {
    /// The step in the JSON of a run.
    pub fn to_json(&self) -> Value {
        let mut step = Map::new();
        step.insert("name".to_owned(), json!(self.name));
        if let Some(item) = &self.item {
            step.insert("item".to_owned(), item.clone());
        }
        step.insert("state".to_owned(), json!(self.state.word()));
        if let Some(diff) = &self.diff {
            step.insert("diff".to_owned(), json!(diff));
        }
        if let Some(error) = &self.error {
            let error = json!({"message": error.message, "file": &*self.place.file, "line": self.place.line});
            step.insert("error".to_owned(), error);
        }
        let ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        step.insert("ms".to_owned(), json!(ms));
        Value::Object(step)
    }

    /// What it would change, in JSON.
    pub(crate) fn changes_json(&self) -> Value {
        let changes = self.changes.iter().map(|change| {
            json!({"subject": change.subject, "before": change.before, "after": change.after})
        });
        changes.collect()
    }

    /// Everything of the step, for a server that keeps it and for people who read it there.
    pub fn to_record(&self) -> Value {
        let mut record = self.to_json();
        record["place"] = json!([&*self.place.file, self.place.line, self.place.column]);
        if !self.notes.is_empty() {
            record["notes"] = json!(self.notes);
        }
        if !self.reasons.is_empty() {
            record["reasons"] = json!(self.reasons);
        }
        if !self.changes.is_empty() {
            record["changes"] = self.changes_json();
        }
        for (key, text) in self
            .error
            .iter()
            .flat_map(|error| [("hint", &error.hint), ("output", &error.output)])
        {
            if let Some(text) = text {
                record["error"][key] = json!(text);
            }
        }
        record
    }

    /// Reads what [`to_record`](Self::to_record) wrote; `None` if it is something else.
    pub fn read(record: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
        let list = |key: &str| {
            record
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let texts = |key: &str| {
            list(key)
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let place = record.get("place")?;
        let error = match record.get("error") {
            None => None,
            Some(error) => Some(StepError {
                message: text(error, "message")?,
                hint: text(error, "hint"),
                output: text(error, "output"),
            }),
        };
        let change = |value: &Value| {
            Some(PlannedChange {
                subject: text(value, "subject")?,
                before: text(value, "before")?,
                after: text(value, "after")?,
            })
        };
        Some(Self {
            name: text(record, "name")?,
            item: record.get("item").cloned(),
            state: serde_json::from_value(record.get("state")?.clone()).ok()?,
            diff: text(record, "diff"),
            error,
            notes: texts("notes"),
            reasons: texts("reasons"),
            changes: list("changes").map(change).collect::<Option<_>>()?,
            took: Duration::from_millis(record.get("ms")?.as_u64()?),
            place: Place {
                file: place.get(0)?.as_str()?.into(),
                line: number(place.get(1)?)?,
                column: number(place.get(2)?)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_as_bad_as_its_worst_step() {
        use StepState::{Changed, Failed, Ignored, Ok, Rescued, Skipped, Unknown};
        for (steps, expected) in [
            (&[][..], NodeState::Skipped),
            (&[Skipped], NodeState::Skipped),
            (&[Ok, Skipped], NodeState::Ok),
            (&[Ignored, Rescued], NodeState::Ok),
            (&[Ok, Changed, Skipped], NodeState::Changed),
            (&[Changed, Failed], NodeState::Failed),
            (&[Failed, Unknown, Ok], NodeState::Unknown),
        ] {
            assert_eq!(NodeState::of(steps.iter().copied()), expected);
        }
    }
}
