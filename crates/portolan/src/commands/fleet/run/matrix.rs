//! Nodes and steps of a run on a terminal, while it goes on.
//!
//! ```text
//! web-1             ✓++  changed
//! web-2             ✓+✗  failed
//! 46 nodes          ✓·   running   web-3, web-4, web-5, …
//! 2/48 nodes · 4 s
//! ```
//!
//! A row for each node and a letter for each step; nodes that are equally far share a row when there are many.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use portolan_fleet::{NodePart, RunReport, StepState};
use portolan_object::counted;
use portolan_review::clip;

/// How many rows are drawn at most. A terminal has 24.
const MOST_ROWS: usize = 16;

/// How many steps are drawn at most: the last ones.
const MOST_STEPS: usize = 40;

/// How wide names of nodes are at most.
const MOST_NAME: usize = 24;

/// How wide a line is at most when the terminal does not say.
const WIDTH: usize = 80;

/// How many nodes a folded row names.
const NAMED: usize = 3;

/// A matrix that is drawn again and again.
pub(super) struct RunMatrix {
    bar: ProgressBar,
    began: Instant,
}

impl RunMatrix {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = BarStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            began: Instant::now(),
        }
    }

    pub(super) fn draw(&self, report: &RunReport) {
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
        let lines = matrix(report, self.began.elapsed());
        let lines: Vec<String> = lines
            .iter()
            .map(|line| clip(line, width.saturating_sub(1)))
            .collect();
        self.bar.set_message(lines.join("\n"));
        self.bar.tick();
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The lines: nodes that need attention first, then those at work, then the rest.
fn matrix(report: &RunReport, running_for: Duration) -> Vec<String> {
    let steps = columns(report);
    let first = steps.len().saturating_sub(MOST_STEPS);
    let shown = steps.get(first..).unwrap_or_default();
    let mut rows: Vec<(Vec<&str>, String, &str)> = Vec::new();
    let is_folded = report.nodes.len() > MOST_ROWS;
    for node in &report.nodes {
        let cells = cells(node, shown);
        let same = rows.iter_mut().find(|(_, known, state)| {
            is_folded && *known == cells && *state == node.state.as_str()
        });
        match same {
            Some((nodes, _, _)) => nodes.push(&node.name),
            None => rows.push((vec![&node.name], cells, &node.state)),
        }
    }
    if rows.len() > MOST_ROWS {
        rows.sort_by_key(|(_, _, state)| rank(state));
    }
    let hidden: usize = rows
        .iter()
        .skip(MOST_ROWS)
        .map(|(nodes, _, _)| nodes.len())
        .sum();
    rows.truncate(MOST_ROWS);
    let names = rows
        .iter()
        .map(|(nodes, _, _)| title(nodes).chars().count());
    let width = names.max().unwrap_or_default().min(MOST_NAME);
    let mut lines: Vec<String> = rows
        .iter()
        .map(|(nodes, cells, state)| {
            let title = clip(&title(nodes), MOST_NAME);
            let line = format!("{title:<width$}  {cells}  {state}{}", members(nodes));
            line.trim_end().to_owned()
        })
        .collect();
    if hidden > 0 {
        lines.push(format!("and {} more", counted(hidden, "node")));
    }
    let ended = report.nodes.iter().filter(|node| node.ended().is_some());
    let mut last = format!(
        "{}/{} · {} s",
        ended.count(),
        counted(report.nodes.len(), "node"),
        running_for.as_secs()
    );
    if let Some(reason) = &report.reason {
        last = format!("{last} · {reason}");
    }
    lines.push(last);
    lines
}

/// The steps that any node has reported, in the order of the node that came furthest.
fn columns(report: &RunReport) -> Vec<&str> {
    let mut steps: Vec<&str> = Vec::new();
    let mut nodes: Vec<&NodePart> = report.nodes.iter().collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.steps.len()));
    for node in nodes {
        for step in &node.steps {
            if !steps.contains(&step.name.as_str()) {
                steps.push(&step.name);
            }
        }
    }
    steps
}

