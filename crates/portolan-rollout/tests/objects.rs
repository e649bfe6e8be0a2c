//! The objects of an application, as they would be applied.

use portolan_object::{KubeVersion, Object, Origin};
use portolan_rollout::objects::{
    App, RevisionContent, alias_services, apex_service, autoscaler, controller_revision,
    deployment, destination_rules, http_route, join_routes, read_controller_revision, read_traffic,
    slot_service, split_routes, virtual_service,
};
use portolan_rollout::{
    ConfigKind, ConfigRef, ConfigVersion, Mirror, Observed, Revision, Slot, Spec, Status, Time,
    Traffic, step,
};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, parse_one};
use proptest::prelude::*;
use serde_json::{Value, json};

fn spec(fields: &Value) -> Spec {
    let mut spec = json!({
        "replicas": 4,
        "template": {
            "metadata": {
                "labels": {"app": "shop", "team": "a", "kustomize.toolkit.fluxcd.io/name": "apps"},
                "annotations": {"note": "kept", "argocd.argoproj.io/tracking-id": "x"},
            },
            "spec": {"containers": [{"name": "web", "image": "web:2", "envFrom": [{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "shared"}}]}]},
        },
        "service": {"port": 80, "targetPort": "http", "hosts": ["web.example.com"], "gateways": ["istio-system/public"], "timeout": "5s"},
    });
    for (key, value) in fields.as_object().expect("a map") {
        spec[key] = value.clone();
    }
    serde_json::from_value(spec).expect("a spec")
}

fn app(spec: &Spec) -> App<'_> {
    App {
        name: "web",
        namespace: "shop",
        uid: "0000",
        spec,
    }
}

/// The status of an application that has this traffic.
fn status(spec: &Spec, traffic: Traffic) -> Status {
    let observed = Observed {
        name: "web".to_owned(),
        generation: 1,
        template: spec.template.clone(),
        ..Observed::default()
    };
    let (mut status, _) = step(spec, None, &observed, Time::from_unix(0));
    status.slots.b = status.slots.a.clone();
    status.traffic = Some(traffic);
    status
}

