//! Why a review could not be done, with advice.

use std::error::Error;
use std::fmt;

use portolan_flux::{DiscoverError, OpenError};
use portolan_object::NoMatch;

/// Why a review could not be done.
#[derive(Debug)]
pub enum ReviewError {
    /// Something was asked for that is not there, or settings are wrong; one sentence says it.
    Refused {
        /// What is wrong.
        message: String,
        /// What to do.
        hints: Vec<String>,
    },
    /// The files hold no cluster, or cannot be read.
    Open {
        /// What is wrong.
        error: OpenError,
        /// What to do.
        hints: Vec<String>,
    },
    /// An error of git, of files or of another library.
    Failed {
        /// What is wrong.
        error: Box<dyn Error + Send + Sync>,
        /// What to do.
        hints: Vec<String>,
    },
}

impl ReviewError {
    /// Says in one sentence what is wrong.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self::Refused {
            message: message.to_string(),
            hints: Vec::new(),
        }
    }

    /// Wraps an error of another library.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed {
            error: error.into(),
            hints: Vec::new(),
        }
    }

    /// Adds a line of advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let (Self::Refused { hints, .. } | Self::Open { hints, .. } | Self::Failed { hints, .. }) =
            &mut self;
        hints.push(hint.into());
        self
    }

    /// What to do.
    pub fn hints(&self) -> &[String] {
        let (Self::Refused { hints, .. } | Self::Open { hints, .. } | Self::Failed { hints, .. }) =
            self;
        hints
    }

    /// Whether the files hold no cluster, or not the one that was asked for.
    pub fn is_no_cluster(&self) -> bool {
        matches!(
            self,
            Self::Open {
                error: OpenError::Discover(
                    DiscoverError::NoRoot { .. }
                        | DiscoverError::UnknownPath(_)
                        | DiscoverError::NoDirectory(_)
                ),
                ..
            }
        )
    }
}

impl From<NoMatch> for ReviewError {
    fn from(error: NoMatch) -> Self {
        let hint = error.hint().map(str::to_owned);
        let refused = Self::refused(error);
        match hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    }
}

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } => f.write_str(message),
            Self::Open { error, .. } => error.fmt(f),
            Self::Failed { error, .. } => error.fmt(f),
        }
    }
}

impl Error for ReviewError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { .. } => None,
            Self::Open { error, .. } => error.source(),
            Self::Failed { error, .. } => error.source(),
        }
    }
}
