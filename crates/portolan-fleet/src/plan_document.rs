//! The plan of a check: what was looked at, with digests of everything that would change, and whether a node is still as its
//! plan found it.

use std::collections::BTreeMap;

use portolan_digest::Digest;
use serde_json::{Map, Value, json};

use crate::book::Book;
use crate::outcome::{PlannedChange, StepReport, StepState};
use crate::run_report::RunReport;

/// The most differences that are told.
const MAX_DIFFERENCES: usize = 10;

/// How an agent begins to say that it did nothing because its node is not as the plan found it.
const REFUSED: &str = "nothing was done: the plan does not fit any more";

/// Why an agent did nothing: how its node differs from what the plan found there.
pub fn plan_refusal(differences: &[String]) -> String {
    format!("{REFUSED}: {}", differences.join("\n"))
}

/// Whether a node was stopped by such a refusal.
pub(crate) fn is_plan_refusal(stopped: &str) -> bool {
    stopped.starts_with(REFUSED)
}

/// What a check was made from.
#[derive(Debug, Clone, Copy)]
pub struct PlannedBook<'a> {
    /// The name of the book.
    pub name: &'a str,
    /// The digest of the compiled book.
    pub digest: &'a str,
    /// Values of its inputs, without secret ones.
    pub inputs: &'a Map<String, Value>,
    /// The versions of what the variables of its nodes are made from, by names: objects, and files of commits.
    pub versions: &'a BTreeMap<String, String>,
}

/// The plan of a check of a book. Secret inputs are no part of it.
pub fn plan_document(book: &Book, inputs: &Map<String, Value>, report: &RunReport) -> Value {
    let is_shown = |name: &String| book.inputs.get(name).is_some_and(|input| !input.is_secret);
    let shown = inputs.iter().filter(|(name, _)| is_shown(name));
    let shown: Map<String, Value> = shown
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let planned = PlannedBook {
        name: &book.name,
        digest: &book.digest.to_string(),
        inputs: &shown,
        versions: &BTreeMap::new(),
    };
    plan_of(planned, report)
}

/// The plan of a check.
pub fn plan_of(book: PlannedBook<'_>, report: &RunReport) -> Value {
    let nodes = report.nodes.iter().map(|node| {
        let steps = planned_steps(&node.steps);
        json!({"name": node.name, "state": node.state, "steps": steps})
    });
    let mut plan = json!({
        "book": book.name, "bookDigest": book.digest, "inputs": book.inputs,
        "nodes": nodes.collect::<Vec<Value>>(),
    });
    if !book.versions.is_empty() {
        plan["versions"] = json!(book.versions);
    }
    plan
}

/// What a check found on one node.
pub fn planned_steps(steps: &[StepReport]) -> Value {
    steps.iter().map(planned_step).collect()
}

fn planned_step(step: &StepReport) -> Value {
    let mut planned = step.to_json();
    planned["changes"] = step.changes_json();
    if let Some(planned) = planned.as_object_mut() {
        planned.remove("ms");
    }
    planned
}

/// The digest by which a plan is approved. Keys are sorted, so that equal plans have equal digests.
pub fn plan_digest(plan: &Value) -> String {
    Digest::of(plan.to_string().as_bytes()).hex()
}

/// How a node differs from what its plan found there; empty if it is still the same. Steps that a check could not look at
/// are no part of it.
pub fn plan_differences(planned: &Value, now: &[StepReport]) -> Vec<String> {
    let mut differences = Vec::new();
    let planned: Vec<&Value> = planned.as_array().into_iter().flatten().collect();
    let is_same = |planned: &Value, step: &StepReport| {
        planned["name"] == step.name.as_str() && planned.get("item") == step.item.as_ref()
    };
    for step in now {
        match planned.iter().find(|planned| is_same(planned, step)) {
            Some(planned) => differences.extend(step_difference(planned, step)),
            None => differences.push(format!("`{}` is not in the plan", step.name)),
        }
    }
    for planned in planned {
        if !now.iter().any(|step| is_same(planned, step)) {
            let name = planned["name"].as_str().unwrap_or_default();
            differences.push(format!("`{name}` would not be taken any more"));
        }
    }
    if let Some(more) = differences.len().checked_sub(MAX_DIFFERENCES)
        && more > 0
    {
        differences.truncate(MAX_DIFFERENCES);
        differences.push(format!("and {more} more"));
    }
    differences
}

