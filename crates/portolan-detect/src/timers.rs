//! The timers of a member, on a clock that leaves out the time in which the member did not run.
//!
//! A member that was stopped for a while must not take its own silence for that of its peers: what it was waiting for gets
//! the rest of its time after the stop.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use foca::Timer;

use crate::peer::PeerIdentity;

/// A timer that fires later than this was held up.
const LATE: Duration = Duration::from_millis(300);

/// Timers in the order in which they are due.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BinaryHeap<Reverse<Entry>>,
    /// How many timers there were so far, to keep the order of those that are due at once.
    count: u64,
    /// The time that was left out so far.
    left_out: Duration,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    due: Duration,
    timer: Timer<PeerIdentity>,
    number: u64,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = self.due.cmp(&other.due);
        let by_kind = || self.timer.cmp(&other.timer);
        by_time
            .then_with(by_kind)
            .then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Timers {
    /// The member's time.
    pub(crate) fn local(&self, now: Duration) -> Duration {
        now.saturating_sub(self.left_out)
    }

    /// The time outside at which it is `local` for the member.
    pub(crate) fn outside(&self, local: Duration) -> Duration {
        local + self.left_out
    }

    /// Leaves out the time by which something that was due at `due` is late; returns whether it is late enough.
    pub(crate) fn leave_out(&mut self, due: Duration, now: Duration) -> bool {
        let late = self.local(now).saturating_sub(due);
        let is_late = late > LATE;
        if is_late {
            self.left_out += late;
        }
        is_late
    }

    pub(crate) fn add(&mut self, timer: Timer<PeerIdentity>, due: Duration) {
        let number = self.count;
        self.count += 1;
        self.queue.push(Reverse(Entry { due, timer, number }));
    }

    /// When the next timer is due, in the member's time.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.queue.peek().map(|Reverse(entry)| entry.due)
    }

    /// Takes the next timer if it is due at the member's time.
    pub(crate) fn take(&mut self, local: Duration) -> Option<Timer<PeerIdentity>> {
        if self.next()? > local {
            return None;
        }
        self.queue.pop().map(|Reverse(entry)| entry.timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_takes_no_time_from_what_was_waited_for() {
        let mut timers = Timers::default();
        let second = Duration::from_secs(1);
        timers.add(Timer::ProbeRandomMember(1), second);
        timers.add(Timer::PeriodicGossip(1), second * 2);
        // It does not run from the first second to the fifth.
        assert!(timers.leave_out(second, second * 5));
        let local = timers.local(second * 5);
        assert_eq!(timers.take(local), Some(Timer::ProbeRandomMember(1)));
        assert_eq!(timers.take(local), None);
        assert_eq!(
            timers.next().map(|due| timers.outside(due)),
            Some(second * 6)
        );
    }

    #[test]
    fn a_little_late_is_not_a_stop() {
        let mut timers = Timers::default();
        assert!(!timers.leave_out(Duration::from_secs(1), Duration::from_millis(1_300)));
        assert_eq!(timers.local(Duration::from_secs(2)), Duration::from_secs(2));
    }
}
