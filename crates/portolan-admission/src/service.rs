//! Services: their types and ports.

use std::collections::HashSet;

use portolan_object::NameRule;

use crate::container::{PORTS, PROTOCOLS};
use crate::metadata;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    out.one_of(&spec, "type", TYPES);
    out.one_of(&spec, "sessionAffinity", &["ClientIP", "None"]);
    out.one_of(&spec, "externalTrafficPolicy", &["Cluster", "Local"]);
    out.one_of(&spec, "internalTrafficPolicy", &["Cluster", "Local"]);
    out.one_of(
        &spec,
        "ipFamilyPolicy",
        &["SingleStack", "PreferDualStack", "RequireDualStack"],
    );
    if let Some(selector) = spec.field("selector") {
        metadata::labels(&selector, out);
    }
    of_type(&spec, out);
    ports(&spec, out);
}

/// What a type asks for.
fn of_type(spec: &Spot<'_>, out: &mut Refusals) {
    let headless = spec.text("clusterIP") == Some("None");
    match spec.text("type").unwrap_or("ClusterIP") {
        "ExternalName" if spec.text("externalName").is_none_or(str::is_empty) => {
            out.missing(spec, "externalName");
        }
        "ClusterIP" if !headless && !spec.has_items("ports") => out.missing(spec, "ports"),
        kind @ ("LoadBalancer" | "NodePort") => {
            if !spec.has_items("ports") {
                out.missing(spec, "ports");
            }
            if let Some(address) = spec.field("clusterIP").filter(|_| headless) {
                let message = format!("must not be `None` in a Service of type `{kind}`");
                out.add(Fault::Conflict, &address, message);
            }
        }
        _ => {}
    }
}

fn ports(spec: &Spot<'_>, out: &mut Refusals) {
    let several = spec.items("ports").count() > 1;
    let without_node_ports = matches!(spec.text("type"), None | Some("ClusterIP"));
    let mut seen = HashSet::new();
    for port in spec.items("ports") {
        out.within(&port, "port", PORTS);
        out.one_of(&port, "protocol", PROTOCOLS);
        out.named(&port, "name", NameRule::Label);
        target(&port, out);
        if several && port.text("name").is_none_or(str::is_empty) {
            out.missing(&port, "name");
        }
        let nodes = port.field("nodePort").filter(|_| without_node_ports);
        if let Some(nodes) = nodes.filter(|nodes| nodes.node.as_i64() != Some(0)) {
            let message = "may only be there in a Service of type `NodePort` or `LoadBalancer`";
            out.add(Fault::Conflict, &nodes, message);
        }
        let key = (port.number("port"), port.text("protocol").unwrap_or("TCP"));
        if !seen.insert(key) {
            let message = "another port has this `port` and `protocol`";
            out.add(Fault::Duplicate, &port, message);
        }
    }
    out.distinct(spec, "ports", "name");
}

fn target(port: &Spot<'_>, out: &mut Refusals) {
    let Some(target) = port.field("targetPort") else {
        return;
    };
    match target.node.as_str() {
        Some(name) if !NameRule::Port.fits(name) => {
            out.add(Fault::Name, &target, NameRule::Port.to_string());
        }
        _ if target.node.as_i64() == Some(0) => {}
        _ => out.within(port, "targetPort", PORTS),
    }
}
