//! Whether an object already says what is to be applied.

use serde_json::Value;

/// Returns whether an object says what is wanted. Selectors and Istio's routes mean something else with every field that
/// somebody adds, so they are compared whole; elsewhere, what else is there belongs to others.
pub(crate) fn says(there: &Value, wanted: &Value) -> bool {
    let is_istio = wanted["apiVersion"]
        .as_str()
        .is_some_and(|version| version.starts_with("networking.istio.io/"));
    let same = |pointer: &str| there.pointer(pointer) == wanted.pointer(pointer);
    let is_exact = match wanted["kind"].as_str() {
        Some("Service") => same("/spec/selector"),
        _ if is_istio => same("/spec"),
        Some("HTTPRoute") => count(there, "/spec/rules") == count(wanted, "/spec/rules"),
        _ => true,
    };
    is_exact && contains(there, wanted)
}

fn count(object: &Value, pointer: &str) -> usize {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map_or(0, Vec::len)
}

/// Returns whether everything that is wanted is there. What else is there belongs to others: defaults, and fields of other
/// managers.
fn contains(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (_, Value::Null) => true,
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            there
                .get(key)
                .map_or(is_nothing(wanted), |there| contains(there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) if is_of_maps(wanted) => {
            // In some lists others may have entries of their own.
            there.len() >= wanted.len()
                && wanted
                    .iter()
                    .all(|wanted| there.iter().any(|there| contains(there, wanted)))
        }
        (Value::Number(there), Value::Number(wanted)) => there.as_f64() == wanted.as_f64(),
        _ => there == wanted,
    }
}

/// An API server leaves out what is empty.
fn is_nothing(wanted: &Value) -> bool {
    match wanted {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

fn is_of_maps(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_fields_of_others_do_not_matter() {
        let there = json!({"spec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "other", "port": 81}],
            "selector": {"a": "b"}, "clusterIP": "10.0.0.1",
        }});
        for wanted in [
            json!({"spec": {"ports": [{"name": "http", "port": 80}]}}),
            json!({"spec": {"selector": {"a": "b"}, "nothing": {}, "none": null}}),
            json!({"spec": {"ports": [{"port": 81.0}]}}),
        ] {
            assert!(contains(&there, &wanted), "{wanted}");
        }
        for wanted in [
            json!({"spec": {"ports": [{"name": "http", "port": 8080}]}}),
            json!({"spec": {"selector": {"a": "c"}}}),
            json!({"spec": {"selector": {"c": "d"}}}),
            json!({"spec": {"ports": "http"}}),
        ] {
            assert!(!contains(&there, &wanted), "{wanted}");
        }
    }

    #[test]
    fn what_is_added_to_a_selector_or_to_routes_is_seen() {
        let service = |selector: Value| json!({"kind": "Service", "spec": {"selector": selector}});
        let wanted = service(json!({"slot": "a"}));
        assert!(says(&service(json!({"slot": "a"})), &wanted));
        assert!(!says(
            &service(json!({"slot": "a", "app": "other"})),
            &wanted
        ));
        let routes = |route: Value| json!({"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": {"http": [route]}});
        let wanted = routes(json!({"name": "web"}));
        assert!(says(&wanted, &wanted));
        assert!(!says(
            &routes(json!({"name": "web", "fault": {"abort": {}}})),
            &wanted
        ));
    }

    #[test]
    fn a_weight_of_zero_that_is_left_out_is_there() {
        let wanted = json!({"weight": 0});
        assert!(contains(&json!({}), &wanted));
        assert!(!contains(&json!({"weight": 5}), &wanted));
    }
}
