//! What is remembered about one group of a trigger: the events that count at the moment, those that have been counted,
//! and the firing that waits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::event::{CauseChain, FleetEvent};
use crate::span::later;

/// How much later than the newest event of its node an event may come and still count.
const LATENESS_MS: i64 = 5_000;

/// Event times lie at most so far before the moment at which they were received.
const SKEW_MS: i64 = 300_000;

/// Names of counted events that are remembered, so that none counts twice.
const MAX_SPENT: usize = 256;

/// Nodes whose newest event is remembered.
const MAX_NODES: usize = 16;

/// What is remembered about one group of a trigger.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowState {
    /// The events that count at the moment, the earliest first.
    pub(super) times: Vec<SeenEvent>,
    /// Events that have been counted, the oldest first.
    spent: VecDeque<u64>,
    /// The newest event of each node.
    newest: BTreeMap<String, i64>,
    /// The chain of the deepest event that counts at the moment.
    pub(super) causes: CauseChain,
    /// The firing that waits.
    pub(super) pending: Option<Pending>,
    /// When it fired last.
    pub(super) fired: Option<Timestamp>,
    /// Events that no longer counted because too many are remembered.
    forgotten: u64,
}

/// An event that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SeenEvent {
    pub(super) at: i64,
    pub(super) event: u64,
}

/// A firing that waits for more events, or until it can start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The first event of its window.
    pub(super) window: u64,
    pub(super) count: u64,
    pub(super) since: Timestamp,
    pub(super) last: Timestamp,
    /// The last event, from which inputs are made.
    pub(super) event: Box<FleetEvent>,
    pub(super) causes: CauseChain,
    /// Whether it has waited for more events and only waits to be started.
    pub(super) is_held: bool,
}

/// The events of a window that is full.
pub(super) struct FullWindow {
    pub(super) window: u64,
    pub(super) count: u64,
}

impl WindowState {
    /// Whether an event was counted before.
    pub(super) fn has_seen(&self, event: u64) -> bool {
        self.spent.contains(&event) || self.times.iter().any(|seen| seen.event == event)
    }

    /// Remembers that an event has been counted.
    pub(super) fn spend(&mut self, event: u64) {
        self.spent.push_back(event);
        while self.spent.len() > MAX_SPENT {
            self.spent.pop_front();
        }
    }

    /// Refuses an event that comes too late among those of its own node. Clocks of two nodes are not compared.
    pub(super) fn in_order(&mut self, event: &FleetEvent) -> Result<(), Refusal> {
        let node = event.node.as_deref().unwrap_or_default();
        let at = event.moment().as_millisecond();
        // A node whose clock is ahead has not seen the future.
        let seen = at.min(event.received.as_millisecond());
        if let Some(newest) = self.newest.get_mut(node) {
            let late = *newest - LATENESS_MS - at;
            if late > 0 {
                return Err(Refusal::TooLate(late));
            }
            *newest = seen.max(*newest);
            return Ok(());
        }
        if self.newest.len() >= MAX_NODES {
            let oldest = self.newest.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(node, _)| node.clone()) {
                self.newest.remove(&oldest);
            }
        }
        self.newest.insert(node.to_owned(), seen);
        Ok(())
    }

    /// Counts an event; gives the window if it is full, or else how many events are in the fullest one.
    pub(super) fn count(
        &mut self,
        event: &FleetEvent,
        need: usize,
        within: Duration,
    ) -> Result<FullWindow, usize> {
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX / 4);
        let seen = SeenEvent {
            at: event.moment().as_millisecond(),
            event: event.number(),
        };
        self.prune(event.received.as_millisecond(), need, within);
        let place = self.times.partition_point(|known| *known < seen);
        self.times.insert(place, seen);
        if event.causes.depth() >= self.causes.depth() {
            self.causes = event.causes.clone();
        }
        let (first, count) = fullest(&self.times, place, within);
        if count < need {
            return Err(count);
        }
        let window = self.times.get(first).map_or(seen.event, |seen| seen.event);
        for seen in std::mem::take(&mut self.times) {
            self.spend(seen.event);
        }
        Ok(FullWindow {
            window,
            count: count as u64,
        })
    }

    /// Forgets events that no later one can be counted with, and the oldest if there are too many.
    fn prune(&mut self, received: i64, need: usize, within: i64) {
        let oldest = received
            .saturating_sub(within)
            .saturating_sub(SKEW_MS + LATENESS_MS);
        self.times.retain(|seen| seen.at >= oldest);
        // Events in order fill at most two windows, those of nodes with wrong clocks some more.
        let most = 4 * need + 32;
        let extra = (self.times.len() + 1).saturating_sub(most);
        for seen in self.times.drain(..extra).collect::<Vec<_>>() {
            self.forgotten += 1;
            self.spend(seen.event);
        }
        if self.times.is_empty() {
            self.causes = CauseChain::default();
        }
    }

    /// When the group can fire again; `None` if it can now.
    pub(super) fn cools_until(&mut self, cooldown: Duration, now: Timestamp) -> Option<Timestamp> {
        let fired = self.fired.as_mut()?;
        // A clock that went back does not make the cooldown longer.
        *fired = (*fired).min(now);
        let until = later(*fired, cooldown);
        (now < until).then_some(until)
    }

    /// Whether nothing has to be remembered about the group any more.
    pub(super) fn is_idle(&self, cooldown: Duration, within: Duration, now: Timestamp) -> bool {
        let skew = Duration::from_millis((SKEW_MS + LATENESS_MS).unsigned_abs());
        let newest = self.newest.values().max().copied();
        let newest = newest.max(self.times.last().map(|seen| seen.at));
        let newest = newest.and_then(|at| Timestamp::from_millisecond(at).ok());
        let is_over = |moment: Option<Timestamp>, span: Duration| {
            moment.is_none_or(|moment| later(moment, span) < now)
        };
        self.pending.is_none()
            && is_over(self.fired, cooldown + skew)
            && is_over(newest, within + skew)
    }
}

impl Pending {
    /// When it is due: after a quiet time, or when it has waited long enough.
    pub(super) fn due(&mut self, wait: Option<(Duration, Duration)>, now: Timestamp) -> Timestamp {
        let Some((quiet, max)) = wait.filter(|_| !self.is_held) else {
            return now;
        };
        // A clock that went back does not make it wait longer.
        self.last = self.last.min(now);
        self.since = self.since.min(now);
        later(self.last, quiet).min(later(self.since, max))
    }
}

/// The fullest window that a place is in: where it begins and how many events it has.
fn fullest(times: &[SeenEvent], place: usize, within: i64) -> (usize, usize) {
    let at = |index: usize| times.get(index).map_or(0, |seen| seen.at);
    let mut best = (place, 0);
    let mut end = place;
    for first in (0..=place).rev() {
        if at(place).saturating_sub(at(first)) > within {
            break;
        }
        // Windows that begin earlier end earlier.
        if first == place {
            while end + 1 < times.len() && at(end + 1).saturating_sub(at(first)) <= within {
                end += 1;
            }
        }
        while end > place && at(end).saturating_sub(at(first)) > within {
            end -= 1;
        }
        let count = end + 1 - first;
        if count >= best.1 {
            best = (first, count);
        }
    }
    best
}
