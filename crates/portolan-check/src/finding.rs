//! The subject of a check, and the findings that checks collect about it.

use portolan_object::{Finding, Object, ObjectId, Owner, Place, Rule};

/// An object to check, and who brings it.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// What applies it, and in which cluster.
    pub owner: Owner,
    /// What names it in the cluster, with the namespace that Helm leaves to its release.
    pub id: ObjectId,
    /// The object as it would be applied.
    pub object: &'a Object,
    /// Whether data that sets variables is missing, so that `${NAME}` stands for a value that only the cluster knows.
    pub lacks_variables: bool,
}

/// Something wrong with one of the subjects; becomes a [`Finding`] when all checks are done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// Which rule says so.
    pub(crate) rule: &'static Rule,
    /// Index of the object among the subjects.
    pub(crate) subject: usize,
    /// What is wrong, in a sentence without a full stop.
    pub(crate) message: String,
    /// The line that caused it.
    pub(crate) place: Option<Place>,
}

impl Found {
    /// The finding about its subject.
    pub(crate) fn about(self, subject: &Subject<'_>) -> Finding {
        let finding = Finding {
            owner: Some(subject.owner.clone()),
            object: Some(subject.id.clone()),
            place: self.place,
            ..Finding::new(self.rule, self.message)
        };
        match subject.owner.cluster.as_str() {
            "" => finding,
            _ => finding.in_cluster(&subject.owner.cluster),
        }
    }
}
