//! Shows runs to people: what steps did, equal diffs once, failures last.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portolan_fleet::{NodePart, RunReport, StepReport, StepState};
use portolan_object::counted;
use serde_json::Value;

use crate::commands::fleet::lint::BookFile;
use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::printer::Printer;
use crate::table::Tone;

/// Names of nodes on one line before the rest is counted.
const MAX_NAMES: usize = 5;

/// The order in which states are counted.
const WORDS: [&str; 10] = [
    "ok",
    "changed",
    "skipped",
    "ignored",
    "rescued",
    "queued",
    "running",
    "unreachable",
    "unknown",
    "failed",
];

/// Shows a run.
pub(in crate::commands::fleet) struct RunScreen<'a> {
    printer: &'a Printer,
    is_check: bool,
    styled: bool,
    /// The last step and its diff, to print an equal diff only once.
    last: Option<(String, String)>,
}

/// Nodes on which a step did the same.
struct SameStep<'r> {
    step: &'r StepReport,
    nodes: Vec<&'r str>,
}

impl<'a> RunScreen<'a> {
    pub(in crate::commands::fleet) fn new(printer: &'a Printer, is_check: bool) -> Self {
        Self {
            printer,
            is_check,
            styled: printer.canvas().styled,
            last: None,
        }
    }

    /// A step of a run on one node, as it ends.
    pub(super) fn step(&mut self, report: &StepReport) -> Result<(), CommandError> {
        let took = report.took.as_millis() >= 100 && report.error.is_none();
        let took = took.then(|| format!("{:.1} s", report.took.as_secs_f64()));
        let text = self.lines(report, &took.unwrap_or_default());
        self.printer.data(text)
    }

    /// A step with what it changed; `about` stands behind its name.
    fn lines(&mut self, report: &StepReport, about: &str) -> String {
        let item = report
            .item
            .as_ref()
            .map(|item| format!(" [{}]", plain(item)));
        let name = Tone::Name.paint(&report.name, self.styled);
        let mut text = format!(
            "{} {name}{}",
            self.word(report.state),
            item.unwrap_or_default()
        );
        match &report.error {
            Some(error) if report.state != StepState::Failed => {
                let _ = write!(text, ": {}", error.message);
            }
            _ => {}
        }
        if !about.is_empty() {
            let _ = write!(text, "  {about}");
        }
        text.push('\n');
        for note in &report.notes {
            let _ = writeln!(text, "           {note}");
        }
        if let Some(diff) = &report.diff {
            let here = (report.name.clone(), diff.clone());
            if self.last.as_ref() == Some(&here) {
                text.push_str("           same diff\n");
            } else {
                for line in diff.lines() {
                    let _ = writeln!(text, "           {}", self.painted(line));
                }
                self.last = Some(here);
            }
        }
        text
    }

    fn word(&self, state: StepState) -> String {
        let word = match (state, self.is_check) {
            (StepState::Changed, true) => "change",
            (state, _) => state.word(),
        };
        let padded = format!("{word:<10}");
        let tone = match state {
            StepState::Changed => Tone::Good,
            StepState::Failed => Tone::Bad,
            StepState::Unknown | StepState::Ignored | StepState::Rescued => Tone::Warning,
            StepState::Ok | StepState::Skipped => return padded,
        };
        tone.paint(&padded, self.styled)
    }

    fn painted(&self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => Tone::Good.paint(line, self.styled),
            Some(b'-') => Tone::Bad.paint(line, self.styled),
            _ => line.to_owned(),
        }
    }

    /// The end of a run on one node: every failure with its place, its advice and the end of its output, and a summary.
    pub(super) fn end_of_one(
        &self,
        report: &RunReport,
        book: &BookFile,
    ) -> Result<(), CommandError> {
        for node in &report.nodes {
            for step in node.steps.iter().filter(|step| self.is_failure(step)) {
                let other;
                let text = if *step.place.file == *book.name {
                    book.text.as_str()
                } else {
                    other = std::fs::read_to_string(&*step.place.file).unwrap_or_default();
                    &other
                };
                let place = Place {
                    file: &step.place.file,
                    text,
                    line: step.place.line as usize,
                    column: step.place.column as usize,
                };
                self.failure(step, Some(place), "");
            }
            self.warn(node);
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for step in &node.steps {
                *counts.entry(step.state.word()).or_default() += 1;
            }
            let steps = counted(node.steps.len(), "step");
            let summary = format!(
                "{}: {} · {steps}: {}\n",
                node.name,
                node.state,
                in_order(&counts)
            );
            self.printer.data(summary)?;
        }
        Ok(())
    }

    /// A run on many nodes: each step once for all nodes on which it did the same, then failures, then a summary.
    pub(in crate::commands::fleet) fn end_of_many(
        &mut self,
        report: &RunReport,
    ) -> Result<(), CommandError> {
        for same in same_steps(report) {
            let about = names(&same.nodes, report.nodes.len());
            let text = self.lines(same.step, &about);
            self.printer.data(text)?;
        }
        for same in same_steps(report)
            .iter()
            .filter(|same| self.is_failure(same.step))
        {
            self.failure(same.step, None, &names(&same.nodes, usize::MAX));
        }
        for node in &report.nodes {
            self.warn(node);
        }
        if let Some(reason) = &report.reason {
            self.printer.note(reason);
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &report.nodes {
            *counts.entry(&node.state).or_default() += 1;
        }
        let nodes = counted(report.nodes.len(), "node");
        let summary = format!(
            "{}: {} · {nodes}: {}\n",
            report.run,
            report.state,
            in_order(&counts)
        );
        self.printer.data(summary)
    }

    fn is_failure(&self, step: &StepReport) -> bool {
        let is_bad =
            step.state == StepState::Failed || step.state == StepState::Unknown && !self.is_check;
        is_bad && step.error.is_some()
    }

    fn failure(&self, step: &StepReport, place: Option<Place<'_>>, nodes: &str) {
        let Some(error) = &step.error else {
            return;
        };
        let mut hints: Vec<String> = error.hint.iter().cloned().collect();
        if let Some(output) = &error.output {
            hints.push(format!("the last lines of its output:\n{output}"));
        }
        let mut message = format!("{}: {}", step.name, error.message);
        if place.is_none() {
            message = format!("{nodes}: {message} ({})", step.place);
        }
        self.printer.diagnostic(&Diagnostic {
            message,
            place,
            hints,
        });
    }

    fn warn(&self, node: &NodePart) {
        if let Some(reason) = node
            .stopped
            .as_ref()
            .filter(|reason| *reason != "interrupted")
        {
            let message = format!(
                "{}: the run ended before its last step: {reason}",
                node.name
            );
            self.printer.warning(&message);
        }
        for handler in &node.owed {
            let message = format!(
                "{}: owed: {handler} was notified and has not run; the next run runs it",
                node.name
            );
            self.printer.warning(&message);
        }
    }
}

