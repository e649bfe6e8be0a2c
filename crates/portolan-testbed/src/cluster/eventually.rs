//! Waits for a state of a cluster, with a deadline.

use std::time::{Duration, Instant};

/// How long a state is waited for.
const DEADLINE: Duration = Duration::from_mins(1);

/// The pause between two looks: dozens of cases that look more often keep the API server busy.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks again and again until the answer is yes.
///
/// # Panics
/// When it does not become yes within a minute.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let started = Instant::now();
    while !look().await {
        assert!(started.elapsed() < DEADLINE, "{what} takes too long");
        tokio::time::sleep(PAUSE).await;
    }
}
