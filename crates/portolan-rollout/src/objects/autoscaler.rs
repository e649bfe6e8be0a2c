//! The autoscaler of a slot: a `HorizontalPodAutoscaler`, or KEDA's `ScaledObject` if the user gave triggers.

use serde_json::{Value, json};

use super::App;
use crate::slot::Slot;

/// Returns the autoscaler of a slot that has at least `floor` pods. `None` if the application is not scaled
/// automatically, or if the slot is to have no pods: an autoscaler would start some.
pub fn autoscaler(app: &App<'_>, slot: Slot, floor: u32) -> Option<Value> {
    let scaling = app.spec.autoscaling.as_ref().filter(|_| floor > 0)?;
    let name = app.slot_name(slot);
    let most = scaling.max_replicas.max(floor);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    if let Some(triggers) = &scaling.triggers {
        return Some(json!({
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": app.metadata(&name),
            "spec": {
                "scaleTargetRef": target,
                "minReplicaCount": floor,
                "maxReplicaCount": most,
                "triggers": triggers,
            },
        }));
    }
    let by_cpu = json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }]);
    let mut spec = json!({
        "scaleTargetRef": target,
        "minReplicas": floor,
        "maxReplicas": most,
        "metrics": scaling.metrics.clone().unwrap_or(by_cpu),
    });
    if let Some(behavior) = &scaling.behavior {
        spec["behavior"] = behavior.clone();
    }
    Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": app.metadata(&name),
        "spec": spec,
    }))
}
