//! Objects that are right, and objects that have one thing wrong.

#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};

pub(crate) fn smallest() -> Value {
    json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        "service": {"port": 80},
    })
}

/// Objects that have every field between them.
pub(crate) fn good_specs() -> Vec<Value> {
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

/// Specs with one value that is of the right type and must not be, and what is wrong with each.
pub(crate) fn bad_specs() -> Vec<(String, Value)> {
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
        (
            "/strategy",
            json!({"steps": [{"weight": 50}, {"weight": 10}]}),
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
    let mut bad = Vec::new();
    for (place, value) in cases {
        let mut spec = smallest();
        match place[1..].split_once('/') {
            Some((outer, inner)) => spec[outer][inner] = value.clone(),
            None => spec[&place[1..]] = value.clone(),
        }
        bad.push((format!("{place}: {value}"), spec));
    }
    let whole = [
        json!({"service": {"port": 80}}),
        json!({"replicas": 2, "autoscaling": {"maxReplicas": 3}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
        json!({"virtualService": {}, "virtualServiceRef": {"name": "x"}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
        json!({"virtualService": {}, "workloadRef": {"name": "web"}, "service": {"port": 80, "delegate": true}}),
        json!({"virtualService": {}, "routing": {"provider": "gatewayAPI"}, "workloadRef": {"name": "web"}, "service": {"port": 80}}),
    ];
    bad.extend(whole.map(|spec| (spec.to_string(), spec)));
    bad
}
