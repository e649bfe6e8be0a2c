//! Keeps the store small: old revisions of etcd, slots of processes that are gone, and the level of the format.
//!
//! The embedded engine removes its old revisions itself. etcd keeps everything until it is told, so the owner of the
//! shard tells it: history is at least ten minutes and ten thousand revisions long.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use portolan_store::level::{self, MIGRATIONS};
use portolan_store::{Clock, Revision, Store, StoreError};

/// How long history is at least.
const HISTORY: Duration = Duration::from_mins(10);
/// How many revisions history has at least.
const HISTORY_REVISIONS: u64 = 10_000;
/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(30);
/// How long the slots of a process that does not write any more are kept: it may still ask what became of a write.
const SLOT_AGE: Duration = Duration::from_hours(6);

/// What has to be done now and then.
pub(crate) struct Upkeep {
    clock: Arc<dyn Clock>,
    max_level: u64,
    /// Revisions that were the newest at some time, the oldest first.
    seen: VecDeque<(Duration, Revision)>,
    next: Duration,
}

impl Upkeep {
    pub(crate) fn new(clock: Arc<dyn Clock>, max_level: u64) -> Self {
        Self {
            clock,
            max_level,
            seen: VecDeque::new(),
            next: Duration::ZERO,
        }
    }

    /// Does what is due. A server that has just become the owner waits before it removes anything.
    pub(crate) async fn round(&mut self, store: &Store) -> Result<(), StoreError> {
        let now = self.clock.now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + EVERY;
        level::migrate(store, MIGRATIONS, self.max_level).await?;
        let status = store.status().await?;
        self.seen.push_back((now, status.revision));
        // The embedded engine has no cluster, and looks after its history itself.
        if status.cluster.is_some()
            && let Some(revision) = self.history_start(now, status.revision)
        {
            match store.compact(revision).await {
                // Somebody else, or etcd itself, went further.
                Ok(()) | Err(StoreError::Compacted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(before) = self.take_older(now, SLOT_AGE) {
            store.clear_slots(before).await?;
        }
        Ok(())
    }

    /// The revision that history may start at.
    fn history_start(&self, now: Duration, newest: Revision) -> Option<Revision> {
        let old = self.seen.iter().rev();
        let mut old = old.filter(|(time, _)| *time + HISTORY <= now);
        let revision = old.next()?.1.min(newest.saturating_sub(HISTORY_REVISIONS));
        (revision > 1).then_some(revision)
    }

    /// The newest revision of at least an age; what is older is forgotten.
    fn take_older(&mut self, now: Duration, age: Duration) -> Option<Revision> {
        let mut found = None;
        while let Some((time, revision)) = self.seen.front()
            && *time + age <= now
        {
            found = Some(*revision);
            self.seen.pop_front();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use portolan_store::ManualClock;

    use super::*;

    #[test]
    fn history_is_ten_minutes_and_ten_thousand_revisions_long() {
        let mut upkeep = Upkeep::new(Arc::new(ManualClock::default()), 1);
        let minute = |count: u64| Duration::from_mins(count);
        upkeep.seen = (0..30).map(|at| (minute(at), 1_000 + at * 2_000)).collect();
        let start = |now: u64, newest: u64| upkeep.history_start(minute(now), newest);
        assert_eq!(start(9, 90_000), None, "nothing is ten minutes old");
        assert_eq!(start(25, 90_000), Some(31_000), "the newest of 15 minutes");
        assert_eq!(start(25, 20_000), Some(10_000), "few revisions");
        assert_eq!(start(25, 9_000), None, "fewer than are kept");
        assert_eq!(upkeep.take_older(minute(30), minute(20)), Some(21_000));
        assert_eq!(upkeep.take_older(minute(30), minute(20)), None);
    }
}
