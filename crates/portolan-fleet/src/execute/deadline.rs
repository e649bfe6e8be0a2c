//! Ends a step when its time is up.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Cancels a token after a time, unless it is dropped before.
pub(super) struct Deadline {
    token: CancellationToken,
    /// Dropped with the deadline, which ends the thread that waits.
    _open: Option<Sender<()>>,
}

impl Deadline {
    /// A deadline for work that also ends when `parent` is cancelled.
    pub(super) fn after(time: Duration, parent: &CancellationToken) -> Self {
        let token = parent.child_token();
        let (open, closed) = channel::<()>();
        let late = token.clone();
        let waiter = thread::Builder::new()
            .name("deadline".to_owned())
            .spawn(move || {
                if closed.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                    late.cancel();
                }
            });
        if waiter.is_err() {
            // Without a thread nobody would end the work; it must not begin.
            token.cancel();
        }
        Self {
            token,
            _open: Some(open),
        }
    }

    pub(super) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Whether the time was up.
    pub(super) fn has_passed(&self, parent: &CancellationToken) -> bool {
        self.token.is_cancelled() && !parent.is_cancelled()
    }
}
