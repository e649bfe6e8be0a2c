//! The definition of the kind: what it accepts, what it refuses, and that it has the fields of the types.

use std::collections::BTreeSet;

use portolan_object::{KubeVersion, Object, Origin};
use portolan_rollout::{Spec, crd_yaml};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Node, parse_one};
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

fn smallest() -> Value {
    json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        "service": {"port": 80},
    })
}

/// Objects that have every field between them.
fn good_specs() -> Vec<Value> {
    let with = |fields: Value| {
        let mut spec = smallest();
        for (key, value) in fields.as_object().expect("a map") {
            spec[key] = value.clone();
        }
        spec
    };
    vec![
        smallest(),
        with(json!({
            "replicas": 4,
            "service": {
                "port": 80, "targetPort": "http", "portName": "http-web", "hosts": ["web.example.com"],
                "gateways": ["istio-system/public"], "delegate": true, "timeout": "5s",
                "trafficPolicy": {"loadBalancer": {"simple": "LEAST_REQUEST"}}, "retries": {"attempts": 0},
            },
            "routing": {"provider": "istio"},
            "strategy": {
                "type": "canary", "weights": [5, 20, 50], "stepInterval": "1m", "mirror": 10,
                "match": [{"headers": {"x-canary": {"exact": "always"}}}, {"cookie": {"name": "canary", "value": "yes"}}],
                "stickySessions": {"cookieName": "web", "maxAge": "1h"}, "minRequests": 50, "maxDuration": "1h",
                "progressDeadline": "10m", "soak": "5m", "holdback": 5, "rollbackWindow": "15m", "drain": "30s",
                "capacity": "shrinkStable",
            },
            "analysis": {
                "interval": "10s", "falseRollbackRate": 0.01, "falsePromoteRate": 0.05,
                "tolerate": {"odds": 1.25, "harmfulOdds": 3}, "warmup": "60s",
                "metrics": [
                    {"name": "errors", "builtin": "istio-requests", "material": 0.001, "slo": 0.01},
                    {"name": "slow", "builtin": "istio-latency", "over": "500ms"},
                    {"name": "counted", "bad": "bad_total", "total": "all_total"},
                    {"name": "queue", "query": "queue_length", "min": 0, "max": 100, "consecutive": 3},
                    {"name": "asked", "http": {"url": "http://counter/"}},
                ],
                "onInconclusive": "promoteUnlessWorse", "onNoTraffic": "rollback", "onMetricsDown": "promote",
                "onStableUnhealthy": "promote",
            },
            "gates": [{"before": "start", "webhook": {"url": "https://gate/", "timeout": "10s"}}],
            "notifications": [
                {"type": "slack", "urlFrom": {"name": "slack", "key": "url"}, "phases": ["RolledBack"]},
                {"type": "webhook", "url": "https://log/"},
            ],
            "trackConfig": false, "adopt": true, "paused": true,
            "force": "1", "promote": "1", "abort": "1", "retry": "1", "pause": "1", "resume": "1", "undo": "1",
        })),
        with(
            json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 10, "metrics": [{"type": "Resource"}], "behavior": {}}}),
        ),
        with(json!({"autoscaling": {"maxReplicas": 10, "triggers": [{"type": "cron"}]}})),
        with(json!({"strategy": {"steps": [
            {"weight": 0, "pause": "manual"}, {"weight": 10, "for": "10m", "replicas": 3}, {"weight": 50},
        ]}})),
        with(
            json!({"strategy": {"type": "abTest", "match": [{"headers": {"x": {"regex": "a.*"}, "y": {"prefix": "b"}}}]}}),
        ),
        with(json!({"strategy": {"type": "blueGreen", "mirror": 50}})),
        with(json!({"analysis": {"ref": {"kind": "ClusterRolloutAnalysis", "name": "strict"}}})),
        with(
            json!({"routing": {"provider": "gatewayAPI", "parentRefs": [{"name": "public", "namespace": "infra"}]}}),
        ),
        with(json!({"virtualService": {"hosts": ["web"], "http": []}})),
        with(json!({"virtualServiceRef": {"name": "web", "routes": ["main"]}})),
        json!({"workloadRef": {"kind": "Deployment", "name": "web"}, "service": {"port": 80, "targetPort": 8080}}),
    ]
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

