//! Istio's traffic policy for the slots. Without one, no `DestinationRule` is needed: slots are told apart by host.

use serde_json::{Value, json};

use super::App;
use crate::slot::Slot;

/// Returns a `DestinationRule` for each slot, if the user gave a traffic policy.
pub fn destination_rules(app: &App<'_>) -> Vec<Value> {
    let Some(policy) = &app.spec.service.traffic_policy else {
        return Vec::new();
    };
    let rule = |slot| {
        let name = app.slot_name(slot);
        json!({
            "apiVersion": "networking.istio.io/v1",
            "kind": "DestinationRule",
            "metadata": app.metadata(&name),
            "spec": {"host": name, "trafficPolicy": policy},
        })
    };
    Slot::BOTH.map(rule).to_vec()
}
