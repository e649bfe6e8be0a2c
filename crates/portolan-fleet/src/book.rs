//! A TaskBook after it was read: every name resolved, every expression parsed, every option with its default.

mod read;
mod read_options;
mod share;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_digest::Digest;
use portolan_modules::{Account, Effect, ModuleDefinition};
use serde_json::{Map, Value};

use crate::decision::Decision;
use crate::fault::Place;

pub(crate) use read::{BookReader, beside, json};
pub use share::{Share, batch_sizes};

/// A TaskBook that can be run.
#[derive(Debug)]
pub struct Book {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: Option<String>,
    /// What a run must or may give.
    pub inputs: BTreeMap<String, Input>,
    /// Fixed values.
    pub vars: Map<String, Value>,
    /// Computed values, each after those that it needs.
    pub compute: Vec<(String, Decision)>,
    /// How a run goes over many nodes.
    pub run: RunOptions,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The handlers of the book and of what it includes, in the order in which they run.
    pub handlers: Vec<Step>,
    /// A digest of everything that decides what a run does, files that it includes and selected tags too.
    pub digest: Digest,
    /// The parts of the facts that the book reads, as in `os`.
    pub facts: BTreeSet<String>,
    /// Steps whose results on all nodes the book asks for: as it names them, and their paths.
    pub gathered: BTreeMap<String, String>,
    /// The paths of steps whose results other steps read, as in `steps['name']`.
    pub read_results: BTreeSet<String>,
    /// Whether the book asks for the nodes of the run, and for nodes by their labels.
    pub asks_fleet: AskedFleet,
    /// Names of `vars` whose values on a node are secret.
    pub secret_vars: BTreeSet<String>,
}

/// What a book asks about other nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedFleet {
    /// `peers`: the nodes of the run.
    pub peers: bool,
    /// `nodes()`: nodes by their labels.
    pub nodes: bool,
}

/// What a run must or may give.
#[derive(Debug, Clone)]
pub struct Input {
    /// The type of its value.
    pub kind: InputKind,
    /// Its value if none is given.
    pub default: Option<Value>,
    /// The only values that it can have; any if empty.
    pub choices: Vec<Value>,
    /// What a text must match.
    pub pattern: Option<regex::Regex>,
    /// Whether its value is secret.
    pub is_secret: bool,
}

/// The type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// A text.
    String,
    /// A whole number.
    Int,
    /// True or false.
    Bool,
    /// A span of time.
    Duration,
    /// A list.
    List,
    /// A map.
    Map,
}

/// How a run goes over many nodes.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The nodes, in the canonical JSON of the kind; null if the caller names them.
    pub target: Value,
    /// Whether the nodes of a batch take their steps together.
    pub is_lockstep: bool,
    /// Sizes of batches; the last repeats.
    pub batches: Vec<Share>,
    /// How many nodes may fail.
    pub max_failures: Share,
    /// Whether nodes at work end after their current step when the run stops.
    pub stops_on_failure: bool,
    /// What happens to nodes that cannot be reached.
    pub unreachable: Unreachable,
    /// What must hold between batches.
    pub gate: Option<Gate>,
    /// What happens to notified handlers of a node that failed.
    pub handlers_on_failure: HandlerPolicy,
    /// Whether runs wait.
    pub is_suspended: bool,
}

/// What happens to a node that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// It counts as failed.
    Fail,
    /// It is left out.
    Skip,
    /// It counts as failed after this time.
    Wait(Duration),
}

/// What must hold between batches.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The action whose result is looked at, with where it runs; a step that succeeds if `that` holds.
    pub probe: Option<Arc<Step>>,
    /// The condition over `result`.
    pub that: Option<Decision>,
    /// How often it is asked again.
    pub retries: Retries,
    /// Whether somebody must approve.
    pub needs_approval: bool,
}

/// What happens to notified handlers of a node that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerPolicy {
    /// The next run of the book runs them.
    Owe,
    /// They run at once.
    Run,
    /// They are forgotten.
    Drop,
}

/// A step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The path of names that leads to it, as in `release/package`.
    pub id: String,
    /// Where it was written.
    pub place: Place,
    /// What it does.
    pub work: Work,
    /// How it does it.
    pub options: StepOptions,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Work {
    /// Calls a module.
    Module(ModuleCall),
    /// Takes other steps.
    Block(Block),
    /// Runs the handlers that were notified.
    Flush,
    /// Waits for other nodes; its option `barrier` says for which.
    Barrier,
}

/// A module with its parameters as they were written.
#[derive(Debug, Clone)]
pub struct ModuleCall {
    /// The module.
    pub module: &'static ModuleDefinition,
    /// Its parameters; texts are rendered when the step is taken.
    pub parameters: Map<String, Value>,
    /// Where each parameter was written.
    pub places: BTreeMap<String, Place>,
    /// What `assert` is about: expressions that must hold.
    pub asserted: Vec<Decision>,
}

/// Steps that are taken together.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The steps.
    pub steps: Vec<Step>,
    /// Taken when one of them failed.
    pub rescue: Vec<Step>,
    /// Taken at the end, whatever happened.
    pub always: Vec<Step>,
    /// Of an included book: its own inputs and values.
    pub included: Option<Arc<Included>>,
}

