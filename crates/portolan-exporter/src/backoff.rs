//! Pauses that grow while something keeps going wrong.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);

/// Doubling pauses up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures: u32,
    most: Duration,
}

impl Backoff {
    /// Pauses of one second and more, never longer than `most`.
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            failures: 0,
            most: most.max(FIRST),
        }
    }

    /// The next pause.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        pause.min(self.most)
    }

    /// How often it went wrong in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// It went well.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_begin_anew_after_success() {
        let mut backoff = Backoff::new(Duration::from_secs(5));
        let seconds: Vec<u64> = (0..40).map(|_| backoff.next().as_secs()).collect();
        assert_eq!(seconds[..5], [1, 2, 4, 5, 5]);
        assert_eq!(seconds[39], 5);
        backoff.reset();
        assert_eq!(backoff.next().as_secs(), 1);
    }
}
