//! Objects that somebody else deploys: Flux, Argo CD or a Helm release. They are refused before anything is applied, because
//! two who apply the same object undo each other's work.

use portolan_cluster::{Cluster, Member, MemberError, ServedKinds};
use serde_json::Value;

/// What says who deploys an object: where it stands, under which name, and who that is.
const MARKS: [(&str, &str, &str); 5] = [
    (
        "labels",
        "kustomize.toolkit.fluxcd.io/name",
        "the Kustomization",
    ),
    ("labels", "helm.toolkit.fluxcd.io/name", "the HelmRelease"),
    (
        "labels",
        "resourceset.fluxcd.controlplane.io/name",
        "the ResourceSet",
    ),
    (
        "annotations",
        "argocd.argoproj.io/tracking-id",
        "the Argo CD application",
    ),
    (
        "annotations",
        "meta.helm.sh/release-name",
        "the Helm release",
    ),
];

/// Every object that somebody else deploys, in a sentence.
pub(super) async fn foreign(
    cluster: &Cluster,
    objects: &[Value],
    namespace: &str,
) -> Result<Vec<String>, MemberError> {
    let mut kinds = ServedKinds::new(cluster);
    let mut foreign = Vec::new();
    for object in objects {
        let resource = match kinds.resource(object).await {
            // Its definition comes with the step.
            Err(MemberError::Unserved { .. }) => continue,
            resource => resource?,
        };
        let member = Member::of(object);
        let place = match member.namespace.as_str() {
            _ if !resource.namespaced => "",
            "" => namespace,
            own => own,
        };
        let found = cluster.read(&resource, place, &member.name).await?;
        if let Some(owner) = found.as_ref().and_then(owner) {
            foreign.push(format!(
                "{member} is deployed by {owner}; `adopt: true` takes it over"
            ));
        }
    }
    Ok(foreign)
}

/// Who deploys an object, as it says itself.
fn owner(object: &Value) -> Option<String> {
    MARKS.iter().find_map(|(part, name, who)| {
        let owner = object["metadata"][*part][*name].as_str()?;
        let owner = owner.split(':').next().unwrap_or(owner);
        Some(format!("{who} `{owner}`"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_who_deploys_it() {
        let by = |part: &str, name: &str, value: &str| {
            owner(&json!({"metadata": {part: {name: value}}}))
        };
        let flux = by("labels", "kustomize.toolkit.fluxcd.io/name", "apps");
        assert_eq!(flux.as_deref(), Some("the Kustomization `apps`"));
        let argo = by(
            "annotations",
            "argocd.argoproj.io/tracking-id",
            "shop:apps/Deployment:a/b",
        );
        assert_eq!(argo.as_deref(), Some("the Argo CD application `shop`"));
        assert_eq!(by("labels", "app", "web"), None);
    }
}
