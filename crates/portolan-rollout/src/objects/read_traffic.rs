//! Reads out of routes how they split requests, to see whether somebody changed them.

use serde_json::Value;

use super::App;
use super::virtual_service::{ADDED, destinations_here};
use crate::slot::Slot;
use crate::spec::Provider;
use crate::traffic::{Mirror, Traffic};

/// Returns how the spec of a `VirtualService` or `HTTPRoute` splits requests. `None` if it does not split them between the
/// slots, or not all of its routes in the same way.
pub fn read_traffic(app: &App<'_>, spec: &Value) -> Option<Traffic> {
    let (field, provider) = match app.spec.routing.provider {
        Provider::Istio => ("http", Provider::Istio),
        Provider::GatewayApi => ("rules", Provider::GatewayApi),
    };
    let routes = spec.get(field)?.as_array()?;
    let is_added = |route: &&Value| added(route).is_some();
    let only = app.spec.virtual_service_ref.as_ref();
    let only = only.map(|only| only.routes.as_slice()).unwrap_or_default();
    let is_meant = |route: &&Value| {
        let name = route.get("name").and_then(Value::as_str);
        only.is_empty() || name.is_some_and(|name| only.iter().any(|only| only == name))
    };
    let primary = routes
        .iter()
        .filter(|route| !is_added(route) && is_meant(route));
    let primary = primary.map(|route| (route, destinations_of(app, route, provider)));
    let mut primary = primary.filter(|(_, destinations)| !destinations.is_empty());
    let (route, destinations) = primary.next()?;
    let mut traffic = split_of(app, route, provider, &destinations)?;
    if primary.any(|(route, other)| split_of(app, route, provider, &other) != Some(traffic)) {
        return None;
    }
    for route in routes.iter().filter(is_added) {
        match added(route)? {
            "match" => traffic.matched = Some(target_of(app, route, provider)?),
            "sticky" => traffic.sticky = Some(target_of(app, route, provider)?),
            _ => {}
        }
    }
    Some(traffic)
}

/// What a route that was put before the user's is for.
fn added(route: &Value) -> Option<&str> {
    let name = route.get("name").and_then(Value::as_str)?;
    let what = name.strip_prefix(ADDED)?;
    let what = what.split('-').next()?;
    ["match", "sticky", "unstick"]
        .into_iter()
        .find(|known| *known == what)
}

/// How one route splits requests; `None` if not between the slots.
fn split_of(
    app: &App<'_>,
    route: &Value,
    provider: Provider,
    destinations: &[(Option<Slot>, u64)],
) -> Option<Traffic> {
    let weight = |slot: Slot| {
        let of_slot = destinations.iter().filter(|(to, _)| *to == Some(slot));
        of_slot
            .map(|(_, weight)| *weight)
            .fold(0, u64::saturating_add)
    };
    let (a, b) = (weight(Slot::A), weight(Slot::B));
    let leads_past = destinations.iter().any(|(to, _)| to.is_none());
    let total = a.checked_add(b).filter(|total| *total > 0 && !leads_past)?;
    let share = (b.saturating_mul(100) / total).min(100) as u8;
    Some(Traffic {
        mirror: mirror_of(app, route, provider),
        ..Traffic::split(Slot::B, share)
    })
}

/// The destinations of a route that are the application (`None`) or its slots, with their weights.
fn destinations_of(app: &App<'_>, route: &Value, provider: Provider) -> Vec<(Option<Slot>, u64)> {
    if provider == Provider::Istio {
        return destinations_here(app, route);
    }
    let backends = route.get("backendRefs").and_then(Value::as_array);
    let backends = backends.into_iter().flatten();
    backends
        .filter_map(|backend| {
            let slot = slot_named(app, backend.get("name")?.as_str()?)?;
            let weight = backend.get("weight").map_or(Some(1), Value::as_u64)?;
            Some((Some(slot), weight))
        })
        .collect()
}

/// The only slot that a route leads to.
fn target_of(app: &App<'_>, route: &Value, provider: Provider) -> Option<Slot> {
    match destinations_of(app, route, provider).as_slice() {
        [(slot, _)] => *slot,
        _ => None,
    }
}

fn mirror_of(app: &App<'_>, route: &Value, provider: Provider) -> Option<Mirror> {
    let (name, percent) = match provider {
        Provider::Istio => {
            let mirror = route.pointer("/mirrors/0")?;
            (
                mirror.pointer("/destination/host")?,
                mirror.pointer("/percentage/value")?,
            )
        }
        Provider::GatewayApi => {
            let mirror = route.pointer("/filters/0/requestMirror")?;
            (mirror.pointer("/backendRef/name")?, mirror.get("percent")?)
        }
    };
    Some(Mirror {
        slot: slot_named(app, name.as_str()?)?,
        percent: percent.as_f64()?.round() as u8,
    })
}

fn slot_named(app: &App<'_>, name: &str) -> Option<Slot> {
    Slot::BOTH
        .into_iter()
        .find(|slot| app.slot_name(*slot) == name)
}
