//! What is kept of a node and of a mass loss, and the times that follow from it.
//!
//! ```text
//! last heard ──ttl── heartbeat due ─1 s─ overdue ─3.5 s─ link lost ── … ── down
//!                                        counts for a    shown           after ttl + grace + 1 s, with
//!                                        mass loss                       enough accusers
//! ```
//!
//! Nodes that are lost at the same moment were last heard at different moments, up to one ttl apart. The grace is never
//! shorter than the ttl, so that all of them are overdue, and counted, before the first of them can be down.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{CellName, LivenessState};
use crate::uid::NodeUid;

/// How often an agent sends a heartbeat, unless there are many agents.
const MIN_TTL: Duration = Duration::from_secs(10);

/// The most heartbeats that all agents of a server send in a second.
const HEARTBEATS_PER_SECOND: usize = 200;

/// How much longer than a heartbeat's time a node must be silent to be down.
pub const DOWN_GRACE: Duration = Duration::from_secs(10);

/// How late a heartbeat may be before the node counts as one of those that were lost at once.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

/// How late a heartbeat may be before the link is called lost. A stall of 3 s and a packet that is sent again fit in, and
/// a lost link is shown within 15 s.
const LATE_AFTER: Duration = Duration::from_millis(4_500);

/// How long an agent whose stream ended has to open another one: most do at once.
const REOPEN_TIME: Duration = Duration::from_secs(3);

/// How long a mass loss can keep nodes from being called down.
pub const FREEZE_LIMIT: Duration = Duration::from_mins(5);

/// What nodes get at least after a take-over.
const MIN_TAKE_OVER_GRACE: Duration = Duration::from_mins(1);

/// How often an agent should send a heartbeat, so that all agents of a server together send at most 200 in a second.
pub fn heartbeat_ttl(agents: usize) -> Duration {
    let seconds = agents.div_ceil(HEARTBEATS_PER_SECOND) as u64;
    MIN_TTL.max(Duration::from_secs(seconds))
}

/// How long nodes have after a take-over to be heard by their new owner.
pub fn take_over_grace(ttl: Duration) -> Duration {
    MIN_TAKE_OVER_GRACE.max(ttl * 2)
}

/// What is kept of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRecord {
    pub(super) cell: Option<CellName>,
    pub(super) state: LivenessState,
    /// When this server first knew of it.
    pub(super) known: Duration,
    /// When it was last heard by this owner.
    pub(super) heard: Option<Duration>,
    /// When its stream ended, if it did after it was last heard.
    pub(super) closed: Option<Duration>,
    /// The time of heartbeats that the answer to its last one told it.
    pub(super) ttl: Duration,
    /// Until when a take-over keeps its link from being called lost.
    pub(super) spared_until: Duration,
    /// Until when a mass loss that is over keeps it from being down: others are back, and it may be on its way.
    pub(super) returning_until: Duration,
    pub(super) accuses: BTreeSet<NodeUid>,
}

/// A mass loss that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Freeze {
    pub(super) since: Duration,
    /// Nodes that were overdue before do not belong to it.
    pub(super) floor: Duration,
}

impl NodeRecord {
    pub(super) fn new(
        cell: Option<CellName>,
        state: LivenessState,
        now: Duration,
        ttl: Duration,
    ) -> Self {
        Self {
            cell,
            state,
            known: now,
            heard: None,
            closed: None,
            ttl,
            spared_until: Duration::ZERO,
            returning_until: Duration::ZERO,
            accuses: BTreeSet::new(),
        }
    }

    /// Whether it has not left and is not down.
    pub(super) fn is_present(&self) -> bool {
        !matches!(self.state, LivenessState::Left | LivenessState::Down)
    }

    /// Since when nothing has been heard. A stream that ended on time was heard to end; one that the server itself gave up
    /// was silent before.
    pub(super) fn lost_since(&self) -> Duration {
        let heard = self.heard.unwrap_or(self.known);
        match self.closed {
            Some(closed) if closed <= heard + self.ttl => closed,
            _ => heard,
        }
    }

    /// From when on it counts as one of those that were lost at once.
    pub(super) fn overdue_at(&self) -> Duration {
        let silent = self.lost_since() + self.ttl + OVERDUE_AFTER;
        let at = self.closed.map_or(silent, |closed| closed.min(silent));
        self.unless_unheard(at)
    }

    pub(super) fn link_lost_at(&self) -> Duration {
        let silent = self.lost_since() + self.ttl + LATE_AFTER;
        let at = self
            .closed
            .map_or(silent, |closed| silent.min(closed + REOPEN_TIME));
        self.unless_unheard(at)
    }

    /// From when on it is down, if enough peers accuse it.
    pub(super) fn down_at(&self) -> Duration {
        let at = self.lost_since() + self.ttl + self.grace() + OVERDUE_AFTER;
        self.unless_unheard(at).max(self.returning_until)
    }

    /// How long ago nodes that were lost together with one that may be down now can have become overdue.
    pub(super) fn mass_loss_window(&self) -> Duration {
        self.ttl + self.grace() + OVERDUE_AFTER
    }

    fn grace(&self) -> Duration {
        DOWN_GRACE.max(self.ttl)
    }

    /// A node that this owner has not heard yet has the time of a take-over and no more.
    fn unless_unheard(&self, at: Duration) -> Duration {
        match self.heard {
            Some(_) => at.max(self.spared_until),
            None => self.known + take_over_grace(self.ttl),
        }
    }

    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        now >= self.overdue_at()
    }

    pub(super) fn is_link_lost(&self, now: Duration) -> bool {
        now >= self.link_lost_at()
    }

    /// Whether its stream is open: it can be asked, and what it says counts.
    pub(super) fn is_living(&self, now: Duration) -> bool {
        self.heard.is_some() && self.state != LivenessState::Left && !self.is_link_lost(now)
    }

    /// When its state can change although nothing is observed.
    pub(super) fn due_times(&self) -> impl Iterator<Item = Duration> + use<> {
        let times = [self.overdue_at(), self.link_lost_at(), self.down_at()];
        times
            .into_iter()
            .take(if self.is_present() { 3 } else { 0 })
    }
}
