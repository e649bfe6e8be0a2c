//! The definition of the kind: what it accepts, what it refuses, and that it has the fields of the types.

mod samples;

use std::collections::BTreeSet;

use portolan_object::{KubeVersion, Object, Origin};
use portolan_rollout::{Analysis, Spec, analysis_crds_yaml, crd_yaml};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Node, parse_one};
use samples::{bad_specs, good_specs, smallest};
use serde_json::{Value, json};

fn node(text: &str) -> Node {
    parse_one(text, Dialect::Helm).expect("YAML")
}

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    catalogue.define(&node(crd_yaml()));
    catalogue
}

/// What the definition says against an object, one message a line.
fn refusals(catalogue: &Catalogue, name: &str, spec: &Value) -> String {
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "IstioCanaryDeployment",
        "metadata": {"name": name},
        "spec": spec,
    });
    let object = Object::new(node(&object.to_string()), Origin::default()).expect("an object");
    let Verdict::Checked(violations) = catalogue.check(&object) else {
        unreachable!("the kind is defined");
    };
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn good_objects_are_accepted() {
    let catalogue = catalogue();
    for spec in good_specs() {
        assert_eq!(refusals(&catalogue, "web", &spec), "", "{spec}");
    }
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(list) => (0..).map(|i: usize| i.to_string()).zip(list).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        let at = format!("{at}/{key}");
        found.push(at.clone());
        // What belongs to others is passed on as it is.
        let is_opaque = [
            "template",
            "trafficPolicy",
            "retries",
            "virtualService",
            "behavior",
        ];
        if !is_opaque.contains(&key.as_str()) {
            places(value, &at, found);
        }
    }
}

/// Something of a type that the field cannot have.
fn wrong(value: &Value) -> Value {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => json!({"wrong": []}),
        _ => json!("wrong"),
    }
}

#[test]
fn every_field_of_the_wrong_type_is_refused() {
    let catalogue = catalogue();
    let mut tried = 0;
    for spec in good_specs() {
        let mut found = Vec::new();
        places(&spec, "", &mut found);
        for place in found {
            let mut bad = spec.clone();
            let field = bad.pointer_mut(&place).expect("a place");
            *field = wrong(field);
            let is_foreign = place.contains("/autoscaling/metrics/0/")
                || place.contains("/triggers/0/")
                || place.ends_with("/namespace");
            assert_eq!(
                refusals(&catalogue, "web", &bad).is_empty(),
                is_foreign,
                "{place} in {bad}"
            );
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried} fields");
}

#[test]
fn values_out_of_range_are_refused_with_what_to_do() {
    let catalogue = catalogue();
    let mut told = Vec::new();
    for (what, spec) in bad_specs() {
        let refused = refusals(&catalogue, "web", &spec);
        assert_ne!(refused, "", "{what}");
        told.push(format!("{what}\n  {}", refused.replace('\n', "\n  ")));
    }
    insta::assert_snapshot!("refused", told.join("\n"));
}

#[test]
fn names_that_no_service_can_have_are_refused() {
    let catalogue = catalogue();
    for name in ["9lives", "a.b", &"n".repeat(51)] {
        assert_ne!(refusals(&catalogue, name, &smallest()), "", "{name}");
    }
}

/// The paths of the fields that a schema declares, without what belongs to others.
fn declared(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Some(items) = schema.get("items") {
        declared(items, at, found);
    }
    if let Some(items) = schema.get("additionalProperties") {
        found.insert(format!("{at}.*"));
        declared(items, &format!("{at}.*"), found);
    }
    let is_opaque = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    let properties = schema.get("properties").filter(|_| !is_opaque);
    for (key, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{at}.{key}");
        found.insert(at.clone());
        declared(schema, &at, found);
    }
}

/// The paths of the fields of a value.
fn written(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = if at.ends_with(".headers") { "*" } else { key };
                let at = format!("{at}.{key}");
                found.insert(at.clone());
                written(value, &at, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| written(value, at, found)),
        _ => {}
    }
}

/// Reads each good object into the types and writes it again: what comes out has every field that the definition
/// declares, so neither has a field that the other lacks.
#[test]
fn the_definition_and_the_types_have_the_same_fields() {
    let definition = node(crd_yaml());
    let json: Value =
        serde_json::from_str(&portolan_yaml::to_json(&definition).expect("JSON")).expect("JSON");
    let spec = &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut in_definition = BTreeSet::new();
    declared(spec, "", &mut in_definition);
    let mut in_types = BTreeSet::new();
    for good in good_specs() {
        let spec: Spec = serde_json::from_value(good.clone()).expect("a spec");
        let again = serde_json::to_value(&spec).expect("JSON");
        assert_eq!(
            serde_json::from_value::<Spec>(again.clone()).expect("a spec"),
            spec
        );
        written(&again, "", &mut in_types);
    }
    in_types.retain(|path| {
        let below = |opaque: &str| path.starts_with(&format!("{opaque}."));
        ![
            ".template",
            ".virtualService",
            ".service.trafficPolicy",
            ".service.retries",
            ".routing.parentRefs",
            ".autoscaling.metrics",
            ".autoscaling.triggers",
        ]
        .into_iter()
        .any(below)
    });
    in_definition.remove(".routing.parentRefs.name");
    assert_eq!(in_types, in_definition);
}

fn json_of(text: &str) -> Value {
    let json = portolan_yaml::to_json(&node(text)).expect("JSON");
    serde_json::from_str(&json).expect("JSON")
}

fn spec_schema(definition: &Value) -> Value {
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// An analysis that is referred to is what could stand in its place, but for a reference of its own.
#[test]
fn analyses_of_their_own_have_the_schema_of_those_in_place() {
    let mut in_place = spec_schema(&json_of(crd_yaml()))["properties"]["analysis"].clone();
    in_place["properties"]
        .as_object_mut()
        .expect("properties")
        .remove("ref");
    let rules = in_place["x-kubernetes-validations"]
        .as_array_mut()
        .expect("rules");
    rules.retain(|rule| !rule["rule"].to_string().contains("self.ref"));
    for text in analysis_crds_yaml() {
        assert_eq!(spec_schema(&json_of(text)), in_place);
    }
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 36));
    for text in analysis_crds_yaml() {
        catalogue.define(&node(text));
    }
    for kind in ["RolloutAnalysis", "ClusterRolloutAnalysis"] {
        for (spec, is_right) in [
            (json!({"interval": "10s"}), true),
            (json!({"interval": "0s"}), false),
        ] {
            let object = json!({"apiVersion": "portolan.dev/v1alpha1", "kind": kind, "metadata": {"name": "strict"}, "spec": spec});
            let object =
                Object::new(node(&object.to_string()), Origin::default()).expect("an object");
            let Verdict::Checked(violations) = catalogue.check(&object) else {
                unreachable!("the kind is defined");
            };
            assert_eq!(violations.is_empty(), is_right, "{kind}: {spec}");
        }
        serde_json::from_value::<Analysis>(json!({"interval": "10s"})).expect("an analysis");
    }
}
