//! Workloads whose number of pods an autoscaler sets: what the step says of `replicas` would undo its work.
//!
//! ```text
//! an HPA of the step or the cluster names the workload
//!   ├─ we applied `replicas` before, and still have it ──▶ the live number is applied: leaving it out would mean 1
//!   └─ otherwise ──▶ `replicas` is left out
//! ```

use portolan_cluster::{
    Cluster, ClusterError, ErrorKind, Member, MemberError, Resource, ServedKinds,
};
use serde_json::Value;

/// A workload that an autoscaler scales: group, kind, namespace and name.
type ScaleTarget = (String, String, String, String);

/// Takes `replicas` out of objects that an autoscaler scales. Returns a line for each, and one for each namespace whose
/// autoscalers may not be read.
pub(super) async fn leave_replicas(
    cluster: &Cluster,
    objects: &mut [Value],
    namespace: &str,
    manager: &str,
) -> Result<Vec<String>, MemberError> {
    let mut lines = Vec::new();
    let place = |object: &Value| {
        let own = object["metadata"]["namespace"].as_str();
        own.unwrap_or(namespace).to_owned()
    };
    let mut targets: Vec<ScaleTarget> = objects
        .iter()
        .filter_map(|object| scale_target(object, &place(object)))
        .collect();
    let scalable = objects.iter().filter(|object| has_replicas(object));
    let mut namespaces: Vec<String> = scalable.map(place).collect();
    namespaces.sort();
    namespaces.dedup();
    for namespace in &namespaces {
        match live_targets(cluster, namespace).await {
            Ok(live) => targets.extend(live),
            Err(error) if error.kind() == ErrorKind::Forbidden => lines.push(format!(
                "autoscalers of the namespace `{namespace}` may not be read, so `replicas` is applied as it is written"
            )),
            Err(error) => return Err(error.into()),
        }
    }
    let mut kinds = ServedKinds::new(cluster);
    for object in objects.iter_mut().filter(|object| has_replicas(object)) {
        let namespace = place(object);
        let mut member = Member::of(object);
        if !targets.contains(&target_of(&member, &namespace)) {
            continue;
        }
        let resource = kinds.resource(object).await?;
        let found = cluster.read(&resource, &namespace, &member.name).await?;
        member.namespace = namespace;
        let kept = found.filter(|found| has_applied_replicas(found, manager));
        let spec = object["spec"].as_object_mut();
        let Some(spec) = spec else { continue };
        match kept {
            Some(found) => {
                let live = &found["spec"]["replicas"];
                lines.push(format!(
                    "{member} keeps {live} replicas: an autoscaler sets them"
                ));
                spec.insert("replicas".to_owned(), live.clone());
            }
            None => {
                lines.push(format!("{member}: `replicas` is left to its autoscaler"));
                spec.remove("replicas");
            }
        }
    }
    Ok(lines)
}

/// What the autoscalers of a namespace scale.
async fn live_targets(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Vec<ScaleTarget>, ClusterError> {
    let kind = Resource::in_namespaces(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    );
    let mut targets = Vec::new();
    let take = |autoscaler: Value| targets.extend(named_target(&autoscaler, namespace));
    let listed = cluster.list_whole(&kind.query(Some(namespace)), take).await;
    match listed {
        // A cluster without autoscalers, or a namespace that is still to be made.
        Err(error) if error.is_missing() => Ok(Vec::new()),
        listed => listed.map(|_| targets),
    }
}

/// What an autoscaler of the step scales.
fn scale_target(object: &Value, namespace: &str) -> Option<ScaleTarget> {
    (object["kind"] == "HorizontalPodAutoscaler")
        .then(|| named_target(object, namespace))
        .flatten()
}

fn named_target(autoscaler: &Value, namespace: &str) -> Option<ScaleTarget> {
    let target = &autoscaler["spec"]["scaleTargetRef"];
    let member = Member {
        api_version: target["apiVersion"]
            .as_str()
            .unwrap_or("apps/v1")
            .to_owned(),
        kind: target["kind"].as_str()?.to_owned(),
        namespace: namespace.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        uid: String::new(),
    };
    Some(target_of(&member, namespace))
}

fn target_of(member: &Member, namespace: &str) -> ScaleTarget {
    let group = member.api_version.split_once('/');
    (
        group.map_or("", |(group, _)| group).to_owned(),
        member.kind.clone(),
        namespace.to_owned(),
        member.name.clone(),
    )
}

fn has_replicas(object: &Value) -> bool {
    object["spec"]["replicas"].is_number()
}

/// Whether the manager applied `replicas`, and nobody has changed it since.
fn has_applied_replicas(object: &Value, manager: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    entries.any(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["fieldsV1"]["f:spec"]["f:replicas"].is_object()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_autoscaler_names_what_it_scales_whatever_the_version() {
        let autoscaler = json!({
            "kind": "HorizontalPodAutoscaler",
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"}},
        });
        let workload =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
        assert_eq!(
            scale_target(&autoscaler, "shop"),
            Some(target_of(&Member::of(&workload), "shop"))
        );
        assert_eq!(scale_target(&workload, "shop"), None);
    }

    #[test]
    fn replicas_are_ours_until_somebody_else_sets_them() {
        let owned = |fields: Value| json!({"metadata": {"managedFields": [{"manager": "us", "operation": "Apply", "fieldsV1": fields}]}});
        assert!(has_applied_replicas(
            &owned(json!({"f:spec": {"f:replicas": {}}})),
            "us"
        ));
        assert!(!has_applied_replicas(&owned(json!({"f:spec": {}})), "us"));
        assert!(!has_applied_replicas(
            &owned(json!({"f:spec": {"f:replicas": {}}})),
            "them"
        ));
    }
}
