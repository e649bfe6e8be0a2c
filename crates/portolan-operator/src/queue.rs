//! Which rollouts are to be looked at, and when. Each is looked at by one task at a time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Names a rollout.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is to be looked at. It never holds more than one entry for a rollout.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    order: BTreeSet<(Instant, Key)>,
    due: HashMap<Key, Instant>,
    running: HashSet<Key>,
}

impl Queue {
    /// Asks for a look after some time. An earlier one that was asked for stays.
    pub(crate) fn add(&self, key: Key, after: Duration) {
        let mut state = self.state();
        state.add(key, Instant::now() + after);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next rollout to look at. [`Self::done`] must be called when that is over.
    pub(crate) async fn next(&self) -> Key {
        loop {
            let wait = match self.state().take() {
                Ok(key) => return key,
                Err(wait) => wait,
            };
            let changed = self.changed.notified();
            match wait {
                Some(wait) => {
                    let _ = tokio::time::timeout(wait, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Says that a look is over, and when the next one is due.
    pub(crate) fn done(&self, key: Key, again: Option<Duration>) {
        let mut state = self.state();
        state.running.remove(&key);
        if let Some(again) = again {
            state.add(key, Instant::now() + again);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// How many looks are due now.
    pub(crate) fn depth(&self) -> usize {
        let now = Instant::now();
        let state = self.state();
        state.order.iter().take_while(|(at, _)| *at <= now).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, key: Key, at: Instant) {
        match self.due.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.order.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.due.insert(key.clone(), at);
        self.order.insert((at, key));
    }

    /// Takes what is due and not being looked at; else says how long to wait for the next.
    fn take(&mut self) -> Result<Key, Option<Duration>> {
        let now = Instant::now();
        let free = self
            .order
            .iter()
            .find(|(_, key)| !self.running.contains(key));
        let Some((at, key)) = free.cloned() else {
            return Err(None);
        };
        if at > now {
            return Err(Some(at - now));
        }
        self.order.remove(&(at, key.clone()));
        self.due.remove(&key);
        self.running.insert(key.clone());
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_earliest_look_that_was_asked_for_counts_and_is_made_once() {
        let queue = Queue::default();
        queue.add(key("a"), Duration::from_mins(1));
        queue.add(key("a"), Duration::ZERO);
        queue.add(key("a"), Duration::from_mins(1));
        assert_eq!(queue.depth(), 1);
        assert_eq!(queue.state().take(), Ok(key("a")));
        assert_eq!(queue.state().take(), Err(None));
    }

    /// What happens during a look is looked at afterwards, never at the same time.
    #[test]
    fn a_rollout_is_looked_at_by_one_task_at_a_time() {
        let queue = Queue::default();
        queue.add(key("a"), Duration::ZERO);
        assert_eq!(queue.state().take(), Ok(key("a")));
        queue.add(key("a"), Duration::ZERO);
        queue.add(key("b"), Duration::ZERO);
        assert_eq!(queue.state().take(), Ok(key("b")));
        assert_eq!(queue.state().take(), Err(None));
        queue.done(key("a"), None);
        assert_eq!(queue.state().take(), Ok(key("a")));
    }
}