/// A letter for each step: the worst of its items.
fn cells(node: &NodePart, steps: &[&str]) -> String {
    let mut worst: BTreeMap<&str, (u8, char)> = BTreeMap::new();
    for step in &node.steps {
        let cell = letter(step.state);
        let known = worst.entry(&step.name).or_insert(cell);
        *known = (*known).max(cell);
    }
    let cells = steps
        .iter()
        .map(|step| worst.get(step).map_or('·', |(_, letter)| *letter));
    cells.collect()
}

fn letter(state: StepState) -> (u8, char) {
    match state {
        StepState::Skipped => (0, '-'),
        StepState::Ok => (1, '✓'),
        StepState::Changed => (2, '+'),
        StepState::Rescued | StepState::Ignored => (3, '!'),
        StepState::Unknown => (4, '?'),
        StepState::Failed => (5, '✗'),
    }
}

fn rank(state: &str) -> u8 {
    match state {
        "failed" | "unknown" | "unreachable" => 0,
        "running" => 1,
        "waiting" => 2,
        "queued" => 4,
        _ => 3,
    }
}

fn title(nodes: &[&str]) -> String {
    match nodes {
        [one] => (*one).to_owned(),
        nodes => counted(nodes.len(), "node"),
    }
}

/// Some of the nodes of a folded row.
fn members(nodes: &[&str]) -> String {
    if nodes.len() < 2 {
        return String::new();
    }
    let named: Vec<&str> = nodes.iter().copied().take(NAMED).collect();
    let more = if nodes.len() > NAMED { ", …" } else { "" };
    format!("  {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use portolan_fleet::{Place, StepReport};

    use super::*;

    fn node(name: &str, state: &str, steps: &[(&str, StepState)]) -> NodePart {
        let steps = steps.iter().map(|(name, state)| StepReport {
            name: (*name).to_owned(),
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
        });
        NodePart {
            name: name.to_owned(),
            state: state.to_owned(),
            steps: steps.collect(),
            owed: Vec::new(),
            stopped: None,
        }
    }

    fn lines(nodes: Vec<NodePart>) -> Vec<String> {
        let report = RunReport {
            run: "web-1".to_owned(),
            state: "running".to_owned(),
            reason: Some("1 node failed".to_owned()),
            nodes,
        };
        matrix(&report, Duration::from_secs(4))
    }

    #[test]
    fn every_node_has_a_row_and_every_step_a_letter() {
        use StepState::{Changed, Failed, Ok, Skipped};
        let drawn = lines(vec![
            node("a", "running", &[("one", Ok)]),
            node(
                "long-name",
                "changed",
                &[("one", Ok), ("two", Changed), ("three", Skipped)],
            ),
            node("c", "failed", &[("one", Ok), ("two", Ok), ("two", Failed)]),
        ]);
        assert_eq!(
            drawn,
            [
                "a          ✓··  running",
                "long-name  ✓+-  changed",
                "c          ✓✗·  failed",
                "2/3 nodes · 4 s · 1 node failed",
            ]
        );
    }

    #[test]
    fn many_nodes_share_rows_and_the_bad_ones_stay() {
        use StepState::{Changed, Failed};
        let mut nodes: Vec<NodePart> = (0..60)
            .map(|number| node(&format!("n{number:02}"), "changed", &[("one", Changed)]))
            .collect();
        nodes.push(node("z", "failed", &[("one", Failed)]));
        assert_eq!(
            lines(nodes),
            [
                "60 nodes  +  changed  n00, n01, n02, …",
                "z         ✗  failed",
                "61/61 nodes · 4 s · 1 node failed",
            ]
        );
        // Nodes that all did something else do not fit; those that need attention come first.
        let mut nodes: Vec<NodePart> = (0..40)
            .map(|number| {
                let step = format!("s{number}");
                node(
                    &format!("n{number:02}"),
                    "changed",
                    &[(step.as_str(), Changed)],
                )
            })
            .collect();
        nodes.push(node("z", "failed", &[("s0", Failed)]));
        let drawn = lines(nodes);
        assert_eq!(drawn.len(), MOST_ROWS + 2);
        assert!(
            drawn.first().is_some_and(|line| line.starts_with('z')),
            "{drawn:?}"
        );
        assert!(drawn.contains(&"and 25 nodes more".to_owned()), "{drawn:?}");
    }
}
