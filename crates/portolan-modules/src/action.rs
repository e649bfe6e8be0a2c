//! The work of one step with its parameters: planned, applied, verified.

use serde_json::{Map, Value};

use crate::host::Host;
use crate::plan::{Plan, PlannedOutcome};
use crate::view::View;

/// The work of one step. Made from rendered parameters by a [`ModuleDefinition`](crate::ModuleDefinition).
pub trait Action: Send + Sync {
    /// Looks at the host and says what [`apply`](Self::apply) would do. Changes nothing.
    ///
    /// # Errors
    /// When the host cannot be looked at, or the work cannot succeed.
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError>;

    /// Does what the plan says, after a look whether it still fits: a subject whose content differs from
    /// [`Change::before`](crate::Change) is refused.
    ///
    /// # Errors
    /// When the work fails. What was done until then stays, unless the module says that it is undone.
    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError>;

    /// Looks whether the host is as [`apply`](Self::apply) should have left it.
    ///
    /// # Errors
    /// When a second apply would change something again.
    fn verify(&self, host: &Host) -> Result<(), ModuleError> {
        match self.plan(&View::of(host))?.outcome {
            PlannedOutcome::Change(changes) => Err(ModuleError::NotConverged {
                subject: changes
                    .first()
                    .map_or_else(String::new, |change| change.subject.to_string()),
            }),
            _ => Ok(()),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// Whether anything changed.
    pub is_changed: bool,
    /// What later steps and conditions see as `result`, besides `changed`.
    pub result: Map<String, Value>,
    /// What people should know, such as a difference that was left alone.
    pub notes: Vec<String>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// Something that was tried, the thing that it was tried on, and why it failed.
    #[error("cannot {act} `{subject}`: {reason}")]
    Failed {
        /// What was tried, as in `write`.
        act: &'static str,
        /// The path, package or name.
        subject: String,
        /// Why it failed.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The host is not as it was when the plan was made.
    #[error("`{subject}` has changed since the plan was made")]
    Drifted {
        /// What differs.
        subject: String,
    },
    /// A second look still finds something to change.
    #[error("`{subject}` is not as the step left it")]
    NotConverged {
        /// What still differs.
        subject: String,
    },
    /// The work was done, and its result is that of a failure. A step's `success` may judge otherwise.
    #[error("{message}")]
    Unsuccessful {
        /// What failed.
        message: String,
        /// What was done.
        applied: Box<Applied>,
    },
    /// The module does not work below another root directory.
    #[error("the module `{module}` does not work below another root directory")]
    NotBelowRoot {
        /// The module.
        module: &'static str,
    },
    /// The step was cancelled, or its time was up.
    #[error("stopped before it ended")]
    Stopped,
}

impl ModuleError {
    /// A failure without advice.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers hand over paths, names and errors of many types"
    )]
    pub fn failed(act: &'static str, subject: impl ToString, reason: impl ToString) -> Self {
        Self::Failed {
            act,
            subject: subject.to_string(),
            reason: reason.to_string(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Failed {
                act,
                subject,
                reason,
                ..
            } => Self::Failed {
                act,
                subject,
                reason,
                hint: Some(text.into()),
            },
            other => other,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Failed { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }
}
