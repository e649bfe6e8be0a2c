//! When a TaskBook is run although nobody asks for it: it changed, nodes joined, or it is time to look for drift.
//!
//! One run at a time, and only while a window is open. Changes that come meanwhile are one run later.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::span::{WrittenSpan, later};
use crate::time_window::{TimeWindow, TimeWindowSpec};
use crate::trigger::SpecFault;

/// How often drift is looked for, unless a book says otherwise.
const EVERY: WrittenSpan = WrittenSpan::seconds(30 * 60);

/// The shortest and the longest pause between two looks for drift, in seconds.
const PAUSES: (u64, u64) = (60, 7 * 24 * 3600);

/// The most windows of a book.
const MAX_WINDOWS: usize = 32;

/// What makes a run of a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReconcileCause {
    /// The book is another one than the one that was run.
    Commit,
    /// A node of the book is ready that did not have it yet.
    Join,
    /// It is time to look whether nodes are still as the book says.
    Drift,
}

/// Whether runs change nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReconcileMode {
    /// They only look.
    #[default]
    Check,
    /// They change what is not as the book says.
    Apply,
}

/// The rules of a book as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReconcileSpec {
    /// What makes a run.
    pub on: Vec<ReconcileCause>,
    /// How often drift is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<WrittenSpan>,
    /// Whether runs change nodes.
    pub mode: ReconcileMode,
    /// When runs may be made; always without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<TimeWindowSpec>,
}

/// The rules of a book.
///
/// ```
/// use portolan_trigger::{Reconcile, ReconcileCause, ReconcileSight, ReconcileSpec};
///
/// let spec: ReconcileSpec = serde_json::from_str(r#"{"on": ["commit", "join"], "mode": "apply"}"#)?;
/// let rules = Reconcile::new(&spec).expect("good rules");
/// let now = "2026-11-18T09:00:00Z".parse()?;
/// let mut sight = ReconcileSight { generation: 1, ..ReconcileSight::default() };
/// let step = rules.step(&Reconcile::begin(now), &sight, now);
/// assert_eq!(step.run.expect("it was never run").cause, ReconcileCause::Commit);
///
/// sight.nodes.insert("uuid-1".to_owned(), "web-1".to_owned());
/// let step = rules.step(&step.state, &sight, now);
/// assert_eq!(step.run.expect("a node joined").nodes, ["web-1"]);
/// assert_eq!(rules.step(&step.state, &sight, now).run, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reconcile {
    on: BTreeSet<ReconcileCause>,
    every: WrittenSpan,
    mode: ReconcileMode,
    windows: Vec<TimeWindow>,
}

/// What is remembered about a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconcileState {
    /// The generation that was dealt with; 0 for none.
    generation: u32,
    /// The uuids of the nodes that were dealt with.
    nodes: BTreeSet<String>,
    /// When all nodes were looked at.
    looked: Timestamp,
    /// How many runs were made.
    runs: u64,
}

/// How a book and its nodes are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReconcileSight {
    /// The generation of the book.
    pub generation: u32,
    /// The nodes of the book that are ready, by uuid with their names.
    pub nodes: BTreeMap<String, String>,
    /// The uuids of those that are not ready and have not gone either: their connection is lost for a moment.
    pub silent: BTreeSet<String>,
    /// Whether a run that was made by these rules has not ended.
    pub is_active: bool,
}

/// What is to be done, and what is remembered once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileStep {
    /// What is remembered.
    pub state: ReconcileState,
    /// The run to make.
    pub run: Option<ReconcileRun>,
}

/// A run to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileRun {
    /// Why.
    pub cause: ReconcileCause,
    /// The names of the nodes that it works on; all of the book if there are none.
    pub nodes: Vec<String>,
    /// Which run of the book it is: whoever decides again from the same state gets the same number.
    pub number: u64,
}

impl ReconcileCause {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Join => "join",
            Self::Drift => "drift",
        }
    }
}

