//! The objects that an application is made of, as JSON, from its spec and its status.
//!
//! ```text
//! NAME (apex Service) ─selects─▶ the stable slot          `VirtualService` or `HTTPRoute` NAME ─weights─▶ NAME-a, NAME-b
//! NAME-a, NAME-b: Deployment, Service, autoscaler; no Service of a slot ever changes its selector
//! NAME-stable, NAME-canary: Services for people and tests, outside of the routes
//! ```
//!
//! Each function gives what is to be applied; an operator applies it by server-side apply. Labels and annotations of the
//! `IstioCanaryDeployment` itself are not passed on: they say who manages that object, not these.

mod autoscaler;
mod config_copy;
mod cookie;
mod deployment;
mod destination_rule;
mod http_route;
mod put;
mod read_traffic;
mod revision_record;
mod service;
mod virtual_service;

pub use autoscaler::autoscaler;
pub use config_copy::config_copy;
pub use deployment::deployment;
pub use destination_rule::destination_rules;
pub use http_route::{http_route, whole_http_route};
pub use read_traffic::read_traffic;
pub use revision_record::{RevisionContent, controller_revision, read_controller_revision};
pub use service::{alias_services, apex_service, slot_service};
pub use virtual_service::{join_routes, split_routes, virtual_service, whole_virtual_service};

use serde_json::{Value, json};

use crate::revision::Revision;
use crate::slot::Slot;
use crate::spec::{API_VERSION, KIND, Spec, Strategy};
use crate::status::Status;

/// The label with the name of the application, on everything that belongs to it.
pub const ROLLOUT_LABEL: &str = "portolan.dev/rollout";
/// The label with the slot of a pod.
pub const SLOT_LABEL: &str = "portolan.dev/slot";
/// The annotation with the revision of a slot's Deployment.
pub const REVISION_ANNOTATION: &str = "portolan.dev/revision";

/// The annotation of a Service that was taken over: what it was before.
pub const ADOPTED_ANNOTATION: &str = "portolan.dev/adopted";

/// The application whose objects are made.
#[derive(Debug, Clone, Copy)]
pub struct App<'a> {
    /// `metadata.name` of the `IstioCanaryDeployment`.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its uid, for owner references.
    pub uid: &'a str,
    /// Its spec.
    pub spec: &'a Spec,
}

impl App<'_> {
    /// Returns the name of what belongs to a slot.
    pub fn slot_name(&self, slot: Slot) -> String {
        format!("{}-{slot}", self.name)
    }

    /// Returns the metadata of an object that belongs to the application.
    fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name,
            "namespace": self.namespace,
            "labels": labels(self.name),
            "ownerReferences": [{
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": self.name,
                "uid": self.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        })
    }

    /// Returns the strategy that the routes follow: the running canary's, which may be older than the spec's.
    fn strategy<'s>(&'s self, status: &'s Status) -> &'s Strategy {
        let canary = status.canary.as_deref();
        canary.map_or(&self.spec.strategy, |canary| &canary.plan.strategy)
    }
}

/// Returns the revision in a slot, by which its cookie is named.
fn revision_in(status: &Status, slot: Slot) -> Option<&Revision> {
    let plan = status.slots.get(slot).as_ref();
    plan.map(|plan| &plan.revision)
}

/// Returns the labels of everything that belongs to an application.
pub fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/managed-by": "portolan", ROLLOUT_LABEL: name})
}

/// Returns the labels by which a slot's pods are selected.
fn selector(name: &str, slot: Slot) -> Value {
    json!({ROLLOUT_LABEL: name, SLOT_LABEL: slot})
}

/// Returns the selector of a slot's pods, as `kubectl` writes it.
pub fn selector_text(name: &str, slot: Slot) -> String {
    format!("{ROLLOUT_LABEL}={name},{SLOT_LABEL}={slot}")
}
