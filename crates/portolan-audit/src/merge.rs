//! One finding per object: the same problem seen in several places becomes one finding with all its evidence.

use std::collections::BTreeMap;

use crate::finding::Finding;

/// What makes two findings the same: the object, the part of it, and the file when there is one, for each file that
/// says it must be changed. The API version is left out: one object can be seen in two old versions at once.
type Same = (
    Option<String>,
    Option<u32>,
    String,
    String,
    String,
    Option<String>,
    bool,
);

fn same(finding: &Finding) -> Same {
    let subject = &finding.subject;
    let nameless = subject.name.is_empty();
    (
        finding.file.clone(),
        // Two documents of one file may describe the same object; both lines must be changed.
        finding.line,
        subject.kind.clone(),
        subject.namespace.clone(),
        if nameless {
            subject.api_version.clone()
        } else {
            subject.name.clone()
        },
        finding.path.clone(),
        nameless,
    )
}

/// Merges findings and puts them in the order in which they are shown: by place, then by object.
pub fn merge(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: BTreeMap<Same, Finding> = BTreeMap::new();
    for finding in findings {
        match merged.entry(same(&finding)) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(finding);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                join(place.get_mut(), finding);
            }
        }
    }
    let mut merged: Vec<Finding> = merged.into_values().collect();
    for finding in &mut merged {
        finding.evidence.sort();
        finding.evidence.dedup();
    }
    merged
}

/// The worse of the two speaks; what the other saw is added.
fn join(kept: &mut Finding, other: Finding) {
    let (mut winner, loser) = if other.level > kept.level {
        (other, kept.clone())
    } else {
        (kept.clone(), other)
    };
    winner.evidence.extend(loser.evidence);
    winner.fixable &= loser.fixable;
    *kept = winner.with_id();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Checker, Site};
    use crate::finding::Evidence;
    use crate::level::Level;
    use portolan_yaml::{Dialect, parse_one};

    fn seen(text: &str, evidence: Evidence) -> Vec<Finding> {
        let site = Site {
            evidence: vec![evidence],
            ..Site::default()
        };
        Checker::default().check(&parse_one(text, Dialect::Helm).unwrap(), &site)
    }

    #[test]
    fn an_object_seen_twice_is_one_finding_with_the_best_evidence_first() {
        let text = "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}}";
        let live = Evidence::Live {
            api_version: "policy/v1beta1".into(),
        };
        let helm = Evidence::Helm {
            release: "web".into(),
            namespace: "shop".into(),
            revision: 12,
            status: "deployed".into(),
            chart: String::new(),
            hook: false,
            api_version: "policy/v1beta1".into(),
        };
        let findings = merge([seen(text, live.clone()), seen(text, helm.clone())].concat());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Removed);
        assert_eq!(findings[0].evidence, [helm, live]);
        assert_eq!(findings[0].place(), "Helm release shop/web r12");
    }
}
