//! Why a unit failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::Key;

/// Why a unit failed: any error, with its causes, and whether trying again makes sense.
///
/// It is made from any error by `?`. It is not itself an error, so that `?` is never ambiguous.
#[derive(Clone)]
pub struct Failure {
    error: Arc<dyn Error + Send + Sync>,
    /// The error and its causes. Rendered at once, so that foreign code runs only inside the unit.
    text: Arc<str>,
    wait_error: Option<WaitError>,
    is_final: bool,
}

/// Why another unit's output cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The unit failed or was skipped. A unit that passes this on by `?` is skipped because of the same root.
    #[error("`{key}` was not done because `{because}` failed")]
    Unavailable {
        /// The unit that was asked for.
        key: Key,
        /// The unit whose failure is the root of it.
        because: Key,
    },
    /// The unit was called off. A unit that passes this on is cancelled as well.
    #[error("`{key}` was cancelled")]
    Cancelled {
        /// The unit that was asked for.
        key: Key,
    },
    /// Waiting would never end.
    #[error("{}", Cycle(cycle))]
    Cycle {
        /// The keys along the cycle; the first is also the last.
        cycle: Vec<Key>,
    },
    /// Nobody added the unit, and nobody is left who could.
    #[error("there is no unit `{key}`")]
    Missing {
        /// The unit that was asked for.
        key: Key,
    },
    /// The unit's output is of another type.
    #[error("the output of `{key}` is a `{found}`, not a `{wanted}`")]
    Type {
        /// The unit that was asked for.
        key: Key,
        /// The type that was asked for.
        wanted: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// The output was let go after its last reader had it, as [`crate::Unit::transient`] says.
    #[error("the output of `{key}` was let go after its last reader")]
    Released {
        /// The unit that was asked for.
        key: Key,
    },
    /// A synchronous unit asked for something that is not done; it must name it in its needs.
    #[error("`{key}` is not done: a synchronous unit must name it in its needs")]
    NotReady {
        /// The unit that was asked for.
        key: Key,
    },
}

/// Names a cycle: `a` needs `b` needs `a`.
struct Cycle<'a>(&'a [Key]);

/// A message without a cause.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

// === impl Failure ===

impl Failure {
    /// A failure that is only a message.
    pub fn message(text: impl Into<String>) -> Self {
        Message(text.into()).into()
    }

    /// Marks a failure that would only repeat itself, so that it is not retried.
    #[must_use]
    pub fn is_final(self) -> Self {
        Self {
            is_final: true,
            ..self
        }
    }

    /// The error itself, to be downcast or walked.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.error
    }

    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("without a message");
        Self::message(format!("panicked: {text}")).is_final()
    }

    pub(crate) fn may_retry(&self) -> bool {
        !self.is_final && self.wait_error.is_none()
    }

    /// The failed wait at the root of this, if there is one.
    pub(crate) fn wait_error(&self) -> Option<&WaitError> {
        self.wait_error.as_ref()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = with_causes(&error);
        let wait_error = causes(&error)
            .find_map(|cause| cause.downcast_ref())
            .cloned();
        Self {
            error: Arc::new(error),
            text: text.into(),
            wait_error,
            is_final: false,
        }
    }
}

/// An error and its causes, the nearest first.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error and its causes in a line, the nearest first, separated by colons.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// The error and its causes, separated by colons.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Cycle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, key) in self.0.iter().enumerate() {
            write!(
                f,
                "{}`{key}`",
                if position == 0 { "cycle: " } else { " needs " }
            )?;
        }
        Ok(())
    }
}
