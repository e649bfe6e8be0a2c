//! What a step would change, as values that people and other steps can read.

use std::fmt;

use camino::Utf8PathBuf;
use portolan_digest::Digest;
use serde_json::{Map, Value};

use crate::action::ModuleError;
use crate::ahead::Prediction;

/// What a look at the host has shown.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whether there is something to do.
    pub outcome: PlannedOutcome,
    /// What was found, as later steps see it (`steps['package'].before.version`).
    pub before: Map<String, Value>,
    /// What the look found for later steps to use, besides `before`.
    pub result: Map<String, Value>,
    /// What will be true after the step; later steps of a check look at it.
    pub predictions: Vec<Prediction>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Whether there is something to do.
#[derive(Debug, Clone)]
pub enum PlannedOutcome {
    /// Everything is as it should be.
    Unchanged,
    /// These things will change; never empty.
    Change(Vec<Change>),
    /// Only doing it shows whether something changes.
    Unknown {
        /// Why it cannot be told.
        reason: String,
    },
    /// The step does not apply here.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// One thing that will change.
#[derive(Debug, Clone)]
pub struct Change {
    /// What changes.
    pub subject: Subject,
    /// What happens to it.
    pub kind: ChangeKind,
    /// A digest of its state now. An approved plan is refused when this differs at the time of the apply.
    pub before: Digest,
    /// A digest of its state afterwards.
    pub after: Digest,
    /// A unified diff, or a line that says the difference. Never contains what its step calls sensitive: the caller
    /// leaves it out then.
    pub diff: String,
}

/// What happens to a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It will exist.
    Create,
    /// It will be different.
    Update,
    /// It will be gone.
    Remove,
    /// Something is done that leaves no difference, such as a restart.
    Act,
}

/// What a change is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A file, directory or link.
    Path(Utf8PathBuf),
    /// A package.
    Package(String),
    /// A user.
    User(String),
    /// A group.
    Group(String),
    /// A unit of the service manager.
    Service(String),
    /// Something else: its kind and its name.
    Other(&'static str, String),
}

impl Plan {
    /// Everything is as it should be.
    pub fn unchanged() -> Self {
        Self::decided(PlannedOutcome::Unchanged)
    }

    /// These things will change; without any, everything is as it should be.
    pub fn of_changes(changes: Vec<Change>) -> Self {
        if changes.is_empty() {
            Self::unchanged()
        } else {
            Self::decided(PlannedOutcome::Change(changes))
        }
    }

    /// Only doing it shows whether something changes.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::decided(PlannedOutcome::Unknown {
            reason: reason.into(),
        })
    }

    /// The step does not apply here.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::decided(PlannedOutcome::Skipped {
            reason: reason.into(),
        })
    }

    /// The changes, if it is known that there are some.
    pub fn changes(&self) -> &[Change] {
        match &self.outcome {
            PlannedOutcome::Change(changes) => changes,
            _ => &[],
        }
    }

    /// Looks whether a new plan starts where this one did.
    ///
    /// # Errors
    /// When a subject that both change was different when this plan was made.
    pub fn confirm(&self, now: &Self) -> Result<(), ModuleError> {
        for change in now.changes() {
            let mut planned = self.changes().iter();
            if let Some(planned) = planned.find(|planned| planned.subject == change.subject)
                && planned.before != change.before
            {
                return Err(ModuleError::Drifted {
                    subject: change.subject.to_string(),
                });
            }
        }
        Ok(())
    }

    fn decided(outcome: PlannedOutcome) -> Self {
        Self {
            outcome,
            before: Map::new(),
            result: Map::new(),
            predictions: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(out, "{path}"),
            Self::Package(name) => write!(out, "package {name}"),
            Self::User(name) => write!(out, "user {name}"),
            Self::Group(name) => write!(out, "group {name}"),
            Self::Service(name) => write!(out, "service {name}"),
            Self::Other(kind, name) => write!(out, "{kind} {name}"),
        }
    }
}