impl Reconcile {
    /// Checks rules.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn new(spec: &ReconcileSpec) -> Result<Self, Vec<SpecFault>> {
        let mut faults = Vec::new();
        let mut add = |field: String, message: String| faults.push(SpecFault { field, message });
        if spec.on.is_empty() {
            let message = "must have at least one of `commit`, `join` and `drift`";
            add("on".to_owned(), message.to_owned());
        }
        let every = spec.every.unwrap_or(EVERY);
        let (least, most) = (
            WrittenSpan::seconds(PAUSES.0),
            WrittenSpan::seconds(PAUSES.1),
        );
        if !(least..=most).contains(&every) {
            add(
                "every".to_owned(),
                format!("must be from {least} to {most}"),
            );
        }
        if spec.every.is_some() && !spec.on.contains(&ReconcileCause::Drift) {
            let message = "has no meaning unless `on` has `drift`";
            add("every".to_owned(), message.to_owned());
        }
        if spec.windows.len() > MAX_WINDOWS {
            let message = format!("must have at most {MAX_WINDOWS} items");
            add("windows".to_owned(), message);
        }
        let mut windows = Vec::new();
        for (index, window) in spec.windows.iter().enumerate().take(MAX_WINDOWS) {
            match TimeWindow::new(window) {
                Ok(window) => windows.push(window),
                Err(error) => add(format!("windows[{index}]"), error.to_string()),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            on: spec.on.iter().copied().collect(),
            every,
            mode: spec.mode,
            windows,
        })
    }

    /// Whether runs change nodes.
    pub fn mode(&self) -> ReconcileMode {
        self.mode
    }

    /// What is remembered about a book that is new: none of its nodes had it.
    pub fn begin(now: Timestamp) -> ReconcileState {
        ReconcileState {
            generation: 0,
            nodes: BTreeSet::new(),
            looked: now,
            runs: 0,
        }
    }

    /// Decides whether a run is made now.
    pub fn step(
        &self,
        state: &ReconcileState,
        sight: &ReconcileSight,
        now: Timestamp,
    ) -> ReconcileStep {
        let mut state = state.clone();
        // Who left and comes back joins again.
        let is_there =
            |uuid: &String| sight.nodes.contains_key(uuid) || sight.silent.contains(uuid);
        state.nodes.retain(is_there);
        if !self.on.contains(&ReconcileCause::Commit) {
            state.generation = sight.generation;
        }
        if !self.on.contains(&ReconcileCause::Join) {
            state.nodes.extend(sight.nodes.keys().cloned());
        }
        let cause = self
            .cause(&state, sight, now)
            .filter(|_| !sight.is_active && self.is_open(now));
        let Some(cause) = cause else {
            return ReconcileStep { state, run: None };
        };
        let joined = sight.nodes.iter();
        let joined = joined.filter(|(uuid, _)| !state.nodes.contains(*uuid));
        let nodes = match cause {
            ReconcileCause::Join => joined.map(|(_, name)| name.clone()).collect(),
            ReconcileCause::Commit | ReconcileCause::Drift => Vec::new(),
        };
        if cause != ReconcileCause::Join {
            state.looked = now;
        }
        state.generation = sight.generation;
        state.nodes.extend(sight.nodes.keys().cloned());
        state.runs += 1;
        let number = state.runs;
        ReconcileStep {
            state,
            run: Some(ReconcileRun {
                cause,
                nodes,
                number,
            }),
        }
    }

    fn cause(
        &self,
        state: &ReconcileState,
        sight: &ReconcileSight,
        now: Timestamp,
    ) -> Option<ReconcileCause> {
        // A run of the whole book deals with nodes that joined, too.
        if state.generation != sight.generation {
            return Some(ReconcileCause::Commit);
        }
        // A clock that was put back must not end the looks.
        let is_due = now >= later(state.looked, self.every.0) || now < state.looked;
        if self.on.contains(&ReconcileCause::Drift) && is_due {
            return Some(ReconcileCause::Drift);
        }
        let has_joined = sight.nodes.keys().any(|uuid| !state.nodes.contains(uuid));
        has_joined.then_some(ReconcileCause::Join)
    }

    fn is_open(&self, now: Timestamp) -> bool {
        self.windows.is_empty() || self.windows.iter().any(|window| window.is_open(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(spec: &str) -> Reconcile {
        let spec: ReconcileSpec = serde_json::from_str(spec).expect("a spec");
        Reconcile::new(&spec).expect("good rules")
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-11-18T{text}Z").parse().expect("a time")
    }

    fn sight(generation: u32, nodes: &[&str]) -> ReconcileSight {
        let nodes = nodes
            .iter()
            .map(|name| (format!("uuid-{name}"), (*name).to_owned()));
        ReconcileSight {
            generation,
            nodes: nodes.collect(),
            ..ReconcileSight::default()
        }
    }

    #[test]
    fn drift_is_looked_for_once_in_each_pause_and_after_the_clock_was_put_back() {
        let rules = rules(r#"{"on": ["drift"], "every": "10m"}"#);
        let sight = sight(3, &["a"]);
        let state = Reconcile::begin(at("09:00:00"));
        assert_eq!(rules.step(&state, &sight, at("09:09:59")).run, None);
        let step = rules.step(&state, &sight, at("11:00:00"));
        let run = step.run.expect("a look");
        assert_eq!((run.cause, run.number), (ReconcileCause::Drift, 1));
        assert_eq!(rules.step(&step.state, &sight, at("11:09:00")).run, None);
        let back = rules.step(&step.state, &sight, at("08:00:00"));
        assert_eq!(back.run.expect("a look").number, 2);
    }

    #[test]
    fn what_comes_during_a_run_or_outside_of_the_windows_is_one_run_later() {
        let rules = rules(
            r#"{"on": ["commit", "join"], "mode": "apply", "windows": [{"from": "22:00", "to": "06:00"}]}"#,
        );
        let first = sight(1, &["a"]);
        let state = Reconcile::begin(at("09:00:00"));
        assert_eq!(rules.step(&state, &first, at("12:00:00")).run, None);
        let changed = sight(2, &["a", "b"]);
        let step = rules.step(&state, &changed, at("22:00:00"));
        let run = step.run.expect("one run");
        assert_eq!((run.cause, run.nodes.len()), (ReconcileCause::Commit, 0));
        let mut joined = sight(2, &["a", "b", "c", "d"]);
        joined.is_active = true;
        let waits = rules.step(&step.state, &joined, at("22:00:01"));
        assert_eq!(waits.run, None);
        joined.is_active = false;
        let step = rules.step(&waits.state, &joined, at("22:00:02"));
        assert_eq!(step.run.expect("both at once").nodes, ["c", "d"]);
        // Who was away joins again, and who was silent for a moment does not.
        let mut silent = sight(2, &["a", "b", "d"]);
        silent.silent = BTreeSet::from(["uuid-c".to_owned()]);
        let heard = rules.step(&step.state, &silent, at("22:00:03"));
        assert_eq!(rules.step(&heard.state, &joined, at("22:00:03")).run, None);
        let away = rules.step(&step.state, &sight(2, &["a", "b", "d"]), at("22:00:03"));
        let step = rules.step(&away.state, &joined, at("22:00:04"));
        assert_eq!(step.run.expect("it is back").nodes, ["c"]);
    }

    #[test]
    fn wrong_rules_are_told_with_their_fields() {
        let spec = r#"{"every": "1s", "windows": [{"from": "25:00", "to": "06:00"}]}"#;
        let spec: ReconcileSpec = serde_json::from_str(spec).expect("a spec");
        let faults = Reconcile::new(&spec).expect_err("they are wrong");
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["on", "every", "every", "windows[0]"]);
    }
}
