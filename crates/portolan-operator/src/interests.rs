//! Who is to look again when an object changes that is not its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use crate::memory::{Interest, lock};
use crate::queue::Key;

#[derive(Default)]
pub(crate) struct Interests(Mutex<HashMap<Interest, BTreeSet<Key>>>);

impl Interests {
    /// Replaces what a rollout is interested in.
    pub(crate) fn replace(&self, key: &Key, before: &[Interest], now: &[Interest]) {
        if before == now {
            return;
        }
        let mut all = lock(&self.0);
        for interest in before {
            if let Some(keys) = all.get_mut(interest) {
                keys.remove(key);
                if keys.is_empty() {
                    all.remove(interest);
                }
            }
        }
        for interest in now {
            all.entry(interest.clone()).or_default().insert(key.clone());
        }
    }

    pub(crate) fn of(&self, interest: &Interest) -> Vec<Key> {
        let all = lock(&self.0);
        let keys = all.get(interest).into_iter().flatten();
        keys.cloned().collect()
    }
}
