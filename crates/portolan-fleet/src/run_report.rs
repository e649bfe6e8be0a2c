//! What became of a run, as programs read it: one shape for a local run, for a server's answer and for `-o json`.

use serde_json::{Value, json};

use crate::execute::NodeOutcome;
use crate::outcome::{NodeState, StepReport};

/// A run with all its nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// The run.
    pub run: String,
    /// The worst of its nodes, or how far the run is.
    pub state: String,
    /// Why it waits or was stopped.
    pub reason: Option<String>,
    /// Its nodes, in the order in which they were taken.
    pub nodes: Vec<NodePart>,
}

/// What became of a run on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePart {
    /// The node.
    pub name: String,
    /// How it ended, or how far it is.
    pub state: String,
    /// Its steps.
    pub steps: Vec<StepReport>,
    /// Handlers that were notified and not run.
    pub owed: Vec<String>,
    /// Why it ended before its last step, if it was stopped.
    pub stopped: Option<String>,
}

impl RunReport {
    /// A run on one node.
    pub fn of_one(run: &str, node: &str, outcome: &NodeOutcome) -> Self {
        let state = outcome.state.word().to_owned();
        Self {
            run: run.to_owned(),
            state: state.clone(),
            reason: None,
            nodes: vec![NodePart {
                name: node.to_owned(),
                state,
                steps: outcome.steps.clone(),
                owed: outcome.owed.clone(),
                stopped: outcome.stopped.clone(),
            }],
        }
    }

    /// What `-o json` prints: `{"run", "state", "nodes": [{"name", "state", "steps": […]}]}`.
    pub fn to_json(&self) -> Value {
        self.written(StepReport::to_json)
    }

    /// Everything, also what only people read.
    pub fn to_record(&self) -> Value {
        self.written(StepReport::to_record)
    }

    fn written(&self, step: fn(&StepReport) -> Value) -> Value {
        let nodes = self.nodes.iter().map(|node| {
            let steps: Vec<Value> = node.steps.iter().map(step).collect();
            let mut value = json!({"name": node.name, "state": node.state, "steps": steps});
            if !node.owed.is_empty() {
                value["owed"] = json!(node.owed);
            }
            if let Some(reason) = &node.stopped {
                value["stopped"] = json!(reason);
            }
            value
        });
        let nodes: Vec<Value> = nodes.collect();
        let mut value = json!({"run": self.run, "state": self.state, "nodes": nodes});
        if let Some(reason) = &self.reason {
            value["reason"] = json!(reason);
        }
        value
    }

    /// Reads what [`to_record`](Self::to_record) wrote; `None` if it is something else.
    pub fn read(value: &Value) -> Option<Self> {
        let nodes = value.get("nodes")?.as_array()?.iter();
        Some(Self {
            run: text(value, "run")?,
            state: text(value, "state")?,
            reason: text(value, "reason"),
            nodes: nodes.map(NodePart::read).collect::<Option<_>>()?,
        })
    }
}

impl NodePart {
    fn read(value: &Value) -> Option<Self> {
        let steps = value.get("steps")?.as_array()?.iter();
        let owed = value.get("owed").and_then(Value::as_array);
        let owed = owed.into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            name: text(value, "name")?,
            state: text(value, "state")?,
            steps: steps.map(StepReport::read).collect::<Option<_>>()?,
            owed: owed.map(str::to_owned).collect(),
            stopped: text(value, "stopped"),
        })
    }

    /// Its end; `None` while it is at work or was not begun.
    pub fn ended(&self) -> Option<NodeState> {
        NodeState::read(&self.state)
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fault::Place;
    use crate::outcome::{PlannedChange, StepError, StepState};

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let step = StepReport {
            name: "release/package".to_owned(),
            item: Some(json!({"name": "web"})),
            state: StepState::Failed,
            diff: Some("- a\n+ b".to_owned()),
            error: Some(StepError {
                message: "cannot".to_owned(),
                hint: Some("look".to_owned()),
                output: Some("last line".to_owned()),
            }),
            notes: vec!["note".to_owned()],
            reasons: vec!["`when` holds".to_owned()],
            changes: vec![PlannedChange {
                subject: "file /a".to_owned(),
                before: "1".to_owned(),
                after: "2".to_owned(),
            }],
            took: Duration::from_millis(12),
            place: Place {
                file: "book.yaml".into(),
                line: 7,
                column: 3,
            },
        };
        let report = RunReport {
            run: "web-1".to_owned(),
            state: "failed".to_owned(),
            reason: Some("1 node failed".to_owned()),
            nodes: vec![NodePart {
                name: "a".to_owned(),
                state: "failed".to_owned(),
                steps: vec![step],
                owed: vec!["handlers/restart".to_owned()],
                stopped: Some("cancelled".to_owned()),
            }],
        };
        assert_eq!(RunReport::read(&report.to_record()), Some(report.clone()));
        let shown = report.to_json();
        assert_eq!(
            shown["nodes"][0]["steps"][0]["error"],
            json!({"message": "cannot", "file": "book.yaml", "line": 7})
        );
        assert_eq!(shown["nodes"][0]["steps"][0].get("notes"), None);
        assert_eq!(RunReport::read(&json!({"run": 1})), None);
    }
}
