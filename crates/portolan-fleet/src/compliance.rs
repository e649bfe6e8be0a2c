//! How far nodes are as their books say, as a number, with what is missing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::outcome::StepState;
use crate::plan_document::is_plan_refusal;
use crate::run_report::{NodePart, RunReport};

/// A run that has ended, as evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct ComplianceRun {
    /// The book.
    pub book: String,
    /// Whether it changed nothing: what it would have changed is missing then.
    pub is_check: bool,
    /// What became of it.
    pub report: RunReport,
}

/// How far a node is as its books say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCompliance {
    /// The node.
    pub node: String,
    /// How many steps are as they should be.
    pub right: usize,
    /// How many steps concern the node; skipped ones do not.
    pub all: usize,
    /// What is not as it should be: the book, the step and why.
    pub missing: Vec<String>,
}

impl NodeCompliance {
    /// Steps that are as they should be, of a hundred, rounded down: 100 only if nothing is missing.
    pub fn percent(&self) -> usize {
        (100 * self.right).checked_div(self.all).unwrap_or(100)
    }

    /// The node for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "node": self.node, "percent": self.percent(), "right": self.right, "all": self.all,
            "missing": self.missing,
        })
    }
}

/// The compliance of every node, by name. Runs are given the newest first: of each book, the newest run that a node took part
/// in counts for it.
pub fn compliance(runs: &[ComplianceRun]) -> Vec<NodeCompliance> {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut nodes: BTreeMap<&str, NodeCompliance> = BTreeMap::new();
    for run in runs {
        for part in &run.report.nodes {
            // Who was not begun says nothing about itself.
            let is_refused = part.stopped.as_deref().is_some_and(is_plan_refusal);
            let says_nothing = part.steps.is_empty() && (part.state == "skipped" || is_refused);
            if says_nothing || !seen.insert((&run.book, &part.name)) {
                continue;
            }
            let node = nodes.entry(&part.name).or_insert_with(|| NodeCompliance {
                node: part.name.clone(),
                ..NodeCompliance::default()
            });
            count(run, part, node);
        }
    }
    nodes.into_values().collect()
}

fn count(run: &ComplianceRun, part: &NodePart, node: &mut NodeCompliance) {
    let book = &run.book;
    for step in &part.steps {
        let why = match step.state {
            StepState::Skipped => continue,
            StepState::Ok => None,
            StepState::Changed if !run.is_check => None,
            StepState::Changed => Some("is to be changed".to_owned()),
            state => {
                let error = step
                    .error
                    .as_ref()
                    .map(|error| format!(": {}", error.message));
                Some(format!("{}{}", state.word(), error.unwrap_or_default()))
            }
        };
        node.all += 1;
        match why {
            None => node.right += 1,
            Some(why) => {
                let item = step.item.as_ref().map(|item| format!(" ({item})"));
                let item = item.unwrap_or_default();
                node.missing
                    .push(format!("{book}: {}{item} {why}", step.name));
            }
        }
    }
    for handler in &part.owed {
        node.all += 1;
        node.missing.push(format!("{book}: {handler} is owed"));
    }
    let is_cut_short =
        matches!(part.state.as_str(), "unreachable" | "unknown") || part.stopped.is_some();
    if is_cut_short {
        node.all += 1;
        let why = part.stopped.as_deref().unwrap_or(&part.state);
        node.missing
            .push(format!("{book}: not all steps were looked at: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fault::Place;
    use crate::outcome::StepReport;

    fn run(book: &str, is_check: bool, nodes: &[(&str, &str, &[StepState])]) -> ComplianceRun {
        let step = |(number, state): (usize, &StepState)| StepReport {
            name: format!("s{number}"),
            item: None,
            state: *state,
            diff: None,
            error: None,
            notes: Vec::new(),
            reasons: Vec::new(),
            changes: Vec::new(),
            took: Duration::ZERO,
            place: Place {
                file: "book.yaml".into(),
                line: 1,
                column: 1,
            },
        };
        let nodes = nodes.iter().map(|(name, state, steps)| NodePart {
            name: (*name).to_owned(),
            state: (*state).to_owned(),
            steps: steps.iter().enumerate().map(step).collect(),
            owed: Vec::new(),
            stopped: None,
        });
        ComplianceRun {
            book: book.to_owned(),
            is_check,
            report: RunReport {
                run: format!("{book}-1"),
                state: String::new(),
                reason: None,
                nodes: nodes.collect(),
            },
        }
    }

    #[test]
    fn the_newest_run_of_each_book_counts() {
        use StepState::{Changed, Failed, Ok, Skipped};
        let runs = [
            run("web", true, &[("a", "changed", &[Ok, Changed, Skipped])]),
            run(
                "web",
                false,
                &[("a", "ok", &[Ok, Ok]), ("b", "changed", &[Changed, Ok])],
            ),
            run(
                "base",
                false,
                &[
                    ("a", "failed", &[Ok, Failed]),
                    ("b", "unreachable", &[]),
                    ("c", "skipped", &[]),
                ],
            ),
        ];
        let found = compliance(&runs);
        let shown: Vec<(&str, usize, usize)> = found
            .iter()
            .map(|node| (node.node.as_str(), node.percent(), node.all))
            .collect();
        assert_eq!(
            shown,
            [("a", 50, 4), ("b", 66, 3)],
            "a node that was not begun is no evidence"
        );
        assert_eq!(
            found[0].missing,
            ["web: s1 is to be changed", "base: s1 failed"]
        );
        assert_eq!(
            found[1].missing,
            ["base: not all steps were looked at: unreachable"]
        );
    }

    /// The agent looked at the node and did nothing, so the run before says more.
    #[test]
    fn a_refused_plan_is_no_evidence() {
        let mut refused = run("web", false, &[("a", "failed", &[])]);
        let differences = ["`s1` was planned as changed, and is ok now".to_owned()];
        refused.report.nodes[0].stopped = Some(crate::plan_refusal(&differences));
        let before = run("web", false, &[("a", "ok", &[StepState::Ok])]);
        let found = compliance(&[refused.clone(), before]);
        assert_eq!((found[0].percent(), found[0].all), (100, 1));
        refused.report.nodes[0].stopped = Some("cancelled".to_owned());
        assert_eq!(compliance(&[refused])[0].percent(), 0);
    }
}
