//! A finding, and the object it is about.

use portolan_object::{Object, ObjectId, Place};

use crate::rule::Rule;

/// An object to check, and who brings it.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// `Kustomization flux-system/apps`
    pub owner: String,
    /// What names it in the cluster, with the namespace that Helm leaves to its release.
    pub id: ObjectId,
    /// The object as it would be applied.
    pub object: &'a Object,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which rule says so.
    pub rule: &'static Rule,
    /// Index of the object among the subjects.
    pub subject: usize,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// The line that caused it.
    pub place: Option<Place>,
}
