//! What is told while a release is worked on.

use portolan_cluster::Member;

/// Something that happened.
#[derive(Debug)]
pub enum ReleaseNews<'a> {
    /// A line for people.
    Line(String),
    /// An object got further.
    Object {
        /// The object.
        member: &'a Member,
        /// How far it is.
        state: ObjectState,
        /// Why, or what it waits for.
        message: Option<String>,
    },
}

/// How far an object of a release is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    /// It was applied.
    Applied,
    /// It is what it asks for.
    Ready,
    /// It could not be applied or did not become ready.
    Failed,
    /// It is no longer in the chart, and was deleted.
    Deleted,
    /// It is no longer in the chart, and stays.
    Kept,
}
