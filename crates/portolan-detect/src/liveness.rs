//! The states of all nodes, and what they are decided from. [`step`] is the whole decision; it reads no clock.

mod decide;
mod record;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use decide::step;
pub use record::{DOWN_GRACE, FREEZE_LIMIT, heartbeat_ttl, take_over_grace};

use crate::uid::NodeUid;
use record::{Freeze, NodeRecord};

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LivenessState {
    /// Its stream is open.
    Ready,
    /// Its stream is lost, and not enough of its peers say that it is gone: a run waits for it.
    LinkLost,
    /// Its peers do not see it, and its stream is open: worth a note, and nothing else.
    Suspect,
    /// Its stream is lost, and its peers do not see it either.
    Down,
    /// It said goodbye.
    Left,
}

/// The name of a cell: nodes that gossip with one another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellName(Arc<str>);

impl CellName {
    /// The cell of that name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for CellName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Something that was observed. The time of an observation is when the server made it: no clock of a node counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LivenessInput {
    /// A node belongs to this server. A node that is new here keeps the given state until it is heard, or until the
    /// time of [`take_over_grace`] has passed. For a node that is known, only the cell is taken.
    Known {
        /// The node.
        node: NodeUid,
        /// Its cell, if it gossips.
        cell: Option<CellName>,
        /// The state that is stored for it.
        state: LivenessState,
    },
    /// A node was deleted, or belongs to another server now.
    Gone(NodeUid),
    /// This server has become the owner: no node is called lost before the time of [`take_over_grace`] has passed.
    TookOver,
    /// A node's stream was opened, or it sent something.
    Heard(NodeUid),
    /// A node's stream ended without a goodbye.
    Closed(NodeUid),
    /// A node said goodbye on its stream.
    Left(NodeUid),
    /// All the nodes that this node cannot reach, as it says on its own stream. Replaces what it said before.
    Accuses {
        /// The node that says so: the one whose certificate opened the stream.
        accuser: NodeUid,
        /// The nodes that it cannot reach.
        accused: Vec<NodeUid>,
    },
}

/// Something that has changed. Only changes are worth writing to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LivenessChange {
    /// The state of a node.
    Node {
        /// The node.
        node: NodeUid,
        /// What it was.
        from: LivenessState,
        /// What it is.
        to: LivenessState,
        /// Whether it is one of many: [`LivenessChange::MassLossBegan`] was reported for all of them, and this change is
        /// written but needs no event of its own.
        is_in_mass_loss: bool,
    },
    /// So many nodes were lost at once that it is taken for a partition: none of them is called down meanwhile.
    MassLossBegan {
        /// Their cell; nodes without one, and those of cells of fewer than three, are counted together.
        cell: Option<CellName>,
        /// How many were lost.
        lost: usize,
        /// How many there are.
        of: usize,
    },
    /// A mass loss is over.
    MassLossEnded {
        /// The cell that it was reported for.
        cell: Option<CellName>,
        /// Why it ended.
        cause: MassLossEnd,
    },
}

/// Why a mass loss is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MassLossEnd {
    /// Enough nodes are back.
    Returned,
    /// It lasted for [`FREEZE_LIMIT`]: these are no longer nodes that will be back in a moment.
    TooLong,
    /// The server took over: all nodes have time to be heard again.
    TookOver,
}

/// The states of all nodes of a server, with what is needed to decide them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetLiveness {
    nodes: BTreeMap<NodeUid, NodeRecord>,
    freezes: BTreeMap<Option<CellName>, Freeze>,
}

impl FleetLiveness {
    /// The state of a node.
    pub fn state(&self, node: NodeUid) -> Option<LivenessState> {
        Some(self.nodes.get(&node)?.state)
    }

    /// The states of all nodes, in the order of their uids.
    pub fn states(&self) -> impl Iterator<Item = (NodeUid, LivenessState)> {
        self.nodes
            .iter()
            .map(|(node, record)| (*node, record.state))
    }

    /// How often an agent should send a heartbeat, as the answer to its last one says.
    pub fn ttl(&self) -> Duration {
        heartbeat_ttl(self.present())
    }

    /// How long nothing has been heard of a node whose link is lost; `None` if its link is not lost. A mass loss has no
    /// part in this, so whoever gives up on unreachable nodes after a time does so during a mass loss too.
    pub fn unreachable_for(&self, node: NodeUid, now: Duration) -> Option<Duration> {
        let record = self.nodes.get(&node)?;
        let is_lost = record.state != LivenessState::Left && record.is_link_lost(now);
        is_lost.then(|| now.saturating_sub(record.lost_since()))
    }

    /// Whether a mass loss keeps nodes of this cell from being called down.
    pub fn is_in_mass_loss(&self, cell: Option<&CellName>) -> bool {
        self.freezes.contains_key(&cell.cloned())
    }

    /// When something can change although nothing is observed: [`step`] is to be called then.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        let nodes = self.nodes.values().flat_map(NodeRecord::due_times);
        let freezes = self
            .freezes
            .values()
            .map(|freeze| freeze.since + FREEZE_LIMIT);
        nodes.chain(freezes).filter(|due| *due > now).min()
    }

    /// How many nodes should be sending heartbeats.
    fn present(&self) -> usize {
        let records = self.nodes.values();
        records.filter(|record| record.is_present()).count()
    }
}
