//! Ctrl-C: the first asks the command to stop, the second ends the process. Servers end at SIGTERM as well.

use std::io;

use portolan_engine::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::ExitStatus;

/// Waits for Ctrl-C as long as the process lives.
pub(crate) async fn watch(token: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    token.cancel();
    if tokio::signal::ctrl_c().await.is_ok() {
        kill();
    }
}

/// Waits until the process is asked to end: a pod is ended by SIGTERM, a terminal by SIGINT, and both are the usual end of a
/// server.
pub(crate) async fn asked_to_end() -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    }
}

#[expect(
    clippy::exit,
    reason = "a second Ctrl-C means now, whatever is still running"
)]
fn kill() {
    std::process::exit(ExitStatus::Interrupted.code().into());
}
