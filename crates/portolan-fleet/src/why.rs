//! Why a run, a node or a step is as it is, in sentences.

use serde_json::{Value, json};

use crate::outcome::{NodeState, StepReport, StepState};
use crate::run_report::{NodePart, RunReport};

/// The most names in one sentence.
const MAX_NAMES: usize = 5;

/// Something of a run, and why it is as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunExplanation {
    /// The run, the node, or the step on a node.
    pub subject: String,
    /// How it ended, or how far it is.
    pub state: String,
    /// Why, the most important first.
    pub because: Vec<String>,
}

/// Why there is nothing to explain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhyError {
    /// The node has no part in the run.
    #[error("node `{node}` has no part in the run {run}")]
    NoNode {
        /// What was asked for.
        node: String,
        /// The run.
        run: String,
    },
    /// The node has reported no such step.
    #[error("node `{node}` has reported no step `{step}`")]
    NoStep {
        /// The node.
        node: String,
        /// What was asked for.
        step: String,
        /// The steps that it reported.
        known: Vec<String>,
    },
}

impl RunExplanation {
    /// The explanation for programs.
    pub fn to_json(&self) -> Value {
        json!({"subject": self.subject, "state": self.state, "because": self.because})
    }
}

/// Why a run is as it is, with all its nodes; why one node is, with its steps; or why one step is.
///
/// # Errors
/// When there is no such node or step.
pub fn explain(
    report: &RunReport,
    node: Option<&str>,
    step: Option<&str>,
) -> Result<Vec<RunExplanation>, WhyError> {
    let Some(name) = node else {
        let mut all = vec![run(report)];
        all.extend(report.nodes.iter().map(|part| of_node(report, part)));
        return Ok(all);
    };
    let part = report.nodes.iter().find(|part| part.name == name);
    let part = part.ok_or_else(|| WhyError::NoNode {
        node: name.to_owned(),
        run: report.run.clone(),
    })?;
    let Some(step) = step else {
        let mut all = vec![of_node(report, part)];
        all.extend(part.steps.iter().map(|step| of_step(part, step)));
        return Ok(all);
    };
    let is_named =
        |known: &&StepReport| known.name == step || known.name.rsplit('/').next() == Some(step);
    let found: Vec<RunExplanation> = part
        .steps
        .iter()
        .filter(is_named)
        .map(|step| of_step(part, step))
        .collect();
    if found.is_empty() {
        let mut known: Vec<String> = part.steps.iter().map(|step| step.name.clone()).collect();
        known.dedup();
        return Err(WhyError::NoStep {
            node: name.to_owned(),
            step: step.to_owned(),
            known,
        });
    }
    Ok(found)
}

fn run(report: &RunReport) -> RunExplanation {
    let mut because: Vec<String> = report.reason.iter().cloned().collect();
    let bad = names(report, |part| part.ended().is_some_and(NodeState::is_bad));
    if !bad.is_empty() {
        because.push(format!("not as they should be: {}", listed(&bad)));
    }
    let at_work = names(report, |part| part.state == "running");
    if !at_work.is_empty() {
        because.push(format!("at work: {}", listed(&at_work)));
    }
    RunExplanation {
        subject: report.run.clone(),
        state: report.state.clone(),
        because,
    }
}

fn of_node(report: &RunReport, part: &NodePart) -> RunExplanation {
    let mut because = match part.state.as_str() {
        "queued" => {
            let mut because = vec!["its batch has not begun".to_owned()];
            because.extend(report.reason.clone());
            because
        }
        "waiting" => {
            let others = names(report, |other| other.state == "running");
            let for_whom = if others.is_empty() {
                String::new()
            } else {
                format!(" for {}", listed(&others))
            };
            vec![format!(
                "it has come to a barrier, and waits there{for_whom}"
            )]
        }
        "running" => vec![match part.steps.last() {
            Some(step) => format!("it is behind `{}`, and at its next step", step.name),
            None => "it is at its first step".to_owned(),
        }],
        "unreachable" => vec!["its agent was not connected when its batch began".to_owned()],
        _ => of_ended(part),
    };
    because.extend(part.stopped.clone());
    because.extend(
        part.owed
            .iter()
            .map(|handler| format!("owed: `{handler}` was notified and has not run")),
    );
    RunExplanation {
        subject: part.name.clone(),
        state: part.state.clone(),
        because,
    }
}

fn of_ended(part: &NodePart) -> Vec<String> {
    let steps = |state: StepState| -> Vec<&StepReport> {
        let steps = part.steps.iter();
        steps.filter(|step| step.state == state).collect()
    };
    let told = |step: &&StepReport| {
        let why = step
            .error
            .as_ref()
            .map(|error| format!(": {}", error.message));
        let why = why.unwrap_or_default();
        format!(
            "`{}` {} ({}){why}",
            step.name,
            step.state.word(),
            step.place
        )
    };
    match part.ended() {
        Some(NodeState::Failed) => steps(StepState::Failed).iter().map(told).collect(),
        Some(NodeState::Unknown) => {
            let unknown: Vec<String> = steps(StepState::Unknown).iter().map(told).collect();
            if unknown.is_empty() {
                let why = "nothing was heard of its agent while a step could still run";
                return vec![why.to_owned()];
            }
            unknown
        }
        Some(NodeState::Changed) => {
            let changed = steps(StepState::Changed);
            let changed: Vec<&str> = changed.iter().map(|step| step.name.as_str()).collect();
            vec![format!("changed something: {}", listed(&changed))]
        }
        Some(NodeState::Ok) => vec!["every step found what it should be".to_owned()],
        Some(NodeState::Skipped) if part.steps.is_empty() => vec!["it was not begun".to_owned()],
        Some(NodeState::Skipped) => vec!["no step had to be taken here".to_owned()],
        Some(NodeState::Unreachable) | None => Vec::new(),
    }
}

fn of_step(part: &NodePart, step: &StepReport) -> RunExplanation {
    let mut because = Vec::new();
    if let Some(error) = &step.error {
        because.push(error.message.clone());
        because.extend(error.hint.clone());
    }
    because.extend(step.reasons.iter().cloned());
    because.extend(step.notes.iter().cloned());
    let changes = step.changes.iter();
    because.extend(changes.map(|change| format!("{} was not as the book says", change.subject)));
    if because.is_empty() {
        because.push(match step.state {
            StepState::Ok => "it found what it should be".to_owned(),
            _ => "it has no condition".to_owned(),
        });
    }
    because.push(format!("written at {}", step.place));
    let item = step.item.as_ref().map(|item| format!(" ({item})"));
    RunExplanation {
        subject: format!("{}: {}{}", part.name, step.name, item.unwrap_or_default()),
        state: step.state.word().to_owned(),
        because,
    }
}

fn names(report: &RunReport, is_meant: impl Fn(&NodePart) -> bool) -> Vec<&str> {
    let nodes = report.nodes.iter().filter(|part| is_meant(part));
    nodes.map(|part| part.name.as_str()).collect()
}

fn listed(names: &[&str]) -> String {
    match names.split_at_checked(MAX_NAMES) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{}, and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}
