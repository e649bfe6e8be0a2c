//! Probes and lifecycle hooks, which the kubelet runs on a container.

use portolan_object::NameRule;
use portolan_yaml::Node;

use crate::container::PORTS;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

pub(crate) fn probe(container: &Spot<'_>, name: &str, out: &mut Refusals) {
    let Some(probe) = container.field(name) else {
        return;
    };
    out.exactly_one(&probe, &["exec", "httpGet", "tcpSocket", "grpc"]);
    for count in COUNTS {
        out.within(&probe, count, 0..=i64::MAX);
    }
    if name != "readinessProbe"
        && let Some(threshold) = probe.field("successThreshold")
        && !matches!(threshold.node.as_i64(), None | Some(0 | 1))
    {
        out.add(Fault::Value, &threshold, "must be 1");
    }
    action(&probe, container, out);
}

pub(crate) fn lifecycle(container: &Spot<'_>, out: &mut Refusals) {
    let Some(lifecycle) = container.field("lifecycle") else {
        return;
    };
    for name in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.field(name) {
            out.exactly_one(&hook, &["exec", "httpGet", "tcpSocket", "sleep"]);
            action(&hook, container, out);
        }
    }
}

/// The port that is asked, which by name must be one of the container's.
fn action(handler: &Spot<'_>, container: &Spot<'_>, out: &mut Refusals) {
    for kind in ["httpGet", "tcpSocket"] {
        let Some(action) = handler.field(kind) else {
            continue;
        };
        out.one_of(&action, "scheme", &["HTTP", "HTTPS"]);
        let Some(port) = action.field("port") else {
            continue;
        };
        match port.node.as_str() {
            Some(name) if !NameRule::Port.fits(name) => {
                out.add(Fault::Name, &port, NameRule::Port.to_string());
            }
            Some(name) if !has_port(container, name) => {
                let message = format!("the container has no port `{name}`");
                out.add(Fault::Reference, &port, message);
            }
            _ => out.within(&action, "port", PORTS),
        }
    }
}

fn has_port(container: &Spot<'_>, name: &str) -> bool {
    container
        .items("ports")
        .any(|port| port.node.get("name").and_then(Node::as_str) == Some(name))
}
