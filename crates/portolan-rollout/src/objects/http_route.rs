//! Gateway API's `HTTPRoute`.

use serde_json::{Value, json};

use super::{App, cookie, revision_in};
use crate::slot::Slot;
use crate::spec::{RequestMatch, Strategy, TextMatch};
use crate::status::Status;
use crate::traffic::Traffic;

/// Returns the `HTTPRoute` of an application; `None` while there is nothing to route to.
pub fn http_route(app: &App<'_>, status: &Status) -> Option<Value> {
    let traffic = status.traffic?;
    let strategy = app.strategy(status);
    let mut rules = Vec::new();
    if let Some(slot) = traffic.matched {
        let matches: Vec<Value> = strategy.matches.iter().map(route_match).collect();
        rules.push(rule_to(app, "match", Traffic::only(slot), &matches));
    }
    rules.extend(sticky_rule(app, status, strategy, traffic));
    rules.push(primary_rule(app, status, strategy, traffic));
    Some(route_of(app, &rules))
}

/// Returns the `HTTPRoute` of an application that leads to its own Service.
pub fn whole_http_route(app: &App<'_>) -> Value {
    let backend = json!({"name": app.name, "port": app.spec.service.port, "weight": 1});
    let rule = json!({
        "name": "portolan-primary",
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [backend],
    });
    route_of(app, &[with_timeout(app, rule)])
}

fn route_of(app: &App<'_>, rules: &[Value]) -> Value {
    let mut spec = json!({"parentRefs": parents(app), "rules": rules});
    let is_mesh = app.spec.routing.parent_refs.is_empty();
    if !is_mesh && !app.spec.service.hosts.is_empty() {
        spec["hostnames"] = json!(app.spec.service.hosts);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": app.metadata(app.name),
        "spec": spec,
    })
}

/// What the route belongs to: the application's own Service in a mesh, unless the user names Gateways.
fn parents(app: &App<'_>) -> Value {
    let parents = &app.spec.routing.parent_refs;
    if parents.is_empty() {
        let port = app.spec.service.port;
        return json!([{"group": "", "kind": "Service", "name": app.name, "port": port}]);
    }
    json!(parents)
}

fn primary_rule(app: &App<'_>, status: &Status, strategy: &Strategy, traffic: Traffic) -> Value {
    let backends = Slot::BOTH.map(|slot| {
        let mut backend = backend(app, slot);
        // A weight that is left out is one, not zero.
        backend["weight"] = json!(traffic.share(slot));
        let revision = revision_in(status, slot);
        let sticky = strategy
            .sticky_sessions
            .as_ref()
            .filter(|_| traffic.sticky == Some(slot));
        if let Some((sticky, revision)) = sticky.zip(revision) {
            backend["filters"] = json!([set_cookie(&cookie::keep(sticky, revision.as_str()))]);
        }
        backend
    });
    let mut rule = json!({
        "name": "portolan-primary",
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": backends,
    });
    if let Some(mirror) = traffic.mirror {
        rule["filters"] = json!([{
            "type": "RequestMirror",
            "requestMirror": {"backendRef": backend(app, mirror.slot), "percent": mirror.percent},
        }]);
    }
    with_timeout(app, rule)
}

/// A rule for requests with the cookie of the new revision, or one that takes the cookie away when that is over.
fn sticky_rule(
    app: &App<'_>,
    status: &Status,
    strategy: &Strategy,
    traffic: Traffic,
) -> Option<Value> {
    let sticky = strategy.sticky_sessions.as_ref()?;
    let with_cookie = |expression: String| json!({"headers": [{"type": "RegularExpression", "name": "cookie", "value": expression}]});
    if let Some(slot) = traffic.sticky {
        let revision = revision_in(status, slot)?;
        let expression = cookie::has_cookie(&sticky.cookie_name, revision.as_str());
        let matches = [with_cookie(expression)];
        return Some(rule_to(app, "sticky", Traffic::only(slot), &matches));
    }
    let expression = cookie::has_any_cookie(&sticky.cookie_name);
    let mut rule = rule_to(app, "unstick", traffic, &[with_cookie(expression)]);
    rule["filters"] = json!([set_cookie(&cookie::expire(sticky))]);
    Some(rule)
}

fn rule_to(app: &App<'_>, what: &str, traffic: Traffic, matches: &[Value]) -> Value {
    let reached = Slot::BOTH
        .into_iter()
        .filter(|slot| traffic.share(*slot) > 0);
    let backends: Vec<Value> = reached
        .map(|slot| {
            let mut backend = backend(app, slot);
            backend["weight"] = json!(traffic.share(slot));
            backend
        })
        .collect();
    let rule = json!({
        "name": format!("portolan-{what}"),
        "matches": matches,
        "backendRefs": backends,
    });
    with_timeout(app, rule)
}

fn with_timeout(app: &App<'_>, mut rule: Value) -> Value {
    if let Some(timeout) = &app.spec.service.timeout {
        rule["timeouts"] = json!({"request": timeout});
    }
    rule
}

fn backend(app: &App<'_>, slot: Slot) -> Value {
    json!({"name": app.slot_name(slot), "port": app.spec.service.port})
}

fn set_cookie(header: &str) -> Value {
    let add = json!([{"name": "Set-Cookie", "value": header}]);
    json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": add}})
}

fn route_match(request: &RequestMatch) -> Value {
    let headers = request.headers.iter().map(|(name, text)| {
        let (kind, value) = route_text(text);
        json!({"type": kind, "name": name, "value": value})
    });
    let with_cookie = request.cookie.iter().map(|wanted| {
        let value = cookie::has_cookie(&wanted.name, &wanted.value);
        json!({"type": "RegularExpression", "name": "cookie", "value": value})
    });
    let headers: Vec<Value> = headers.chain(with_cookie).collect();
    json!({"headers": headers})
}

/// How the Gateway API compares a text; it has no prefix for headers.
fn route_text(text: &TextMatch) -> (&'static str, String) {
    match text {
        TextMatch {
            exact: Some(exact), ..
        } => ("Exact", exact.clone()),
        TextMatch {
            prefix: Some(prefix),
            ..
        } => (
            "RegularExpression",
            format!("{}.*", cookie::escaped(prefix)),
        ),
        TextMatch { regex, .. } => (
            "RegularExpression",
            regex.clone().unwrap_or_else(|| ".*".to_owned()),
        ),
    }
}
