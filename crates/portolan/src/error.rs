//! The one error a command returns when it could not do its work.

use std::fmt;

use portolan_engine::Report;
use portolan_files::{WriteError, advice};
use portolan_object::{NoMatch, counted};
use portolan_review::ReviewError;

use crate::exit::ExitStatus;

/// Whose move it is when a command cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The arguments or the files they name are wrong.
    User,
    /// Portolan itself is wrong, or the machine failed it.
    Internal,
    /// Ctrl-C stopped it.
    Interrupted,
}

/// Why a command could not do its work, with advice.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: ErrorKind,
    pub(crate) source: anyhow::Error,
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    /// The arguments or the files they name are wrong.
    pub(crate) fn user(source: impl Into<anyhow::Error>) -> Self {
        Self {
            kind: ErrorKind::User,
            source: source.into(),
            hints: Vec::new(),
        }
    }

    /// The arguments are wrong in a way that one sentence says.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::user(anyhow::anyhow!("{message}"))
    }

    /// Output could not be written: to a stream or file that the user chose.
    pub(crate) fn output(place: &str, error: std::io::Error) -> Self {
        let hint = advice(&error);
        let source = anyhow::Error::new(error).context(format!("cannot write to {place}"));
        Self::user(source).hints(hint)
    }

    fn hints(mut self, hints: impl IntoIterator<Item = &'static str>) -> Self {
        self.hints.extend(hints.into_iter().map(str::to_owned));
        self
    }

    /// Ctrl-C stopped the run; says what was left undone.
    pub(crate) fn interrupted(report: &Report) -> Self {
        let counts = report.counts();
        let all = report.units().len();
        let source = anyhow::anyhow!(
            "interrupted with {} of {} left undone",
            counts.cancelled,
            counted(all, "unit")
        );
        Self {
            kind: ErrorKind::Interrupted,
            source,
            hints: Vec::new(),
        }
    }

    /// Ctrl-C stopped what was waited for.
    pub(crate) fn stopped() -> Self {
        Self {
            kind: ErrorKind::Interrupted,
            source: anyhow::anyhow!("interrupted"),
            hints: Vec::new(),
        }
    }

    /// The exit status that tells of this error.
    pub(crate) fn status(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::User | ErrorKind::Internal => ExitStatus::Failure,
            ErrorKind::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Adds a line of advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whether the other end of the output went away, which is no failure of ours.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let cause = self.source.downcast_ref::<std::io::Error>();
        cause.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl From<std::io::Error> for CommandError {
    /// A full disk or a place that may not be written to is the user's to change; anything else should not happen.
    fn from(error: std::io::Error) -> Self {
        let hint = advice(&error);
        Self {
            kind: if hint.is_some() {
                ErrorKind::User
            } else {
                ErrorKind::Internal
            },
            source: error.into(),
            hints: Vec::new(),
        }
        .hints(hint)
    }
}

impl From<WriteError> for CommandError {
    fn from(error: WriteError) -> Self {
        let hint = error.advice();
        Self::user(error).hints(hint)
    }
}

impl From<ReviewError> for CommandError {
    fn from(error: ReviewError) -> Self {
        let (source, hints) = match error {
            ReviewError::Refused { message, hints } => (anyhow::anyhow!("{message}"), hints),
            ReviewError::Open { error, hints } => (error.into(), hints),
            ReviewError::Failed { error, hints } => (anyhow::anyhow!(error), hints),
        };
        Self {
            kind: ErrorKind::User,
            source,
            hints,
        }
    }
}

impl From<NoMatch> for CommandError {
    fn from(error: NoMatch) -> Self {
        ReviewError::from(error).into()
    }
}