/// The steps of all nodes, those that did the same together, in the order of the book.
fn same_steps(report: &RunReport) -> Vec<SameStep<'_>> {
    let mut all: Vec<SameStep<'_>> = Vec::new();
    for node in &report.nodes {
        for step in &node.steps {
            let is_same = |same: &&mut SameStep<'_>| {
                let known = same.step;
                (&known.name, &known.item, known.state, &known.diff)
                    == (&step.name, &step.item, step.state, &step.diff)
                    && known.error == step.error
                    && known.notes == step.notes
            };
            match all.iter_mut().find(is_same) {
                Some(same) => same.nodes.push(&node.name),
                None => {
                    // Behind what other nodes reported of the same step.
                    let behind = all.iter().rposition(|same| same.step.name == step.name);
                    let at = behind.map_or(all.len(), |at| at + 1);
                    let nodes = vec![node.name.as_str()];
                    all.insert(at, SameStep { step, nodes });
                }
            }
        }
    }
    all
}

/// Names of nodes: all of them by their number, a few by name.
fn names(nodes: &[&str], all: usize) -> String {
    match nodes {
        [one] => (*one).to_owned(),
        nodes if nodes.len() == all => format!("same on {}", counted(all, "node")),
        nodes if nodes.len() <= MAX_NAMES => nodes.join(", "),
        nodes => {
            let (first, rest) = nodes.split_at(MAX_NAMES);
            format!(
                "same on {}: {}, and {} more",
                counted(nodes.len(), "node"),
                first.join(", "),
                rest.len()
            )
        }
    }
}

fn in_order(counts: &BTreeMap<&str, usize>) -> String {
    let known = WORDS
        .iter()
        .filter(|word| counts.contains_key(*word))
        .copied();
    let others = counts.keys().copied().filter(|word| !WORDS.contains(word));
    let parts: Vec<String> = known
        .chain(others)
        .map(|word| format!("{} {word}", counts.get(word).copied().unwrap_or_default()))
        .collect();
    parts.join(", ")
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nodes_are_named_until_there_are_many() {
        assert_eq!(names(&["a"], 3), "a");
        assert_eq!(names(&["a"], 1), "a");
        assert_eq!(names(&["a", "b"], 3), "a, b");
        assert_eq!(names(&["a", "b", "c"], 3), "same on 3 nodes");
        let many: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            names(&many, 10),
            "same on 9 nodes: n0, n1, n2, n3, n4, and 4 more"
        );
    }

    #[test]
    fn steps_are_the_same_only_with_the_same_words() {
        let part = |node: &str, said: &str| NodePart {
            name: node.to_owned(),
            state: "ok".to_owned(),
            steps: vec![StepReport {
                name: "say".to_owned(),
                item: None,
                state: StepState::Ok,
                diff: None,
                error: None,
                notes: vec![said.to_owned()],
                reasons: Vec::new(),
                changes: Vec::new(),
                took: Duration::ZERO,
                place: portolan_fleet::Place {
                    file: "book.yaml".into(),
                    line: 1,
                    column: 1,
                },
            }],
            owed: Vec::new(),
            stopped: None,
        };
        let report = RunReport {
            run: "r".to_owned(),
            state: "ok".to_owned(),
            reason: None,
            nodes: vec![part("a", "one"), part("b", "other"), part("c", "one")],
        };
        let same = same_steps(&report);
        let nodes: Vec<&[&str]> = same.iter().map(|same| &same.nodes[..]).collect();
        assert_eq!(nodes, [&["a", "c"][..], &["b"]]);
    }
}