fn content(spec: &Spec) -> RevisionContent {
    let template = spec.template.clone().expect("a template");
    let config = vec![ConfigVersion {
        config: ConfigRef {
            kind: ConfigKind::Secret,
            name: "keys".to_owned(),
        },
        resource_version: "7".to_owned(),
        hash: "h".to_owned(),
    }];
    RevisionContent {
        revision: Revision::of(&template, &config),
        template,
        config,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// Kubernetes' own kinds must be what its types allow.
fn check(value: &Value) {
    let node = parse_one(value.to_string(), Dialect::Helm).expect("YAML");
    let object = Object::new(node, Origin::default()).expect("an object");
    let verdict = Catalogue::of(KubeVersion::new(1, 36)).check(&object);
    assert_eq!(verdict, Verdict::Checked(Vec::new()), "{value:#}");
}

#[test]
fn a_slot_is_a_deployment_with_its_own_configuration_and_labels() {
    let spec = spec(&json!({}));
    let made = deployment(&app(&spec), Slot::B, &content(&spec), Some(2));
    check(&made);
    insta::assert_snapshot!("deployment", pretty(&made));
    let autoscaled = deployment(&app(&spec), Slot::B, &content(&spec), None);
    assert_eq!(autoscaled["spec"].get("replicas"), None);
}

#[test]
fn services_select_slots_and_roles() {
    let spec = spec(&json!({}));
    let app = app(&spec);
    let [stable, canary] = alias_services(&app, Slot::B);
    let made = [
        slot_service(&app, Slot::A),
        apex_service(&app, Slot::B),
        stable,
        canary,
    ];
    made.iter().for_each(check);
    let lines = made.map(|service| {
        let (metadata, spec) = (&service["metadata"], &service["spec"]);
        format!(
            "{} selects {} ports {}",
            metadata["name"], spec["selector"], spec["ports"]
        )
    });
    insta::assert_snapshot!("services", lines.join("\n"));
}

#[test]
fn autoscalers_have_a_floor_and_none_is_made_for_an_empty_slot() {
    let by_kubernetes = spec(
        &json!({"replicas": null, "autoscaling": {"minReplicas": 2, "maxReplicas": 9, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}}),
    );
    let made = autoscaler(&app(&by_kubernetes), Slot::A, 3).expect("an autoscaler");
    check(&made);
    let by_keda = spec(
        &json!({"replicas": null, "autoscaling": {"maxReplicas": 9, "triggers": [{"type": "cron"}]}}),
    );
    let scaled = autoscaler(&app(&by_keda), Slot::A, 3).expect("an autoscaler");
    insta::assert_snapshot!(
        "autoscalers",
        format!("{}\n{}", pretty(&made), pretty(&scaled))
    );
    assert_eq!(autoscaler(&app(&by_keda), Slot::A, 0), None);
    assert_eq!(autoscaler(&app(&spec(&json!({}))), Slot::A, 3), None);
}

#[test]
fn a_destination_rule_is_made_only_for_a_traffic_policy() {
    assert_eq!(
        destination_rules(&app(&spec(&json!({})))),
        Vec::<Value>::new()
    );
    let with =
        spec(&json!({"service": {"port": 80, "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}}}));
    insta::assert_snapshot!(
        "destination_rules",
        pretty(&json!(destination_rules(&app(&with))))
    );
}

#[test]
fn a_revision_is_kept_and_read_again() {
    let spec = spec(&json!({}));
    let made = controller_revision(&app(&spec), &content(&spec), 3);
    check(&made);
    assert_eq!(read_controller_revision(&made), Some(content(&spec)));
    assert_eq!(
        read_controller_revision(&json!({"data": {"other": 1}})),
        None
    );
}

fn everything() -> Spec {
    spec(&json!({"strategy": {
        "match": [{"headers": {"X-Canary": {"exact": "yes"}}}, {"cookie": {"name": "tester", "value": "a.b"}}],
        "stickySessions": {"cookieName": "web", "maxAge": "1h"},
    }}))
}

fn all_at_once() -> Traffic {
    Traffic {
        mirror: Some(Mirror {
            slot: Slot::B,
            percent: 10,
        }),
        matched: Some(Slot::B),
        sticky: Some(Slot::B),
        ..Traffic::split(Slot::B, 20)
    }
}

#[test]
fn a_virtual_service_splits_mirrors_matches_and_keeps_clients() {
    let spec = everything();
    let running = virtual_service(&app(&spec), &status(&spec, all_at_once())).expect("routes");
    let over =
        virtual_service(&app(&spec), &status(&spec, Traffic::only(Slot::A))).expect("routes");
    let (running, over) = (pretty(&running["spec"]), pretty(&over["spec"]));
    insta::assert_snapshot!("virtual_service", format!("{running}\n{over}"));
}

#[test]
fn a_virtual_service_to_delegate_to_has_no_hosts() {
    let spec = spec(
        &json!({"service": {"port": 80, "delegate": true, "hosts": ["x"], "gateways": ["y"]}}),
    );
    let made =
        virtual_service(&app(&spec), &status(&spec, Traffic::only(Slot::A))).expect("routes");
    assert_eq!(made["spec"].get("hosts"), None);
    assert_eq!(made["spec"].get("gateways"), None);
}

#[test]
fn an_http_route_splits_mirrors_matches_and_keeps_clients() {
    let mut spec = everything();
    spec.routing = serde_json::from_value(json!({"provider": "gatewayAPI"})).expect("routing");
    let running = http_route(&app(&spec), &status(&spec, all_at_once())).expect("routes");
    spec.routing = serde_json::from_value(
        json!({"provider": "gatewayAPI", "parentRefs": [{"name": "public", "namespace": "infra"}]}),
    )
    .expect("routing");
    let over = http_route(&app(&spec), &status(&spec, Traffic::only(Slot::A))).expect("routes");
    let (running, over) = (pretty(&running["spec"]), pretty(&over["spec"]));
    insta::assert_snapshot!("http_route", format!("{running}\n{over}"));
}

/// A `VirtualService` as users have them: several routes, other destinations, fields that are not known here.
fn of_user() -> Value {
    json!({
        "hosts": ["web.example.com"],
        "exportTo": ["."],
        "http": [
            {"name": "docs", "match": [{"uri": {"prefix": "/docs"}}], "route": [{"destination": {"host": "docs"}}]},
            {"name": "api", "match": [{"uri": {"prefix": "/api"}}, {"uri": {"prefix": "/v2"}}], "fault": {"abort": {"httpStatus": 500}},
             "route": [{"destination": {"host": "web.shop.svc.cluster.local", "port": {"number": 80}}, "headers": {"request": {"set": {"x": "1"}}}}]},
            {"name": "mixed", "route": [{"destination": {"host": "web"}, "weight": 80}, {"destination": {"host": "legacy"}, "weight": 20}]},
        ],
        "tcp": [{"match": [{"port": 9}], "route": [{"destination": {"host": "web.shop"}}]}],
    })
}

#[test]
fn a_virtual_service_of_the_user_keeps_all_that_is_not_a_route_here() {
    let mut spec = everything();
    spec.virtual_service = Some(of_user());
    let made = virtual_service(&app(&spec), &status(&spec, all_at_once())).expect("routes");
    insta::assert_snapshot!("virtual_service_of_the_user", pretty(&made["spec"]));
}

#[test]
fn only_the_named_routes_of_a_referred_virtual_service_are_split() {
    let mut spec = spec(&json!({}));
    spec.virtual_service_ref =
        serde_json::from_value(json!({"name": "web", "routes": ["api"]})).expect("a reference");
    let status = status(&spec, Traffic::split(Slot::B, 20));
    assert_eq!(virtual_service(&app(&spec), &status), None);
    let mut changed = of_user();
    split_routes(&app(&spec), &status, &mut changed, &["api".to_owned()]);
    assert_eq!(changed["http"][2], of_user()["http"][2]);
    assert_eq!(
        changed["http"][1]["route"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(read_traffic(&app(&spec), &changed), status.traffic);
}

#[test]
fn routes_that_somebody_edited_are_noticed() {
    let spec = everything();
    let app = app(&spec);
    let made = virtual_service(&app, &status(&spec, all_at_once())).expect("routes");
    assert_eq!(read_traffic(&app, &made["spec"]), Some(all_at_once()));
    for (pointer, value) in [
        ("/spec/http/2/route/0/weight", json!(50)),
        ("/spec/http/2/route/0/destination/host", json!("web")),
        ("/spec/http/0/name", json!("other")),
        ("/spec/http", json!([])),
        ("/spec/http/2/mirrors", json!([])),
    ] {
        let mut edited = made.clone();
        *edited.pointer_mut(pointer).expect(pointer) = value;
        assert_ne!(
            read_traffic(&app, &edited["spec"]),
            Some(all_at_once()),
            "{pointer}"
        );
    }
}

fn traffic() -> impl Strategy<Value = Traffic> {
    (
        0_u8..=100,
        prop::option::of(1_u8..=100),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(share, mirror, is_matched, is_sticky)| Traffic {
            mirror: mirror.map(|percent| Mirror {
                slot: Slot::B,
                percent,
            }),
            matched: is_matched.then_some(Slot::B),
            sticky: is_sticky.then_some(Slot::B),
            ..Traffic::split(Slot::B, share)
        })
}

/// Any JSON, with the words of routes in it.
fn json_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop_oneof![
            Just("web"),
            Just("web-a"),
            Just("web-b"),
            Just("x"),
            Just("portolan-match-x")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let key = prop_oneof![
            Just("http"),
            Just("tcp"),
            Just("route"),
            Just("match"),
            Just("headers"),
            Just("response"),
            Just("add"),
            Just("destination"),
            Just("host"),
            Just("weight"),
            Just("mirrors"),
            Just("name"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read_and_writing_again_changes_nothing(first in traffic(), second in traffic(), is_gateway in any::<bool>()) {
        let mut spec = everything();
        if is_gateway {
            spec.routing = serde_json::from_value(json!({"provider": "gatewayAPI"})).expect("routing");
            let made = http_route(&app(&spec), &status(&spec, first)).expect("routes");
            prop_assert_eq!(read_traffic(&app(&spec), &made["spec"]), Some(first));
            return Ok(());
        }
        let app = app(&spec);
        let (first, second) = (status(&spec, first), status(&spec, second));
        let mut once = of_user();
        split_routes(&app, &second, &mut once, &[]);
        let mut twice = of_user();
        split_routes(&app, &first, &mut twice, &[]);
        split_routes(&app, &second, &mut twice, &[]);
        prop_assert_eq!(&twice, &once);
        let mut joined = once.clone();
        join_routes(&app, &mut joined);
        let mut plain = of_user();
        plain["http"][1]["route"][0]["destination"]["host"] = json!("web");
        plain["tcp"][0]["route"][0]["destination"]["host"] = json!("web");
        prop_assert_eq!(joined, plain);
    }

    #[test]
    fn routes_that_are_no_routes_do_no_harm(mut value in json_like(), traffic in traffic()) {
        let spec = everything();
        let app = app(&spec);
        split_routes(&app, &status(&spec, traffic), &mut value, &[]);
        read_traffic(&app, &value);
        join_routes(&app, &mut value);
    }
}
