//! Where a rollout stands.
//!
//! ```text
//! Initializing ─▶ Stable ─▶ Preparing ─▶ Shifting ⇄ Holding ─▶ Promoting ─▶ Soaking ─▶ Stable
//!                    ▲          │            │         │            │           │
//!                    │          └────────────┴────┬────┴────────────┴───────────┘
//!                    │                       RollingBack
//!                    └── revision taken back ─────┴───── any other reason ──▶ RolledBack
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a rollout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// The first revision is brought up; there is nothing to compare it with.
    #[default]
    Initializing,
    /// One revision serves all traffic.
    Stable,
    /// Pods of a new revision start; it has no traffic yet.
    Preparing,
    /// The new revision gets traffic, step by step.
    Shifting,
    /// The new revision keeps the traffic it has; the status says what for.
    Holding,
    /// The new revision grows to full size and takes over.
    Promoting,
    /// The new revision is the stable one and still watched; the old one is kept.
    Soaking,
    /// All traffic goes back to the old revision.
    RollingBack,
    /// The old revision serves all traffic; the new one is refused until the spec changes or somebody retries.
    RolledBack,
}

/// Why a rollout does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldReason {
    /// Metrics cannot be read.
    NoData,
    /// There are hardly any requests to the new revision.
    NoTraffic,
    /// There are requests, and they prove nothing yet.
    Inconclusive,
    /// Something speaks against the new revision, not yet enough for a rollback.
    Doubt,
    /// A gate has not agreed.
    Gate,
    /// Somebody paused it.
    Paused,
    /// The step waits for a person.
    Manual,
    /// The stable pods are not ready.
    StableUnhealthy,
    /// The new revision's pods are not ready yet.
    NotReady,
    /// The cluster has no room for the pods.
    NoCapacity,
    /// The routes do not yet do what they were told to.
    Routes,
    /// Something must be put right by a person.
    Problem,
}

/// How a canary ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is the stable revision, by proof or because a person said so.
    Promoted,
    /// It is the stable revision because a policy said so; nothing is proven.
    PromotedUnproven,
    /// It was worse, or its pods never got ready.
    RolledBack,
    /// A person took it back by a token.
    Aborted,
    /// The spec went back to the stable revision.
    Reverted,
    /// A newer revision took its place.
    Superseded,
    /// A person went back to the revision before by a token.
    Undone,
}

impl Phase {
    /// Returns whether a canary is on its way.
    pub fn is_running(self) -> bool {
        matches!(
            self,
            Self::Preparing
                | Self::Shifting
                | Self::Holding
                | Self::Promoting
                | Self::Soaking
                | Self::RollingBack
        )
    }

    /// Returns whether the canary is in one of the steps of its strategy.
    pub fn is_stepping(self) -> bool {
        matches!(self, Self::Shifting | Self::Holding)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Initializing => "Initializing",
            Self::Stable => "Stable",
            Self::Preparing => "Preparing",
            Self::Shifting => "Shifting",
            Self::Holding => "Holding",
            Self::Promoting => "Promoting",
            Self::Soaking => "Soaking",
            Self::RollingBack => "RollingBack",
            Self::RolledBack => "RolledBack",
        })
    }
}

impl HoldReason {
    /// Returns the word that stands in a status.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoData => "NoData",
            Self::NoTraffic => "NoTraffic",
            Self::Inconclusive => "Inconclusive",
            Self::Doubt => "Doubt",
            Self::Gate => "Gate",
            Self::Paused => "Paused",
            Self::Manual => "Manual",
            Self::StableUnhealthy => "StableUnhealthy",
            Self::NotReady => "NotReady",
            Self::NoCapacity => "NoCapacity",
            Self::Routes => "Routes",
            Self::Problem => "Problem",
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
