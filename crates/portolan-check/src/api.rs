//! API versions that the chosen Kubernetes no longer serves, with what replaces them.

use portolan_audit::{Checker, Level, Site, Target};
use portolan_object::{KubeVersion, Object};

use crate::finding::{Found, Subject};
use crate::rule::API_REMOVED;

/// What a release of Kubernetes no longer serves.
#[derive(Debug, Clone)]
pub struct Apis {
    checker: Checker,
}

impl Apis {
    /// Those of a release, known or not: what was removed once stays removed.
    pub fn of(release: KubeVersion) -> Self {
        Self {
            checker: Checker::new(Target::kubernetes(release)),
        }
    }

    /// The release after this one that brings an object's API version without being told to; `None` if none is known to.
    pub(crate) fn introduced(&self, object: &Object) -> Option<KubeVersion> {
        let gvk = object.gvk();
        let is_on = !gvk.version.contains("alpha") && !gvk.version.contains("beta");
        let row = self.checker.table.get(&gvk.group, &gvk.version, &gvk.kind);
        let row = row.filter(|row| is_on && row.is_kubernetes())?;
        let since = KubeVersion::from(row.introduced?);
        (since > self.checker.target.kubernetes).then_some(since)
    }

    /// Since when an object's API version is no longer served and what replaces it; `None` while it is served.
    pub fn removed(&self, object: &Object) -> Option<String> {
        let subject = portolan_audit::Subject {
            api_version: object.gvk().api_version(),
            kind: object.kind().to_string(),
            ..portolan_audit::Subject::default()
        };
        let found = self.checker.check_api(subject, &Site::default())?;
        let instead = found
            .replacement
            .map(|replacement| format!("; use {replacement}"));
        (found.level == Level::Removed).then(|| found.message + &instead.unwrap_or_default())
    }
}

/// The finding about an object whose API version is gone: its type is gone too, so nothing else can be said of it.
pub(crate) fn check(subject: &Subject<'_>, index: usize, apis: &Apis) -> Option<Found> {
    Some(Found {
        rule: &API_REMOVED,
        subject: index,
        message: apis.removed(subject.object)?,
        place: subject.object.place(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_object::Origin;
    use portolan_yaml::{Dialect, parse_one};

    #[test]
    fn a_removed_api_is_told_with_its_replacement_and_a_deprecated_one_is_not() {
        let text = "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web}}";
        let node = parse_one(text, Dialect::Kustomize).unwrap();
        let object = Object::new(node, Origin::default()).unwrap();
        let removed = |minor| Apis::of(KubeVersion::new(1, minor)).removed(&object);
        let message = "policy/v1beta1 PodDisruptionBudget is no longer served from Kubernetes 1.25 on; use policy/v1";
        assert_eq!(removed(25).unwrap(), message);
        assert_eq!(removed(99).unwrap(), message);
        assert_eq!(removed(24), None);
    }
}
