//! A run over many nodes, as a pure state machine: what is known goes in, the next state and what to do come out.
//!
//! ```text
//! RunState + Observed ──advance──▶ RunState' + RunEffects      store RunState' first, then do the effects
//!                                       │
//!                              nodes: Queued ▶ Working(phase) ▶ Waiting at a barrier ▶ Done(state)
//! ```
//!
//! Barriers cut a book into phases and are counted from 0: a node that works in phase `n` may pass the barriers below `n`.
//! A barrier of the batch opens when no node of the batch is at work, one of the run when every batch has come to it. A node
//! that skips the block with a barrier comes to a later one and waits there.
//!
//! The caller writes the new state before it does an effect, and may do any effect again after a crash: dispatches carry
//! the phase, and agents answer a repeated one from their journal. No clock is read here; times are what the caller
//! observed, as time since the run was made.

mod decide;
mod permits;
mod window;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::outcome::NodeState;

pub use decide::advance;
pub use permits::Permits;
pub use window::{Arrival, ReportWindow};

/// How a run goes over its nodes; nothing of it changes while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The nodes, in the order in which they are taken.
    pub nodes: Vec<String>,
    /// How many nodes each batch has; together all of them.
    pub batches: Vec<usize>,
    /// The barriers of the book, in the order in which nodes come to them: it has one phase more.
    pub barriers: Vec<BarrierScope>,
    /// How many nodes may be bad before the run stops.
    pub max_failures: usize,
    /// Whether nodes at work end after their current step when the run stops.
    pub stops_on_failure: bool,
    /// What happens to nodes that cannot be reached.
    pub unreachable: UnreachablePolicy,
    /// What must hold between two batches.
    #[serde(default)]
    pub gate: Option<GatePlan>,
    /// How many nodes may take a step at the same time, by the step.
    #[serde(default)]
    pub throttles: BTreeMap<String, u32>,
    /// Nodes that take steps for the nodes of the run. No other run may change them meanwhile.
    #[serde(default)]
    pub delegates: Vec<String>,
    /// How long the run waits for nodes that another run holds.
    pub queue_limit: Duration,
    /// How long an agent may still start steps after it was last heard of: its lease and the longest time-out of a step.
    pub silence_limit: Duration,
}

/// What must hold between two batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePlan {
    /// Whether something is asked.
    pub is_asked: bool,
    /// How often it is asked again after it said no.
    pub retries: u32,
    /// The time between two questions.
    pub interval: Duration,
    /// Whether somebody must approve.
    pub needs_approval: bool,
}

/// Whom a barrier waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierScope {
    /// The nodes of the batch.
    Batch,
    /// Every node of the run.
    Run,
}

/// What happens to a node that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnreachablePolicy {
    /// It counts against the failures that are allowed.
    Fail,
    /// It is left out.
    Skip,
    /// It counts after this time.
    Wait(Duration),
}

/// How far a run is. All of it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// What it does now.
    pub stage: Stage,
    /// The current batch, from 0.
    pub batch: usize,
    /// The phase behind the last barrier of the whole run that is open; 0 before the first.
    pub phase: usize,
    /// Every node.
    pub nodes: BTreeMap<String, NodeProgress>,
    /// The gate between two batches.
    #[serde(default)]
    pub gate: GateState,
    /// Which nodes take steps that few may take at the same time.
    #[serde(default)]
    pub permits: Permits,
    /// The node that takes the steps that run once in the run. Once chosen, it stays.
    #[serde(default)]
    pub first: Option<String>,
    /// Whether somebody asked for an end, and how.
    pub cancel: Option<Cancel>,
    /// When the run began to wait for nodes that another run holds.
    pub queued_since: Option<Duration>,
}

/// How far the gate between two batches is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateState {
    /// The gates that the run has come to, this one too.
    pub number: u32,
    /// How often this gate said no.
    pub refusals: u32,
    /// The number of the current question. No two questions of a run have the same.
    pub question: u32,
    /// The question is not asked before this moment.
    pub ask_at: Duration,
    /// Whether it said yes.
    pub is_open: bool,
    /// Why it said no the last time.
    pub why: Option<String>,
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateReply {
    /// The number of the question. An answer to another one is late and changes nothing.
    pub question: u32,
    /// Nothing if the next batch may begin; otherwise why not.
    pub refusal: Option<String>,
}

/// What a run does now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// It waits until every node of its batch is free.
    Reserving,
    /// Nodes of its batch are at work.
    Running,
    /// It looks whether the next batch may begin.
    Gate,
    /// It begins no more nodes; those at work come to their end.
    Stopping {
        /// Why.
        reason: String,
    },
    /// It waits for somebody: a node is held by another run for too long, or a gate does not open.
    Stalled {
        /// Why.
        reason: String,
    },
    /// Every node has its end.
    Ended(RunEnd),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// Every node is ok, changed or skipped.
    Succeeded,
    /// A node failed, was not reached or is unknown.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeProgress {
    /// Its batch has not come.
    Queued,
    /// It was sent the book for this phase, or is about to be.
    Working {
        /// The phase.
        phase: usize,
        /// When it was last heard of.
        heard: Duration,
    },
    /// It has come to a barrier.
    Waiting {
        /// The barrier.
        barrier: usize,
        /// How its steps ended so far.
        state: NodeState,
    },
    /// It has its end, which never changes.
    Done(NodeEnd),
}

