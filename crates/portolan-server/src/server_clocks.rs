//! How far the clocks of the other servers are from this one's, by the times in their ticks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::TimeSource;
use crate::keys;
use crate::membership::ticked_at;

/// Ticks that are kept of each server.
const KEPT: usize = 3;

/// Compares clocks.
pub(crate) struct ServerClocks {
    /// The key of this server's own tick.
    own: String,
    time: Arc<dyn TimeSource>,
    /// Of each server, how many milliseconds its clock seemed to be ahead.
    ahead: Mutex<BTreeMap<String, VecDeque<i64>>>,
}

impl ServerClocks {
    pub(crate) fn new(server: &str, time: Arc<dyn TimeSource>) -> Self {
        Self {
            own: keys::tick(server),
            time,
            ahead: Mutex::default(),
        }
    }

    /// Whether a key is the tick of this server.
    pub(crate) fn is_own(&self, key: &[u8]) -> bool {
        key == self.own.as_bytes()
    }

    /// Takes over the tick of a server, which has just come.
    pub(crate) fn hear(&self, key: &[u8], value: &[u8]) {
        let server = std::str::from_utf8(key).ok();
        let server = server.and_then(|key| key.strip_prefix(&keys::tick("")));
        let (Some(server), Some(theirs)) = (server, ticked_at(value)) else {
            return;
        };
        let ours = i64::try_from(self.time.now().as_millis()).unwrap_or(i64::MAX);
        let mut all = self.ahead.lock();
        let heard = all.entry(server.to_owned()).or_default();
        heard.push_back(theirs.saturating_sub(ours));
        while heard.len() > KEPT {
            heard.pop_front();
        }
    }

    /// Forgets the ticks of a server that is gone.
    pub(crate) fn forget(&self, key: &[u8]) {
        let server = std::str::from_utf8(key).ok();
        if let Some(server) = server.and_then(|key| key.strip_prefix(&keys::tick(""))) {
            self.ahead.lock().remove(server);
        }
    }

    /// How many milliseconds the clock of a server is ahead of this one's; `None` if it was not heard of yet. A tick that came late
    /// makes a clock look behind, so the one that came fastest counts.
    pub(crate) fn ahead(&self, server: &str) -> Option<i64> {
        let all = self.ahead.lock();
        all.get(server)?.iter().copied().max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualTime;

    #[test]
    fn a_tick_that_comes_late_does_not_make_a_clock_look_behind() {
        let clocks = ServerClocks::new("a", Arc::new(ManualTime::new(1_000)));
        let hear =
            |time: i64| clocks.hear(keys::tick("b").as_bytes(), format!("p {time}").as_bytes());
        assert_eq!(clocks.ahead("b"), None);
        hear(994_000);
        assert_eq!(clocks.ahead("b"), Some(-6_000));
        hear(999_990);
        hear(997_000);
        assert_eq!(clocks.ahead("b"), Some(-10));
        (0..3).for_each(|_| hear(1_020_000));
        assert_eq!(clocks.ahead("b"), Some(20_000));
        clocks.hear(keys::tick("old").as_bytes(), b"a process");
        assert_eq!(clocks.ahead("old"), None, "an older release tells no time");
        clocks.forget(keys::tick("b").as_bytes());
        assert_eq!(clocks.ahead("b"), None);
    }
}