/// The values that the steps of an included book see in place of the outer ones.
#[derive(Debug)]
pub struct Included {
    /// Its declared inputs.
    pub inputs: BTreeMap<String, Input>,
    /// What the including step gives; texts are rendered there.
    pub given: Map<String, Value>,
    /// Its fixed values.
    pub vars: Map<String, Value>,
    /// Its computed values, each after those that it needs.
    pub compute: Vec<(String, Decision)>,
}

/// How a step is taken.
#[derive(Debug, Clone)]
pub struct StepOptions {
    /// Whether it is taken at all.
    pub when: Option<Decision>,
    /// Taken once for each of these.
    pub for_each: Option<Items>,
    /// Who its programs run as.
    pub account: Option<Account>,
    /// Variables of its programs.
    pub env: Map<String, Value>,
    /// Values for this step only.
    pub vars: Map<String, Value>,
    /// Words to select steps by; those of outer steps too.
    pub tags: BTreeSet<String>,
    /// How often it is tried again.
    pub retries: Retries,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Whether it succeeded, in place of the module's answer.
    pub success: Option<Decision>,
    /// Whether it changed something, in place of the module's answer.
    pub changed: Option<Decision>,
    /// Whether a failure is shown and otherwise ignored.
    pub ignores_errors: bool,
    /// Positions of the handlers that it notifies.
    pub notify: Vec<usize>,
    /// More names for its result.
    pub register: Vec<String>,
    /// On which nodes it runs.
    pub run_on: RunOn,
    /// What it waits for before it is taken.
    pub barrier: Barrier,
    /// How many nodes take it at the same time; 0 for any number.
    pub throttle: u32,
    /// How often its work may be done; the module's answer without one.
    pub effect: Option<Effect>,
    /// What to do if nobody knows whether its work was done.
    pub on_unknown: OnUnknown,
    /// Whether nothing of it is shown.
    pub is_sensitive: bool,
}

/// What a step is taken for, one by one.
#[derive(Debug, Clone)]
pub enum Items {
    /// These; texts in them are rendered.
    Values(Value),
    /// The list or map that an expression gives.
    Decided(Decision),
}

/// How often a step is tried again.
#[derive(Debug, Clone)]
pub struct Retries {
    /// How many times after the first.
    pub limit: u32,
    /// The pause before the second attempt.
    pub interval: Duration,
    /// The factor by which the pause grows, in thousandths.
    pub backoff: u32,
    /// What ends the attempts; success without it.
    pub until: Option<Decision>,
}

/// On which nodes a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOn {
    /// On every node, for itself.
    All,
    /// On the first node, once in a run.
    First,
    /// On other nodes: group, selector and names as they were written, at most so many, for each node or once in a run.
    Others {
        /// The nodes of this group.
        group: Option<String>,
        /// The nodes whose labels match.
        selector: Option<String>,
        /// These nodes.
        nodes: Vec<String>,
        /// At most so many.
        limit: Option<u32>,
        /// Whether it runs once in a run, not once for each node.
        once_per_run: bool,
    },
}

/// What a step waits for before it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// Nothing.
    None,
    /// The nodes of its batch.
    Batch,
    /// All nodes of the run.
    Run,
}

/// What to do if nobody knows whether the work of a step was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// The node is unknown.
    Fail,
    /// A look at the node decides.
    Verify,
    /// It is done again.
    Rerun,
}

/// How long an attempt may take unless a step says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// The pause between attempts unless a step says otherwise.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// The most items of one `forEach`.
pub const MAX_ITEMS: usize = 10_000;

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            when: None,
            for_each: None,
            account: None,
            env: Map::new(),
            vars: Map::new(),
            tags: BTreeSet::new(),
            retries: Retries {
                limit: 0,
                interval: DEFAULT_INTERVAL,
                backoff: 1_000,
                until: None,
            },
            timeout: DEFAULT_TIMEOUT,
            success: None,
            changed: None,
            ignores_errors: false,
            notify: Vec::new(),
            register: Vec::new(),
            run_on: RunOn::All,
            barrier: Barrier::None,
            throttle: 0,
            effect: None,
            on_unknown: OnUnknown::Fail,
            is_sensitive: false,
        }
    }
}

impl Step {
    /// Its own name: the last of its path.
    pub fn name(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or(&self.id)
    }

    /// How often its work may be done when nobody knows whether it was done.
    pub fn effect(&self) -> Effect {
        match (&self.work, self.options.effect) {
            (_, Some(effect)) => effect,
            (Work::Module(call), None) => call.module.effect,
            _ => Effect::Converge,
        }
    }

    /// The steps inside it, those of `rescue` and `always` too.
    pub fn inner(&self) -> impl Iterator<Item = &Self> {
        let block = match &self.work {
            Work::Block(block) => Some(block),
            _ => None,
        };
        block
            .into_iter()
            .flat_map(|block| block.steps.iter().chain(&block.rescue).chain(&block.always))
    }

    /// Visits the step and everything inside it.
    pub fn visit<'s>(&'s self, seen: &mut dyn FnMut(&'s Self)) {
        seen(self);
        for step in self.inner() {
            step.visit(seen);
        }
    }
}

impl Book {
    /// A step or handler by its path.
    pub fn step(&self, id: &str) -> Option<&Step> {
        let mut found = None;
        for step in self.steps.iter().chain(&self.handlers) {
            step.visit(&mut |step| {
                if step.id == id {
                    found.get_or_insert(step);
                }
            });
        }
        found
    }
}
