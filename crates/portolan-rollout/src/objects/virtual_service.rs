//! Istio's `VirtualService`: an own one, one that the user wrote into the spec, or one that exists.
//!
//! All three are split the same way. In a route that leads to the application, or to its slots since the last time, that
//! destination becomes a weighted pair. Requests that match and requests with a cookie get routes of their own before it.
//! All else stays as it is, so that fields that are not known here survive.

use serde_json::{Value, json};

use super::put::put;
use super::{App, cookie, revision_in};
use crate::slot::Slot;
use crate::spec::{RequestMatch, TextMatch};
use crate::status::Status;
use crate::traffic::Traffic;

/// The start of the names of routes that are put before those of the user.
pub(super) const ADDED: &str = "portolan-";

/// Where a destination or a route adds a cookie to answers.
const SET_COOKIE: [&str; 4] = ["headers", "response", "add", "Set-Cookie"];

/// Returns the `VirtualService` of an application; `None` while there is nothing to route to, or if the user's own is
/// changed instead.
pub fn virtual_service(app: &App<'_>, status: &Status) -> Option<Value> {
    status.traffic?;
    if app.spec.virtual_service_ref.is_some() {
        return None;
    }
    let mut object = whole_virtual_service(app);
    split_routes(app, status, &mut object["spec"], &[]);
    Some(object)
}

/// Returns the `VirtualService` of an application whose routes all lead to its own Service.
pub fn whole_virtual_service(app: &App<'_>) -> Value {
    let users = app.spec.virtual_service.clone();
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": app.metadata(app.name),
        "spec": users.unwrap_or_else(|| own_spec(app)),
    })
}

/// The spec of a `VirtualService` that sends every request to the application.
fn own_spec(app: &App<'_>) -> Value {
    let service = &app.spec.service;
    let destination = json!({"host": app.name, "port": {"number": service.port}});
    let mut route = json!({"name": "primary", "route": [{"destination": destination}]});
    if let Some(timeout) = &service.timeout {
        route["timeout"] = json!(timeout);
    }
    if let Some(retries) = &service.retries {
        route["retries"] = retries.clone();
    }
    let mut spec = json!({"http": [route]});
    if !service.delegate {
        let own = std::iter::once(app.name);
        let hosts: Vec<&str> = own
            .chain(service.hosts.iter().map(String::as_str))
            .collect();
        spec["hosts"] = json!(hosts);
        if !service.gateways.is_empty() {
            // Named gateways replace the default, which is the mesh.
            let mesh = std::iter::once("mesh");
            let gateways: Vec<&str> = mesh
                .chain(service.gateways.iter().map(String::as_str))
                .collect();
            spec["gateways"] = json!(gateways);
        }
    }
    spec
}

/// Splits the routes of a `VirtualService`'s spec as the status says; of those with a name in `only` if that is not
/// empty. Doing it again changes nothing.
pub fn split_routes(app: &App<'_>, status: &Status, spec: &mut Value, only: &[String]) {
    let Some(traffic) = status.traffic else {
        return;
    };
    for kind in ["tcp", "tls"] {
        for route in items(spec, kind) {
            if is_meant(route, only) {
                split_destinations(app, traffic, route);
            }
        }
    }
    let Some(http) = spec.get_mut("http").and_then(Value::as_array_mut) else {
        return;
    };
    let mut routes = Vec::new();
    for mut route in std::mem::take(http) {
        if is_added(&route) {
            continue;
        }
        if is_meant(&route, only) && leads_here(app, &route) {
            routes.extend(routes_before(app, status, traffic, &route));
            split_destinations(app, traffic, &mut route);
            mirror(app, traffic, &mut route);
            give_cookie(app, status, traffic, &mut route);
        }
        routes.push(route);
    }
    *http = routes;
}

/// Makes routes that were split lead to the application's own Service again, as they were before.
pub fn join_routes(app: &App<'_>, spec: &mut Value) {
    if let Some(http) = spec.get_mut("http").and_then(Value::as_array_mut) {
        http.retain(|route| !is_added(route));
    }
    for kind in ["http", "tcp", "tls"] {
        for route in items(spec, kind) {
            if !leads_here(app, route) {
                continue;
            }
            if let Some(destinations) = route.get_mut("route").and_then(Value::as_array_mut) {
                join_destinations(app, destinations);
            }
            forget_mirrors(app, route);
        }
    }
}

