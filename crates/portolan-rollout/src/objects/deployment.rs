//! The Deployment of a slot.

use serde_json::{Map, Value, json};

use super::{App, REVISION_ANNOTATION, ROLLOUT_LABEL, RevisionContent, SLOT_LABEL, selector};
use crate::config::use_copies;
use crate::slot::Slot;

/// The starts of labels and annotations by which other programs track what they applied. A pod that had them would be
/// taken for theirs.
const TRACKING: [&str; 5] = [
    "argocd.argoproj.io/",
    "helm.toolkit.fluxcd.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kustomize.toolkit.fluxcd.io/",
    "meta.helm.sh/",
];

/// Returns the Deployment of a slot that runs a revision. Without `replicas` the number is left to an autoscaler.
pub fn deployment(
    app: &App<'_>,
    slot: Slot,
    content: &RevisionContent,
    replicas: Option<u32>,
) -> Value {
    let revision = content.revision.as_str();
    let mut metadata = app.metadata(&app.slot_name(slot));
    metadata["annotations"] = json!({REVISION_ANNOTATION: revision});
    let mut spec = json!({
        "progressDeadlineSeconds": app.spec.strategy.progress_deadline.seconds().clamp(1, i32::MAX as u64),
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector(app.name, slot)},
        "template": pod_template(app, slot, content),
    });
    if let Some(replicas) = replicas {
        spec["replicas"] = json!(replicas);
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

fn pod_template(app: &App<'_>, slot: Slot, content: &RevisionContent) -> Value {
    let mut template = content.template.clone();
    use_copies(&mut template, &content.tracked(), &content.revision);
    let metadata = template.get("metadata").and_then(Value::as_object);
    let mut metadata = metadata.cloned().unwrap_or_default();
    let mut labels = untracked(&metadata, "labels");
    let revision = content.revision.as_str();
    // Istio's metrics are told apart by these.
    labels.entry("app").or_insert_with(|| json!(app.name));
    labels.insert("version".to_owned(), json!(revision));
    let canonical = "service.istio.io/canonical-revision";
    labels.insert(canonical.to_owned(), json!(revision));
    labels.insert(ROLLOUT_LABEL.to_owned(), json!(app.name));
    labels.insert(SLOT_LABEL.to_owned(), json!(slot));
    let annotations = untracked(&metadata, "annotations");
    metadata.insert("labels".to_owned(), labels.into());
    metadata.remove("annotations");
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), annotations.into());
    }
    match &mut template {
        Value::Object(fields) => {
            fields.insert("metadata".to_owned(), metadata.into());
            template
        }
        _ => json!({"metadata": metadata}),
    }
}

/// The labels or annotations of a template without those of other programs.
fn untracked(metadata: &Map<String, Value>, field: &str) -> Map<String, Value> {
    let all = metadata.get(field).and_then(Value::as_object);
    let is_tracking = |key: &str| TRACKING.iter().any(|start| key.starts_with(start));
    let kept = all
        .into_iter()
        .flatten()
        .filter(|(key, _)| !is_tracking(key));
    kept.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
