//! The rule that a finding belongs to.

use crate::finding::severity::Severity;

/// A kind of finding. Rules are statics, so that a finding cannot name one that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name in every output; never changes.
    pub id: &'static str,
    /// The severity of its findings, unless a finding lowers it.
    pub severity: Severity,
    /// What it finds, in a line.
    pub summary: &'static str,
    /// Why it matters and what to do.
    pub help: &'static str,
}
