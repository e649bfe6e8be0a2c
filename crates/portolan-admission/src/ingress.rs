//! Ingresses and network policies: what reaches Services from outside.

use std::net::IpAddr;

use portolan_object::NameRule;
use portolan_schema::is_cidr;

use crate::placement;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    if !spec.has_items("rules") && spec.field("defaultBackend").is_none() {
        let message = "needs `rules` or `defaultBackend`";
        out.add(Fault::Conflict, &spec, message);
    }
    if let Some(backend) = spec.field("defaultBackend") {
        backed(&backend, out);
    }
    for rule in spec.items("rules") {
        host(&rule, out);
        let Some(http) = rule.field("http") else {
            continue;
        };
        for route in http.items("paths") {
            path(&route, out);
            if let Some(backend) = route.field("backend") {
                backed(&backend, out);
            }
        }
    }
}

fn host(rule: &Spot<'_>, out: &mut Refusals) {
    let Some(host) = rule.field("host") else {
        return;
    };
    // A variable left in a host is one whose Secret is not at hand, which is told elsewhere.
    let is_told = |text: &&str| !text.is_empty() && !text.contains("${");
    let Some(text) = host.node.as_str().filter(is_told) else {
        return;
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.parse::<IpAddr>().is_ok() {
        out.add(Fault::Name, &host, "must be a name, not an address");
    } else if !NameRule::Subdomain.fits(name) {
        out.add(Fault::Name, &host, NameRule::Subdomain.to_string());
    }
}

fn path(route: &Spot<'_>, out: &mut Refusals) {
    out.one_of(
        route,
        "pathType",
        &["Exact", "ImplementationSpecific", "Prefix"],
    );
    let rooted = matches!(route.text("pathType"), Some("Exact" | "Prefix"));
    match route.field("path") {
        Some(path) if path.node.as_str().is_some_and(|path| !path.is_empty()) => {
            let text = path.node.as_str().unwrap_or_default();
            if !text.starts_with('/') {
                out.add(Fault::Value, &path, "must begin with `/`");
            } else if rooted
                && ["//", "/./", "/../", "%2f", "%2F"]
                    .iter()
                    .any(|part| text.contains(part))
            {
                out.add(
                    Fault::Value,
                    &path,
                    "must not contain `//`, `/./`, `/../` or `%2f`",
                );
            }
        }
        _ if rooted => out.missing(route, "path"),
        _ => {}
    }
}

fn backed(backend: &Spot<'_>, out: &mut Refusals) {
    out.exactly_one(backend, &["service", "resource"]);
    let Some(service) = backend.field("service") else {
        return;
    };
    match service.field("port") {
        Some(port) => {
            let numbered = port.number("number").is_some_and(|number| number != 0);
            let named = port.text("name").is_some_and(|name| !name.is_empty());
            if numbered && named {
                out.at_most_one(&port, &["name", "number"]);
            } else if !numbered && !named {
                out.exactly_one(&port, &["name", "number"]);
            }
            out.within(&port, "number", 1..=65_535);
        }
        None => out.missing(&service, "port"),
    }
}

pub(crate) fn check_policy(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    placement::selector(&spec, "podSelector", out);
    for kind in spec.items("policyTypes") {
        if !matches!(kind.node.as_str(), None | Some("Ingress" | "Egress")) {
            out.add(Fault::Value, &kind, "must be `Ingress` or `Egress`");
        }
    }
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.items(rules) {
            for peer in rule.items(peers) {
                self::peer(&peer, out);
            }
            for port in rule.items("ports") {
                out.one_of(&port, "protocol", &["TCP", "UDP", "SCTP"]);
                out.within(&port, "port", 1..=65_535);
            }
        }
    }
}

fn peer(peer: &Spot<'_>, out: &mut Refusals) {
    let Some(block) = peer.field("ipBlock") else {
        return;
    };
    for other in ["podSelector", "namespaceSelector"] {
        out.at_most_one(peer, &["ipBlock", other]);
    }
    if let Some(range) = block.field("cidr")
        && range.node.as_str().is_some_and(|text| !is_cidr(text))
    {
        out.add(
            Fault::Value,
            &range,
            "must be an address range like `10.0.0.0/8`",
        );
    }
}