/// Requests that match, and requests with a cookie, in the order in which they are tried.
fn routes_before(app: &App<'_>, status: &Status, traffic: Traffic, route: &Value) -> Vec<Value> {
    let strategy = app.strategy(status);
    let mut before = Vec::new();
    if let Some(slot) = traffic.matched {
        let matches: Vec<Value> = strategy.matches.iter().map(istio_match).collect();
        before.push(route_to(app, Traffic::only(slot), route, "match", &matches));
    }
    let Some(sticky) = &strategy.sticky_sessions else {
        return before;
    };
    let with_cookie = |expression: String| json!({"headers": {"cookie": {"regex": expression}}});
    match traffic.sticky {
        Some(slot) => {
            if let Some(revision) = revision_in(status, slot) {
                let expression = cookie::has_cookie(&sticky.cookie_name, revision.as_str());
                let matches = [with_cookie(expression)];
                before.push(route_to(
                    app,
                    Traffic::only(slot),
                    route,
                    "sticky",
                    &matches,
                ));
            }
        }
        None => {
            let expression = cookie::has_any_cookie(&sticky.cookie_name);
            let mut end = route_to(app, traffic, route, "unstick", &[with_cookie(expression)]);
            put(&mut end, &SET_COOKIE, json!(cookie::expire(sticky)));
            before.push(end);
        }
    }
    before
}

/// A copy of a route with another split, for requests that match both what the route and what `matches` say.
fn route_to(
    app: &App<'_>,
    traffic: Traffic,
    route: &Value,
    what: &str,
    matches: &[Value],
) -> Value {
    let mut copy = route.clone();
    let name = route.get("name").and_then(Value::as_str).unwrap_or("route");
    put(&mut copy, &["name"], json!(format!("{ADDED}{what}-{name}")));
    let of_user = route.get("match").and_then(Value::as_array);
    let of_user = of_user.cloned().unwrap_or_else(|| vec![json!({})]);
    let both: Vec<Value> = of_user
        .iter()
        .flat_map(|one| matches.iter().map(|other| merged(one, other)))
        .collect();
    put(&mut copy, &["match"], json!(both));
    split_destinations(app, traffic, &mut copy);
    forget_mirrors(app, &mut copy);
    if let Some(destinations) = copy.get_mut("route").and_then(Value::as_array_mut) {
        destinations.retain(|entry| entry.get("weight").and_then(Value::as_u64) != Some(0));
        for entry in destinations {
            forget_cookie(app, entry);
        }
    }
    copy
}

/// A match that asks for all that two matches ask for.
fn merged(one: &Value, other: &Value) -> Value {
    let mut both = one.clone();
    let headers = other.get("headers").and_then(Value::as_object);
    for (name, wanted) in headers.into_iter().flatten() {
        put(&mut both, &["headers", name], wanted.clone());
    }
    both
}

fn istio_match(request: &RequestMatch) -> Value {
    let mut headers = serde_json::Map::new();
    for (name, text) in &request.headers {
        // Envoy compares names of headers in lower case.
        headers.insert(name.to_lowercase(), istio_text(text));
    }
    if let Some(wanted) = &request.cookie {
        let expression = cookie::has_cookie(&wanted.name, &wanted.value);
        headers.insert("cookie".to_owned(), json!({"regex": expression}));
    }
    json!({"headers": headers})
}

fn istio_text(text: &TextMatch) -> Value {
    match text {
        TextMatch {
            exact: Some(exact), ..
        } => json!({"exact": exact}),
        TextMatch {
            prefix: Some(prefix),
            ..
        } => json!({"prefix": prefix}),
        TextMatch { regex, .. } => json!({"regex": regex.as_deref().unwrap_or(".*")}),
    }
}

/// Replaces the destination that is the application by its two slots, with their shares of its weight.
fn split_destinations(app: &App<'_>, traffic: Traffic, route: &mut Value) {
    let Some(destinations) = route.get_mut("route").and_then(Value::as_array_mut) else {
        return;
    };
    join_destinations(app, destinations);
    let is_alone = destinations.len() == 1;
    let mut split = Vec::new();
    for entry in std::mem::take(destinations) {
        // Weights are relative: of several destinations, each counts a hundred times what it did.
        let weight = if is_alone { 1 } else { weight_of(&entry) };
        if !is_host(&entry, app, &[app.name.to_owned()]) {
            let mut entry = entry;
            put(&mut entry, &["weight"], json!(weight.saturating_mul(100)));
            split.push(entry);
            continue;
        }
        for slot in Slot::BOTH {
            let mut part = entry.clone();
            let weight = weight.saturating_mul(u64::from(traffic.share(slot)));
            put(
                &mut part,
                &["destination", "host"],
                json!(app.slot_name(slot)),
            );
            put(&mut part, &["weight"], json!(weight));
            split.push(part);
        }
    }
    *destinations = split;
}

/// Makes one destination of the application and its slots, which leads to the application.
fn join_destinations(app: &App<'_>, destinations: &mut Vec<Value>) {
    let slots = Slot::BOTH.map(|slot| app.slot_name(slot));
    let (parts, others): (Vec<Value>, Vec<Value>) = std::mem::take(destinations)
        .into_iter()
        .partition(|entry| is_host(entry, app, &slots));
    let is_split = !parts.is_empty();
    *destinations = others;
    if let Some(mut joined) = parts.first().cloned() {
        let weight: u64 = parts.iter().map(weight_of).fold(0, u64::saturating_add);
        put(&mut joined, &["destination", "host"], json!(app.name));
        put(&mut joined, &["weight"], json!(weight / 100));
        forget_cookie(app, &mut joined);
        for other in destinations.iter_mut() {
            let weight = weight_of(other) / 100;
            put(other, &["weight"], json!(weight));
        }
        destinations.insert(0, joined);
    }
    let alone = match destinations.as_mut_slice() {
        [alone] if is_split => alone.as_object_mut(),
        _ => None,
    };
    if let Some(fields) = alone {
        fields.remove("weight");
    }
}

