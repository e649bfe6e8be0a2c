//! The lock of the node, which one run at a time has: its own part, and steps that it takes for others in the same run.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use portolan_fleet::{LocalError, NodeLock};
use portolan_modules::Root;

/// Who has the lock of the node, among the runs of this agent.
#[derive(Default)]
pub(super) struct SharedLock(Mutex<Option<(String, Weak<HeldLock>)>>);

/// The lock, held until the last one that has it lets go.
pub(super) struct HeldLock(
    #[expect(dead_code, reason = "the lock is held while this lives")] NodeLock,
);

impl SharedLock {
    /// Takes the lock for a run; `None` if another run has it, of this agent or of another process.
    pub(super) fn take(&self, root: &Root, run: &str) -> Result<Option<Arc<HeldLock>>, LocalError> {
        let mut holder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, held)) = &*holder
            && let Some(held) = held.upgrade()
        {
            return Ok((name == run).then_some(held));
        }
        let Some(lock) = NodeLock::take(root)? else {
            return Ok(None);
        };
        let held = Arc::new(HeldLock(lock));
        *holder = Some((run.to_owned(), Arc::downgrade(&held)));
        Ok(Some(held))
    }
}
