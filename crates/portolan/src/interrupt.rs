//! Ctrl-C: the first asks the command to stop, the second ends the process.

use portolan_engine::CancellationToken;

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

#[expect(
    clippy::exit,
    reason = "a second Ctrl-C means now, whatever is still running"
)]
fn kill() {
    std::process::exit(ExitStatus::Interrupted.code().into());
}