fn mirror(app: &App<'_>, traffic: Traffic, route: &mut Value) {
    forget_mirrors(app, route);
    if let Some(mirror) = traffic.mirror {
        let port = app.spec.service.port;
        let destination = json!({"host": app.slot_name(mirror.slot), "port": {"number": port}});
        let copies = json!([{"destination": destination, "percentage": {"value": mirror.percent}}]);
        put(route, &["mirrors"], copies);
    }
}

/// Takes the copies away that go to a slot.
fn forget_mirrors(app: &App<'_>, route: &mut Value) {
    let is_ours = route
        .get("mirrors")
        .is_some_and(|mirrors| mirrors_here(app, mirrors));
    if let Some(fields) = route.as_object_mut().filter(|_| is_ours) {
        fields.remove("mirrors");
    }
}

/// Makes answers of the slot that keeps its clients give them a cookie.
fn give_cookie(app: &App<'_>, status: &Status, traffic: Traffic, route: &mut Value) {
    let strategy = app.strategy(status);
    let sticky = strategy.sticky_sessions.as_ref();
    let Some((sticky, slot)) = sticky.zip(traffic.sticky) else {
        return;
    };
    let Some(revision) = revision_in(status, slot) else {
        return;
    };
    let destinations = route.get_mut("route").and_then(Value::as_array_mut);
    for entry in destinations.into_iter().flatten() {
        if is_host(entry, app, &[app.slot_name(slot)]) {
            let header = cookie::keep(sticky, revision.as_str());
            put(entry, &SET_COOKIE, json!(header));
        }
    }
}

/// Takes the cookie from a destination that [`give_cookie`] gave it to.
fn forget_cookie(app: &App<'_>, entry: &mut Value) {
    if app.spec.strategy.sticky_sessions.is_none() {
        return;
    }
    for (at, key) in [
        ("/headers/response/add", "Set-Cookie"),
        ("/headers/response", "add"),
        ("/headers", "response"),
        ("", "headers"),
    ] {
        let Some(fields) = entry.pointer_mut(at).and_then(Value::as_object_mut) else {
            continue;
        };
        let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
        if fields.get(key).is_some_and(is_empty) {
            fields.remove(key);
        }
    }
}

fn mirrors_here(app: &App<'_>, mirrors: &Value) -> bool {
    let slots = Slot::BOTH.map(|slot| app.slot_name(slot));
    let mirrors = mirrors.as_array();
    mirrors.is_some_and(|mirrors| mirrors.iter().any(|mirror| is_host(mirror, app, &slots)))
}

/// Returns whether a route has the application or one of its slots as a destination.
fn leads_here(app: &App<'_>, route: &Value) -> bool {
    !destinations_here(app, route).is_empty()
}

/// Returns the destinations of a route that are the application (`None`) or one of its slots, with their weights.
pub(super) fn destinations_here(app: &App<'_>, route: &Value) -> Vec<(Option<Slot>, u64)> {
    let destinations = route.get("route").and_then(Value::as_array);
    let destinations = destinations.into_iter().flatten();
    destinations
        .filter_map(|entry| {
            let is = |name: String| is_host(entry, app, &[name]);
            let slot = Slot::BOTH.into_iter().find(|slot| is(app.slot_name(*slot)));
            (slot.is_some() || is(app.name.to_owned())).then(|| (slot, weight_of(entry)))
        })
        .collect()
}

/// Returns whether the host of a destination is one of these Services, however it is written.
fn is_host(entry: &Value, app: &App<'_>, names: &[String]) -> bool {
    let Some(host) = entry.pointer("/destination/host").and_then(Value::as_str) else {
        return false;
    };
    let in_namespace = format!(".{}", app.namespace);
    let host = host.strip_suffix(".svc.cluster.local").unwrap_or(host);
    let host = host.strip_suffix(".svc").unwrap_or(host);
    let host = host.strip_suffix(&in_namespace).unwrap_or(host);
    names.iter().any(|name| name == host)
}

fn is_meant(route: &Value, only: &[String]) -> bool {
    let name = route.get("name").and_then(Value::as_str);
    only.is_empty() || name.is_some_and(|name| only.iter().any(|only| only == name))
}

fn is_added(route: &Value) -> bool {
    let name = route.get("name").and_then(Value::as_str);
    name.is_some_and(|name| name.starts_with(ADDED))
}

fn weight_of(entry: &Value) -> u64 {
    entry.get("weight").and_then(Value::as_u64).unwrap_or(0)
}

/// The routes of a kind; none if there is no such list.
fn items<'a>(spec: &'a mut Value, kind: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = spec.get_mut(kind).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}
