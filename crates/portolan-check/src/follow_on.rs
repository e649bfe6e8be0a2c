//! References whose target may be something that could not be rendered.

use portolan_object::{Cause, Finding, Owner, Rule, Severity};
use portolan_yaml::Text;

/// A HelmRelease or Kustomization whose objects are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrendered {
    /// The HelmRelease or Kustomization.
    pub owner: Owner,
    /// The namespace that its objects would be in.
    pub namespace: Text,
}

/// Kinds whose references go beyond their namespace.
const BEYOND_NAMESPACE: [&str; 2] = ["ClusterRoleBinding", "RoleBinding"];

/// Lowers findings of these rules to notes of one cause where another release, which could not be rendered, may bring
/// what is missing: that it is missing is not known.
pub fn lower_follow_ons(findings: &mut [Finding], rules: &[&Rule], unrendered: &[Unrendered]) {
    // A note says already how little it is worth.
    let grave = findings.iter_mut();
    for finding in grave.filter(|finding| finding.severity != Severity::Note) {
        let may_be_brought = unrendered.iter().any(|release| may_bring(release, finding));
        if rules.contains(&finding.rule) && may_be_brought {
            finding.severity = Severity::Note;
            finding.hints.clear();
            finding.cause = Some(Cause {
                many: "references may lead to what releases that are not rendered would bring",
                why: String::new(),
            });
        }
    }
}

fn may_bring(release: &Unrendered, finding: &Finding) -> bool {
    let Some(owner) = &finding.owner else {
        return false;
    };
    let is_near = match &finding.object {
        Some(object) => {
            object.namespace == release.namespace
                || BEYOND_NAMESPACE.contains(&object.gvk.kind.as_str())
        }
        // A release does not bring its own values.
        None => owner.namespace == release.namespace && *owner != release.owner,
    };
    is_near && owner.cluster == release.owner.cluster
}

#[cfg(test)]
mod tests {
    use portolan_object::OwnerKind;

    use super::*;
    use crate::rule::{MISSING_REFERENCE, UNKNOWN_FIELD};

    #[test]
    fn only_what_another_release_may_bring_is_lowered() {
        let owner = |name: &'static str| Owner::new(OwnerKind::Release, "apps", name);
        let about = |rule, object: &str| Finding {
            owner: Some(owner("web")),
            object: object.parse().ok(),
            ..Finding::new(rule, "no Secret is called `db` here")
        };
        let unrendered = [Unrendered {
            owner: owner("db"),
            namespace: "apps".into(),
        }];
        let lowered = |mut finding: Finding| {
            let rules = [&MISSING_REFERENCE];
            lower_follow_ons(std::slice::from_mut(&mut finding), &rules, &unrendered);
            finding.severity == Severity::Note
        };
        assert!(lowered(about(
            &MISSING_REFERENCE,
            "apps/v1/Deployment/apps/web"
        )));
        assert!(!lowered(about(
            &MISSING_REFERENCE,
            "apps/v1/Deployment/shop/web"
        )));
        assert!(!lowered(about(
            &UNKNOWN_FIELD,
            "apps/v1/Deployment/apps/web"
        )));
        let of_release = |name| Finding {
            owner: Some(owner(name)),
            ..Finding::new(&MISSING_REFERENCE, "missing Secret apps/db")
        };
        assert!(lowered(of_release("web")) && !lowered(of_release("db")));
    }
}