fn step_difference(planned: &Value, now: &StepReport) -> Option<String> {
    let word = planned["state"].as_str().unwrap_or_default();
    if word == StepState::Unknown.word() || now.state == StepState::Unknown {
        return None;
    }
    let name = &now.name;
    if word != now.state.word() {
        let now = now.state.word();
        return Some(format!("`{name}` was planned as {word}, and is {now} now"));
    }
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
    let changes = planned["changes"].as_array().into_iter().flatten();
    let before: Vec<PlannedChange> = changes
        .map(|change| PlannedChange {
            subject: text(change, "subject"),
            before: text(change, "before"),
            after: text(change, "after"),
        })
        .collect();
    if before == now.changes {
        return None;
    }
    let subjects: Vec<&str> = now
        .changes
        .iter()
        .filter(|change| !before.contains(change))
        .map(|change| change.subject.as_str())
        .collect();
    let what = match subjects.as_slice() {
        [] => "it".to_owned(),
        subjects => subjects.join(", "),
    };
    let diff = now.diff.as_ref().map(|diff| format!(":\n{diff}"));
    let diff = diff.unwrap_or_default();
    Some(format!(
        "`{name}`: {what} is not as the plan found it; now it would change{diff}"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fault::Place;

    fn step(name: &str, state: StepState, before: &str) -> StepReport {
        let change = PlannedChange {
            subject: "file /a".to_owned(),
            before: before.to_owned(),
            after: "2".to_owned(),
        };
        StepReport {
            name: name.to_owned(),
            item: None,
            state,
            diff: Some("- a\n+ b".to_owned()),
            error: None,
            notes: Vec::new(),
            reasons: Vec::new(),
            changes: if state == StepState::Changed {
                vec![change]
            } else {
                Vec::new()
            },
            took: Duration::from_millis(u64::try_from(before.len()).unwrap_or_default()),
            place: Place {
                file: "book.yaml".into(),
                line: 1,
                column: 1,
            },
        }
    }

    #[test]
    fn a_node_that_drifted_differs_from_its_plan() {
        use StepState::{Changed, Ok, Unknown};
        let found = [
            step("a", Changed, "1"),
            step("b", Ok, ""),
            step("c", Unknown, ""),
        ];
        let plan = planned_steps(&found);
        assert!(plan_differences(&plan, &found).is_empty());
        let took_longer = [
            step("a", Changed, "1"),
            step("b", Ok, "longer"),
            step("c", Changed, "1"),
        ];
        assert!(
            plan_differences(&plan, &took_longer).is_empty(),
            "what was unknown is no part"
        );
        for (now, expected) in [
            (
                vec![
                    step("a", Changed, "0"),
                    step("b", Ok, ""),
                    step("c", Unknown, ""),
                ],
                "file /a is not as the plan found it",
            ),
            (
                vec![step("a", Ok, ""), step("b", Ok, ""), step("c", Unknown, "")],
                "was planned as changed, and is ok now",
            ),
            (
                vec![step("a", Changed, "1"), step("c", Unknown, "")],
                "`b` would not be taken any more",
            ),
            (
                vec![
                    step("a", Changed, "1"),
                    step("b", Ok, ""),
                    step("c", Unknown, ""),
                    step("d", Ok, ""),
                ],
                "`d` is not in the plan",
            ),
        ] {
            let differences = plan_differences(&plan, &now);
            assert!(
                matches!(differences.as_slice(), [one] if one.contains(expected)),
                "{differences:?}"
            );
        }
    }
}
