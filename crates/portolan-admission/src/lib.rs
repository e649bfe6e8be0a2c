//! Says what an API server refuses in an object although all its types are right.
//!
//! The types say that `containerPort` is a number. Other rules exist only in the server's code: a port must be below
//! 65,536, two containers may not share a name, a selector must select the pods of its own template. This crate has
//! these rules for the kinds that people write by hand:
//!
//! ```text
//! object ──┬─ metadata: names, labels, annotations
//!          ├─ pod: container, volume, placement       ┐
//!          ├─ workload, schedule, autoscaler          ├──▶ Refusal (path, fault, message) …
//!          └─ service, ingress, storage, rights, data ┘
//! ```
//!
//! The entry point is [`refusals`]. It must not report false errors: what depends on a cluster's settings passes, and
//! a test sends every example in `tests/` to a real API server. No message repeats a value that could come from a
//! Secret.

#![warn(missing_docs)]

mod refusal;
mod spot;

mod metadata;

mod container;
mod handler;
mod placement;
mod pod;
mod quantity;
mod volume;

mod autoscaler;
mod cron;
mod workload;

mod data;
mod definition;
mod ingress;
mod rights;
mod service;
mod storage;

use portolan_object::Object;

pub use refusal::{Fault, Refusal};

use crate::spot::{Refusals, Spot};

/// Everything an API server would refuse in an object, in the order of its fields' kinds.
pub fn refusals(object: &Object) -> Vec<Refusal> {
    let mut out = Refusals::default();
    let root = Spot::root(object.node());
    let gvk = object.gvk();
    metadata::check(&root, gvk, &mut out);
    let check = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => pod::check,
        ("" | "apps" | "batch", _) if workload::has_pods(gvk) => workload::check,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::check,
        ("policy", "PodDisruptionBudget") => autoscaler::check_budget,
        ("", "Service") => service::check,
        ("networking.k8s.io", "Ingress") => ingress::check,
        ("networking.k8s.io", "NetworkPolicy") => ingress::check_policy,
        ("", "PersistentVolumeClaim") => storage::check_claim,
        ("", "PersistentVolume") => storage::check_volume,
        ("storage.k8s.io", "StorageClass") => storage::check_class,
        ("rbac.authorization.k8s.io", _) => rights::check,
        ("", "ConfigMap" | "Secret") => data::check,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition::check,
        _ => return out.list,
    };
    check(&root, &mut out);
    out.list
}
