//! Advice on rollouts, as findings.

use portolan_canary::lint;
use portolan_check::{Settings, Subject, place_of};
use portolan_object::Finding;
use portolan_vfs::Vfs;

/// What could be better about the rollouts among some objects of a cluster.
pub(super) fn findings(
    subjects: &[Subject<'_>],
    settings: &Settings,
    files: &dyn Vfs,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for subject in subjects {
        let others = subjects.iter().map(|other| other.object);
        for advice in lint(subject.object, others) {
            let finding = Finding {
                owner: Some(subject.owner.clone()),
                object: Some(subject.id.clone()),
                place: place_of(files, subject.object, &advice.field),
                ..Finding::new(advice.rule, format!("{}: {}", advice.field, advice.message))
            };
            if settings.wants_finding(&finding) {
                findings.push(finding.in_cluster(&subject.owner.cluster));
            }
        }
    }
    findings
}
