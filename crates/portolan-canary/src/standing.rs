//! The state of a rollout in a form for scripts.

use portolan_rollout::{Outcome, Phase, Record, Revision};

use crate::rollout::Rollout;

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// No operator has looked at the newest spec or the newest commands.
    NotSeen,
    /// The first revision comes up, or a new one is on its way.
    InProgress,
    /// The revision that the spec asks for serves all traffic.
    Stable {
        /// Whether a policy made it the stable one, without proof.
        is_unproven: bool,
    },
    /// The revision that the spec asks for does not serve.
    Refused(Outcome),
}

impl Standing {
    /// Returns where a rollout stands.
    pub fn of(rollout: &Rollout) -> Self {
        let Some(status) = &rollout.status else {
            return Self::NotSeen;
        };
        let commands = (&rollout.spec.tokens, &rollout.tokens);
        let is_seen = status.tokens.covers(commands.0, commands.1);
        if status.observed_generation < rollout.generation || !is_seen {
            return Self::NotSeen;
        }
        match status.phase {
            Phase::RolledBack => {
                let outcome = last_outcome(&status.history, status.target.as_ref());
                Self::Refused(outcome.unwrap_or(Outcome::RolledBack))
            }
            Phase::Stable => {
                let stable = status.stable.as_ref().map(|stable| &stable.revision);
                let outcome = last_outcome(&status.history, stable);
                Self::Stable {
                    is_unproven: outcome == Some(Outcome::PromotedUnproven),
                }
            }
            _ => Self::InProgress,
        }
    }

    /// Returns where a rollout stands for somebody who waits for a revision: when another one took its place, that one
    /// did not make it.
    pub fn of_revision(rollout: &Rollout, awaited: &Revision) -> Self {
        let status = rollout.status.as_ref();
        let target = status.and_then(|status| status.target.as_ref());
        let stable = status.and_then(|status| status.stable.as_ref());
        let serves = stable.is_some_and(|stable| stable.revision == *awaited);
        if target.is_none_or(|target| target == awaited) || serves {
            return Self::of(rollout);
        }
        let history = status
            .map(|status| status.history.as_slice())
            .unwrap_or_default();
        Self::Refused(last_outcome(history, Some(awaited)).unwrap_or(Outcome::Superseded))
    }

    /// Returns whether waiting longer can change it.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Stable { .. } | Self::Refused(_))
    }

    /// Returns one word for it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotSeen => "NotSeen",
            Self::InProgress => "InProgress",
            Self::Stable { is_unproven: false } => "Stable",
            Self::Stable { is_unproven: true } => "PromotedUnproven",
            Self::Refused(outcome) => match outcome {
                Outcome::Aborted => "Aborted",
                Outcome::Reverted => "Reverted",
                Outcome::Superseded => "Superseded",
                Outcome::Undone => "Undone",
                _ => "RolledBack",
            },
        }
    }
}

/// A wait for the revision that is the newest one when an operator has first seen it.
#[derive(Debug, Clone, Default)]
pub struct RevisionWait {
    awaited: Option<Revision>,
}

impl RevisionWait {
    /// Returns where a rollout stands for who waits; it is called with each new state of the rollout.
    pub fn look(&mut self, rollout: &Rollout) -> Standing {
        if self.awaited.is_none() && Standing::of(rollout) != Standing::NotSeen {
            let status = rollout.status.as_ref();
            self.awaited = status.and_then(|status| status.target.clone());
        }
        match &self.awaited {
            Some(awaited) => Standing::of_revision(rollout, awaited),
            None => Standing::of(rollout),
        }
    }
}

/// Returns how a revision last ended.
fn last_outcome(history: &[Record], revision: Option<&Revision>) -> Option<Outcome> {
    let about = |record: &&Record| record.revision.as_ref() == revision;
    history
        .iter()
        .rev()
        .filter(about)
        .find_map(|record| record.outcome)
}
