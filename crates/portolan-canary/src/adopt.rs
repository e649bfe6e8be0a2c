//! Turns a running Deployment into a rollout without an outage.

use portolan_rollout::{API_VERSION, KIND};
use serde_json::{Value, json};

use crate::convert::Conversion;

/// Returns the rollout that takes a Deployment over, with the steps as notes. `services` are those of its namespace.
pub fn adopt(deployment: &Value, services: &[Value]) -> Conversion {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (
        text(&deployment["metadata"]["namespace"]),
        text(&deployment["metadata"]["name"]),
    );
    let service = services.iter().find(|service| selects(service, deployment));
    let port = service.map_or(Value::Null, |service| service["spec"]["ports"][0].clone());
    let mut service_fields = json!({"port": port["port"].as_u64().unwrap_or(80)});
    for (ours, theirs) in [("targetPort", "targetPort"), ("portName", "name")] {
        if !port[theirs].is_null() {
            service_fields[ours] = port[theirs].clone();
        }
    }
    let service_name = service.map(|service| text(&service["metadata"]["name"]));
    // The rollout's own Service has its name; clients keep calling what they call.
    let rollout_name = service_name.clone().unwrap_or_else(|| name.clone());
    let object = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": rollout_name, "namespace": namespace},
        "spec": {
            "replicas": deployment["spec"]["replicas"].as_u64().unwrap_or(1),
            "workloadRef": {"kind": "Deployment", "name": name},
            "service": service_fields,
            "adopt": true,
        },
    });
    let mut notes = vec![
        format!("1. apply this object: the operator starts slot `{rollout_name}-a` from the pod template of Deployment `{name}`, which keeps serving"),
        format!("2. when slot `{rollout_name}-a` is ready at full size, the Service `{rollout_name}` selects it, and Deployment `{name}` is held at 0 replicas"),
        format!("3. wait for `portolan rollout status {namespace}/{rollout_name} --wait`; until it is stable nothing is deleted"),
        "4. change the pod template of the Deployment as before: each change is a canary from then on".to_owned(),
        "5. to be rid of the Deployment later, move its pod template into `spec.template` in place of `workloadRef`".to_owned(),
    ];
    if service_name.is_none() {
        notes.push(format!(
            "no Service selects the pods of Deployment `{name}`; port 80 is assumed"
        ));
    }
    Conversion {
        from: format!("Deployment {namespace}/{name}"),
        object,
        notes,
    }
}

/// Returns whether a Service selects the pods of a Deployment.
fn selects(service: &Value, deployment: &Value) -> bool {
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels[key] == *value)
    })
}
