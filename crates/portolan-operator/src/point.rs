//! Moments after a write, at which a process can die without harm. Tests let it die at each of them.

use std::sync::Arc;

/// A write that has just been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The status of a rollout.
    Status,
    /// Its finalizer was put on.
    FinalizerAdded,
    /// Its finalizer was taken away.
    FinalizerRemoved,
    /// The Service of a slot, or one for people and tests.
    Service,
    /// A `DestinationRule`.
    DestinationRule,
    /// The routes.
    Routes,
    /// The application's own Service.
    Apex,
    /// A revision was kept.
    RevisionSaved,
    /// Configuration was copied for a revision.
    ConfigCopied,
    /// A revision was deleted.
    RevisionDeleted,
    /// The Deployment of a slot.
    Slot,
    /// The number of pods of a slot.
    Scale,
    /// The autoscaler of a slot.
    Autoscaler,
    /// A pod was deleted so that another takes its place.
    PodReplaced,
    /// The Deployment that a spec refers to was scaled.
    Workload,
    /// An event, and messages to whom the spec names.
    Told,
    /// A gate was asked.
    GateAsked,
}

impl Point {
    /// Every point.
    pub const ALL: [Self; 17] = [
        Self::Status,
        Self::FinalizerAdded,
        Self::FinalizerRemoved,
        Self::Service,
        Self::DestinationRule,
        Self::Routes,
        Self::Apex,
        Self::RevisionSaved,
        Self::ConfigCopied,
        Self::RevisionDeleted,
        Self::Slot,
        Self::Scale,
        Self::Autoscaler,
        Self::PodReplaced,
        Self::Workload,
        Self::Told,
        Self::GateAsked,
    ];
}

/// Says whether the process dies at a point. In production it never does.
pub type Deadly = Arc<dyn Fn(Point) -> bool + Send + Sync>;
