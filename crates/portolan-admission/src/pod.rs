//! A pod's specification, alone or as a template.

use std::collections::HashSet;

use crate::container;
use crate::metadata;
use crate::placement;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};
use crate::volume;

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// A Pod.
pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    if let Some(spec) = root.field("spec") {
        specification(&spec, &[], out);
    }
}

/// A template; `claims` are volumes that its owner makes for each pod.
pub(crate) fn template(template: &Spot<'_>, claims: &[&str], out: &mut Refusals) {
    if let Some(metadata) = template.field("metadata") {
        metadata::described(&metadata, out);
    }
    if let Some(spec) = template.field("spec") {
        specification(&spec, claims, out);
    }
}

fn specification(spec: &Spot<'_>, claims: &[&str], out: &mut Refusals) {
    out.one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"]);
    out.one_of(
        spec,
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    );
    out.one_of(spec, "preemptionPolicy", &["Never", "PreemptLowerPriority"]);
    out.within(spec, "activeDeadlineSeconds", 1..=i64::from(i32::MAX));
    if let Some(selector) = spec.field("nodeSelector") {
        metadata::labels(&selector, out);
    }
    volume::check(spec, out);
    placement::check(spec, out);
    if !spec.has_items("containers") && spec.field("containers").is_some() {
        out.missing(spec, "containers");
    }
    let volumes = volume::names(spec, claims);
    let devices = spec.names("resourceClaims");
    for list in CONTAINERS {
        for container in spec.items(list) {
            container::claims(&container, &devices, out);
        }
    }
    for container in spec.items("initContainers") {
        container::init(&container, &volumes, out);
    }
    for container in spec.items("containers") {
        container::check(&container, &volumes, out);
    }
    names(spec, out);
    host_ports(spec, out);
}

/// No two containers share a name, whichever list they are in.
fn names(spec: &Spot<'_>, out: &mut Refusals) {
    let mut seen = HashSet::new();
    for list in CONTAINERS {
        for container in spec.items(list) {
            if container
                .text("name")
                .is_some_and(|name| !seen.insert(name))
                && let Some(name) = container.field("name")
            {
                out.add(Fault::Duplicate, &name, "another container has this `name`");
            }
        }
    }
}

/// On the host's network a port is the host's.
fn host_ports(spec: &Spot<'_>, out: &mut Refusals) {
    if !spec.is_true("hostNetwork") {
        return;
    }
    for container in spec.items("containers") {
        for port in container.items("ports") {
            let Some(host) = port.field("hostPort") else {
                continue;
            };
            if host.node.as_i64() != port.number("containerPort") {
                let message = "must equal `containerPort` on the host's network";
                out.add(Fault::Value, &host, message);
            }
        }
    }
}
