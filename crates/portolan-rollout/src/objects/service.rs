//! The Services of an application.

use serde_json::{Value, json};

use super::{App, selector};
use crate::slot::Slot;

/// Returns the Service of a slot. It never changes its selector.
pub fn slot_service(app: &App<'_>, slot: Slot) -> Value {
    service(app, &app.slot_name(slot), slot)
}

/// Returns the application's own Service, which selects the slot that serves.
pub fn apex_service(app: &App<'_>, slot: Slot) -> Value {
    service(app, app.name, slot)
}

/// Returns the Services by which people and tests reach the stable and the new revision. No route leads to them.
pub fn alias_services(app: &App<'_>, stable: Slot) -> [Value; 2] {
    let alias = |role: &str, slot| service(app, &format!("{}-{role}", app.name), slot);
    [alias("stable", stable), alias("canary", stable.other())]
}

fn service(app: &App<'_>, name: &str, slot: Slot) -> Value {
    let port = &app.spec.service;
    let target = port.target_port.clone();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": app.metadata(name),
        "spec": {
            "selector": selector(app.name, slot),
            "ports": [{
                "name": port.port_name.as_deref().unwrap_or("http"),
                "port": port.port,
                "targetPort": target.unwrap_or_else(|| json!(port.port)),
            }],
        },
    })
}