/// A field and a value of the right type that it must not have.
#[test]
fn values_out_of_range_are_refused_with_what_to_do() {
    let cases = [
        ("/replicas", json!(-1)),
        ("/template", json!({"spec": {"containers": []}})),
        ("/template", json!({"spec": {}})),
        ("/service", json!({})),
        ("/service/port", json!(0)),
        ("/service/port", json!(70_000)),
        ("/service/targetPort", json!("Not A Port")),
        ("/service/targetPort", json!(65_536)),
        ("/service/timeout", json!("soon")),
        ("/routing", json!({"provider": "linkerd"})),
        ("/routing", json!({"parentRefs": [{"name": "x"}]})),
        ("/strategy", json!({"type": "rolling"})),
        ("/strategy", json!({"weights": [20, 5]})),
        ("/strategy", json!({"weights": [0, 5]})),
        ("/strategy", json!({"weights": [50, 101]})),
        (
            "/strategy",
            json!({"weights": [5], "steps": [{"weight": 5}]}),
        ),
        ("/strategy", json!({"type": "abTest"})),
        ("/strategy", json!({"type": "blueGreen", "weights": [5]})),
        ("/strategy", json!({"stepInterval": "1 minute"})),
        ("/strategy", json!({"mirror": 101})),
        ("/strategy", json!({"holdback": 51})),
        (
            "/strategy",
            json!({"steps": [{"weight": 5, "for": "1m", "pause": "manual"}]}),
        ),
        (
            "/strategy",
            json!({"steps": [{"weight": 5, "pause": "auto"}]}),
        ),
        ("/strategy", json!({"match": [{}]})),
        ("/strategy", json!({"match": [{"headers": {"x": {}}}]})),
        (
            "/strategy",
            json!({"match": [{"headers": {"x": {"exact": "a", "prefix": "b"}}}]}),
        ),
        (
            "/strategy",
            json!({"stickySessions": {"cookieName": "a b"}}),
        ),
        ("/strategy", json!({"capacity": "double"})),
        ("/analysis", json!({"interval": "500ms"})),
        ("/analysis", json!({"falseRollbackRate": 0})),
        ("/analysis", json!({"falsePromoteRate": 0.6})),
        (
            "/analysis",
            json!({"tolerate": {"odds": 2, "harmfulOdds": 2}}),
        ),
        ("/analysis", json!({"tolerate": {"odds": 3}})),
        ("/analysis", json!({"onNoTraffic": "promoteUnlessWorse"})),
        ("/analysis", json!({"onInconclusive": "guess"})),
        (
            "/analysis",
            json!({"ref": {"name": "x"}, "metrics": [{"name": "a", "builtin": "istio-requests"}]}),
        ),
        ("/analysis", json!({"metrics": [{"name": "a"}]})),
        (
            "/analysis",
            json!({"metrics": [{"name": "a", "builtin": "istio-requests", "query": "x", "max": 1}]}),
        ),
        ("/analysis", json!({"metrics": [{"name": "a", "bad": "x"}]})),
        (
            "/analysis",
            json!({"metrics": [{"name": "a", "builtin": "istio-latency"}]}),
        ),
        (
            "/analysis",
            json!({"metrics": [{"name": "a", "query": "x"}]}),
        ),
        (
            "/analysis",
            json!({"metrics": [{"name": "a", "http": {"url": "ftp://x"}}]}),
        ),
        (
            "/analysis",
            json!({"metrics": [{"name": "a", "builtin": "istio-requests"}, {"name": "a", "builtin": "istio-requests"}]}),
        ),
        (
            "/gates",
            json!([{"before": "lunch", "webhook": {"url": "https://x"}}]),
        ),
        (
            "/gates",
            json!([{"before": "start", "webhook": {"url": "x"}}]),
        ),
        ("/notifications", json!([{"type": "slack"}])),
        (
            "/notifications",
            json!([{"type": "slack", "url": "https://x", "urlFrom": {"name": "a", "key": "b"}}]),
        ),
        ("/autoscaling", json!({"minReplicas": 3, "maxReplicas": 2})),
        ("/workloadRef", json!({"name": "web"})),
        ("/typo", json!(1)),
    ];
    let catalogue = catalogue();
    let mut told = Vec::new();
    for (place, value) in cases {
        let mut spec = smallest();
        match place[1..].split_once('/') {
            Some((outer, inner)) => spec[outer][inner] = value.clone(),
            None => spec[&place[1..]] = value.clone(),
        }
        let refused = refusals(&catalogue, "web", &spec);
        assert_ne!(refused, "", "{place}: {value}");
        told.push(format!(
            "{place}: {value}\n  {}",
            refused.replace('\n', "\n  ")
        ));
    }
    for spec in [
        json!({"service": {"port": 80}}),
        json!({"replicas": 2, "autoscaling": {"maxReplicas": 3}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
        json!({"virtualService": {}, "virtualServiceRef": {"name": "x"}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
        json!({"virtualService": {}, "workloadRef": {"name": "web"}, "service": {"port": 80, "delegate": true}}),
        json!({"virtualService": {}, "routing": {"provider": "gatewayAPI"}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
    ] {
        let refused = refusals(&catalogue, "web", &spec);
        assert_ne!(refused, "", "{spec}");
        told.push(format!("{spec}\n  {refused}"));
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