/// The end of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeEnd {
    /// It ended so.
    State(NodeState),
    /// It was not begun, because the run was cancelled or stopped.
    NotBegun,
}

/// How somebody wants a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cancel {
    /// Steps at work end.
    Drain,
    /// Steps at work are ended.
    Now,
}

/// What the caller knows.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Time since the run was made.
    pub now: Duration,
    /// What agents reported since the last time, in order.
    pub reports: Vec<NodeReport>,
    /// Nodes that another run holds, with that run.
    pub held: BTreeMap<String, String>,
    /// Nodes that have a stream now.
    pub connected: std::collections::BTreeSet<String>,
    /// What the gate answered, if it was asked.
    pub gate: Option<GateReply>,
    /// The last gate that somebody approved.
    pub approved_gate: u32,
    /// Nodes that the run may not send anything to any more.
    pub denied: std::collections::BTreeSet<String>,
    /// A cancel that somebody asked for.
    pub cancel: Option<Cancel>,
    /// Whether somebody asked a stalled run to go on.
    pub resume: bool,
}

/// What an agent reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The node.
    pub node: String,
    /// The phase that it is about; a report about another one is late and changes nothing.
    pub phase: usize,
    /// What happened.
    pub event: NodeEvent,
}

/// What happened on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// It is at work.
    Alive,
    /// It has come to a barrier that is not open for it.
    AtBarrier {
        /// The barrier.
        barrier: usize,
        /// How its steps ended so far.
        state: NodeState,
    },
    /// It wants to take a step that few nodes may take at the same time.
    WantsPermit(String),
    /// It has taken such a step.
    GivesPermit(String),
    /// It has its end.
    Ended(NodeState),
}

/// What to do, after the new state is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEffect {
    /// Take hold of these nodes, in this order.
    Reserve(Vec<String>),
    /// Send a node its book and let it take a phase. Repeating it does no harm.
    Dispatch {
        /// The node.
        node: String,
        /// The phase.
        phase: usize,
    },
    /// Ask whether the next batch may begin. Comes again until there is an answer.
    AskGate {
        /// The number of the question.
        question: u32,
    },
    /// Let a node take a step that few may take at the same time. Repeating it does no harm.
    Permit {
        /// The node.
        node: String,
        /// The step.
        step: String,
    },
    /// The node may not be sent anything any more; it has failed.
    Deny(String),
    /// Let a node end: after its current step, or at once.
    Stop {
        /// The node.
        node: String,
        /// How.
        how: Cancel,
    },
    /// Let go of a node.
    Release(String),
}

impl RunState {
    /// A run that has not begun.
    pub fn new(plan: &RunPlan) -> Self {
        let nodes = plan.nodes.iter();
        Self {
            stage: Stage::Reserving,
            batch: 0,
            phase: 0,
            nodes: nodes
                .map(|node| (node.clone(), NodeProgress::Queued))
                .collect(),
            gate: GateState::default(),
            permits: Permits::default(),
            first: None,
            cancel: None,
            queued_since: None,
        }
    }

    /// The nodes of a batch.
    pub fn batch_nodes(plan: &RunPlan, batch: usize) -> &[String] {
        let start: usize = plan.batches.iter().take(batch).sum();
        let size = plan.batches.get(batch).copied().unwrap_or_default();
        plan.nodes.get(start..start + size).unwrap_or_default()
    }

    /// How many nodes count against the failures that are allowed.
    pub fn failures(&self) -> usize {
        let bad = |progress: &&NodeProgress| matches!(progress, NodeProgress::Done(NodeEnd::State(state)) if state.is_bad());
        self.nodes.values().filter(bad).count()
    }

    /// The first barrier that one of these nodes waits at.
    fn first_barrier<'n>(&self, nodes: impl IntoIterator<Item = &'n String>) -> Option<usize> {
        let barriers = nodes
            .into_iter()
            .filter_map(|node| match self.nodes.get(node) {
                Some(NodeProgress::Waiting { barrier, .. }) => Some(*barrier),
                _ => None,
            });
        barriers.min()
    }

    /// Whether the first node takes no further step.
    pub fn has_first_ended(&self) -> bool {
        let first = self.first.as_ref().and_then(|first| self.nodes.get(first));
        matches!(first, Some(NodeProgress::Done(_)))
    }

    /// Nodes at work.
    pub fn working(&self) -> impl Iterator<Item = &String> {
        let is_working = |progress: &NodeProgress| matches!(progress, NodeProgress::Working { .. });
        self.nodes
            .iter()
            .filter(move |(_, progress)| is_working(progress))
            .map(|(node, _)| node)
    }
}
