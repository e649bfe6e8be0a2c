//! Which limit was reached.

use std::time::Duration;

use thiserror::Error;

/// Why work was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Exceeded {
    /// Too many steps.
    #[error("needs more than {0} steps")]
    Steps(u64),
    /// Too much memory.
    #[error("needs more than {0} bytes of memory")]
    Bytes(u64),
    /// One value that is too large, such as a text or a list.
    #[error("makes a value of more than {0} bytes")]
    Value(u64),
    /// Too much text printed.
    #[error("prints more than {0} bytes")]
    Output(u64),
    /// Calls nested too deeply.
    #[error("nested more than {0} levels deep")]
    Depth(u32),
    /// Too much time.
    #[error("takes longer than {0:?}")]
    Time(Duration),
    /// Somebody asked for the end: nobody waits for the result any more.
    #[error("interrupted")]
    Stopped,
}

impl Exceeded {
    /// Returns what happened and which option raises the limit, for an error that is one line of text.
    pub fn with_option(self) -> String {
        match self.option() {
            Some(option) => format!("{self}; `{option}` raises the limit"),
            None => self.to_string(),
        }
    }

    /// Returns the option that raises the limit; `None` for work that was interrupted.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Self::Steps(_) => Some("--limit steps=N"),
            Self::Bytes(_) | Self::Value(_) | Self::Output(_) => Some("--limit memory=BYTES"),
            Self::Depth(_) => Some("--limit depth=N"),
            Self::Time(_) => Some("--limit time=SECONDS"),
            Self::Stopped => None,
        }
    }
}
