//! One container of a pod: its image, ports, variables, mounts, probes and resources.

use std::collections::HashSet;

use portolan_object::{ImageRef, NameRule};

use crate::handler;
use crate::quantity;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

/// The numbers a port can have.
pub(crate) const PORTS: std::ops::RangeInclusive<i64> = 1..=65_535;
pub(crate) const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

pub(crate) fn check(container: &Spot<'_>, volumes: &HashSet<&str>, out: &mut Refusals) {
    out.named(container, "name", NameRule::Label);
    out.one_of(
        container,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
    );
    out.one_of(
        container,
        "terminationMessagePolicy",
        &["File", "FallbackToLogsOnError"],
    );
    image(container, out);
    ports(container, out);
    environment(container, out);
    mounts(container, volumes, out);
    for probe in PROBES {
        handler::probe(container, probe, out);
    }
    handler::lifecycle(container, out);
    resources(container, out);
    privileges(container, out);
}

/// A container that runs before the others; only one that keeps running can be probed.
pub(crate) fn init(container: &Spot<'_>, volumes: &HashSet<&str>, out: &mut Refusals) {
    check(container, volumes, out);
    if container.text("restartPolicy") == Some("Always") {
        return;
    }
    for field in PROBES.into_iter().chain(["lifecycle"]) {
        if let Some(found) = container.field(field) {
            let message = "an init container may only have it with `restartPolicy: Always`";
            out.add(Fault::Conflict, &found, message);
        }
    }
}

fn image(container: &Spot<'_>, out: &mut Refusals) {
    let text = container.text("image").unwrap_or_default();
    if text.is_empty() {
        return out.missing(container, "image");
    }
    let Some(found) = container.field("image") else {
        return;
    };
    if let Err(wrong) = text.parse::<ImageRef>() {
        out.add(Fault::Value, &found, format!("no image: {wrong}"));
    }
}

fn ports(container: &Spot<'_>, out: &mut Refusals) {
    for port in container.items("ports") {
        out.within(&port, "containerPort", PORTS);
        out.within(&port, "hostPort", 0..=*PORTS.end());
        out.one_of(&port, "protocol", PROTOCOLS);
        out.named(&port, "name", NameRule::Port);
    }
    out.distinct(container, "ports", "name");
}

fn environment(container: &Spot<'_>, out: &mut Refusals) {
    for variable in container.items("env") {
        if variable.text("name") == Some("") {
            out.missing(&variable, "name");
        }
        let Some(source) = variable.field("valueFrom") else {
            continue;
        };
        if variable
            .text("value")
            .is_some_and(|value| !value.is_empty())
        {
            out.at_most_one(&variable, &["value", "valueFrom"]);
        }
        out.exactly_one(
            &source,
            &[
                "fieldRef",
                "resourceFieldRef",
                "configMapKeyRef",
                "secretKeyRef",
                "fileKeyRef",
            ],
        );
    }
    for source in container.items("envFrom") {
        out.exactly_one(&source, &["configMapRef", "secretRef"]);
    }
}

fn mounts(container: &Spot<'_>, volumes: &HashSet<&str>, out: &mut Refusals) {
    for list in ["volumeMounts", "volumeDevices"] {
        for mount in container.items(list) {
            let Some(name) = mount.field("name") else {
                continue;
            };
            if let Some(text) = name.node.as_str()
                && !volumes.contains(text)
            {
                let message = format!("the pod has no volume `{text}`");
                out.add(Fault::Reference, &name, message);
            }
        }
    }
    for mount in container.items("volumeMounts") {
        out.at_most_one(&mount, &["subPath", "subPathExpr"]);
        for field in ["subPath", "subPathExpr"] {
            let outside =
                |path: &str| path.starts_with('/') || path.split('/').any(|part| part == "..");
            if let Some(path) = mount.field(field)
                && path.node.as_str().is_some_and(outside)
            {
                out.add(Fault::Value, &path, "must be a relative path without `..`");
            }
        }
    }
    out.distinct(container, "volumeMounts", "mountPath");
}

/// Devices are claimed by the pod and used by its containers.
pub(crate) fn claims(container: &Spot<'_>, claimed: &HashSet<&str>, out: &mut Refusals) {
    let Some(resources) = container.field("resources") else {
        return;
    };
    for claim in resources.items("claims") {
        if let Some(name) = claim.field("name")
            && let Some(text) = name.node.as_str()
            && !claimed.contains(text)
        {
            let message = format!("the pod has no resource claim `{text}`");
            out.add(Fault::Reference, &name, message);
        }
    }
}

/// Requests within limits, of resources that exist.
fn resources(container: &Spot<'_>, out: &mut Refusals) {
    let Some(resources) = container.field("resources") else {
        return;
    };
    for list in ["limits", "requests"] {
        let Some(amounts) = resources.field(list) else {
            continue;
        };
        for (name, amount) in amounts.entries() {
            if !is_resource(name) {
                let message = "must be `cpu`, `memory`, `ephemeral-storage`, `hugepages-…` or a name with a domain";
                out.add(Fault::Name, &amount, message);
            } else if quantity::amount(amount.node).is_some_and(|amount| amount < 0.0) {
                out.add(Fault::Value, &amount, "must not be negative");
            }
        }
    }
    let (Some(requests), Some(limits)) = (resources.field("requests"), resources.field("limits"))
    else {
        return;
    };
    for (name, request) in requests.entries() {
        let limit = limits.field(name);
        if limit.is_some_and(|limit| quantity::exceeds(request.node, limit.node)) {
            out.add(Fault::Value, &request, "must not be more than the limit");
        }
    }
}

fn is_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage")
        || name.starts_with("hugepages-")
        || name.contains('/')
}

fn privileges(container: &Spot<'_>, out: &mut Refusals) {
    let Some(context) = container.field("securityContext") else {
        return;
    };
    let escalates = context.node.get("allowPrivilegeEscalation");
    if escalates.and_then(portolan_yaml::Node::as_bool) == Some(false)
        && context.is_true("privileged")
    {
        let message = "`privileged: true` and `allowPrivilegeEscalation: false` exclude each other";
        out.add(Fault::Conflict, &context, message);
    }
}
