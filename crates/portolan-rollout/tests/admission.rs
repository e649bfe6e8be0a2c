//! What a real API server says to the definition, to objects that are right and to those that are not.

mod samples;

use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use portolan_rollout::{API_VERSION, KIND, analysis_crds_yaml, crd_yaml};
use portolan_testbed::cluster::{Cluster, ClusterSetup};
use portolan_yaml::{Dialect, parse_one, to_json};
use samples::{bad_specs, good_specs, smallest};
use serde_json::{Value, json};

fn object(name: &str, spec: &Value) -> DynamicObject {
    let object =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).expect("an object")
}

async fn define(client: &kube::Client, text: &'static str) {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let definition = parse_one(text, Dialect::Helm).expect("YAML");
    let definition: Value =
        serde_json::from_str(&to_json(&definition).expect("JSON")).expect("JSON");
    let definition: DynamicObject = serde_json::from_value(definition).expect("an object");
    let name = definition.metadata.name.clone().expect("a name");
    api.create(&PostParams::default(), &definition)
        .await
        .expect("a definition that is accepted");
    let is_served = |found: &DynamicObject| {
        let conditions = found.data["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .any(|found| found["type"] == "Established" && found["status"] == "True")
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_served(&api.get(&name).await.expect("the definition")) {
        assert!(
            std::time::Instant::now() < deadline,
            "the kind is not served"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_accepts_what_is_right_and_refuses_each_mistake() {
    let setup = ClusterSetup {
        controllers: &[],
        rbac: false,
    };
    let Some(cluster) = Cluster::start(setup).await else {
        return;
    };
    let client = cluster.client().await;
    for text in [crd_yaml()].into_iter().chain(analysis_crds_yaml()) {
        define(&client, text).await;
    }
    let gvk = GroupVersionKind::gvk("portolan.dev", "v1alpha1", KIND);
    let kind = ApiResource::from_gvk_with_plural(&gvk, "istiocanarydeployments");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for spec in good_specs() {
        let answer = api.create(&dry_run, &object("web", &spec)).await;
        assert!(answer.is_ok(), "{answer:?}: {spec}");
    }
    for (what, spec) in bad_specs() {
        // The server drops fields it does not know; a client that asks for validation is told.
        if what.starts_with("/typo") {
            continue;
        }
        let answer = api.create(&dry_run, &object("web", &spec)).await;
        assert!(answer.is_err(), "{what} is accepted");
    }
    for name in ["9lives", "a.b", &"n".repeat(51)] {
        let answer = api.create(&dry_run, &object(name, &smallest())).await;
        assert!(answer.is_err(), "{name} is accepted");
    }
    for (field, spec) in every_field_wrong() {
        let answer = api.create(&dry_run, &object("web", &spec)).await;
        let error = answer.map(drop).expect_err(&field).to_string();
        assert!(
            error.contains(&field),
            "the refusal does not name {field}: {error}"
        );
    }
    for (field, spec) in every_value_out_of_range() {
        let answer = api.create(&dry_run, &object("web", &spec)).await;
        let error = answer.map(drop).expect_err(&field).to_string();
        assert!(
            error.contains(&field),
            "the refusal does not name {field}: {error}"
        );
    }
    subresources_work(&api).await;
    routes_that_would_be_left_behind_are_not_changed(&api).await;
}

/// Routes that a rollout no longer looks after would lead to a slot that is left at the next release.
async fn routes_that_would_be_left_behind_are_not_changed(api: &Api<DynamicObject>) {
    let refer = |name: &str, routes: &[&str]| {
        let mut spec = smallest();
        spec["virtualServiceRef"] = json!({"name": name, "routes": routes});
        spec
    };
    let gateway = json!({"routing": {"provider": "gatewayAPI"}});
    let params = PostParams::default();
    let old = object("users", &refer("shop", &["one"]));
    api.create(&params, &old).await.expect("an object");
    let change = async |patch: Value| {
        let patch = Patch::Merge(json!({"spec": patch}));
        let changed = api.patch("users", &PatchParams::default(), &patch).await;
        changed.map(drop).map_err(|error| error.to_string())
    };
    for (patch, part) in [
        (
            json!({"virtualServiceRef": {"name": "other"}}),
            "another VirtualService",
        ),
        (json!({"virtualServiceRef": null}), "another VirtualService"),
        (
            json!({"virtualServiceRef": {"routes": ["two"]}}),
            "not taken away",
        ),
        (
            json!({"virtualServiceRef": null, "routing": gateway["routing"]}),
            "cannot be changed",
        ),
    ] {
        let error = change(patch.clone()).await.expect_err(&patch.to_string());
        assert!(error.contains(part), "{error}");
    }
    for patch in [
        json!({"virtualServiceRef": {"routes": ["two", "one"]}}),
        json!({"virtualServiceRef": {"routes": null}}),
        json!({"routing": {"provider": "istio"}}),
        json!({"routing": null}),
    ] {
        assert_eq!(change(patch.clone()).await, Ok(()), "{patch}");
    }
    let error = change(json!({"virtualServiceRef": {"routes": ["one"]}}))
        .await
        .expect_err("all of them were split");
    assert!(error.contains("not taken away"), "{error}");
}

/// A spec for each field of the definition, in which that field has a value of a wrong type.
fn every_field_wrong() -> Vec<(String, Value)> {
    let fields = every_field(&|_, schema| {
        let wrong = match schema["type"].as_str() {
            Some("string") => json!(7),
            Some("integer" | "number") => json!("seven"),
            Some("boolean") => json!("yes"),
            Some("array") => json!({"a": 1}),
            Some("object") => json!("text"),
            _ => json!(true),
        };
        vec![wrong]
    });
    assert!(fields.len() > 120, "{} fields", fields.len());
    fields
}

/// A spec for each limit of each field, in which the value is just beyond it. A field without limits would let anybody
/// fill the memory of the operator, or ask for what nobody can do.
fn every_value_out_of_range() -> Vec<(String, Value)> {
    let fields = every_field(&|field, schema| match schema["type"].as_str() {
        Some("string") => strings_beyond(field, schema),
        Some("integer" | "number") => numbers_beyond(field, schema),
        // What belongs to others is limited by the API server, as all objects are.
        Some("array") if field == CONTAINERS => vec![json!([])],
        Some("array") => {
            let most = schema["maxItems"].as_u64();
            assert!(most.is_some(), "{field} has no maxItems");
            let most = most.unwrap_or_default();
            let item = match schema["items"]["type"].as_str() {
                Some("object") => json!({"name": "x"}),
                Some("integer") => json!(1),
                _ => json!("x"),
            };
            vec![json!(vec![item; most as usize + 1])]
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let most = schema["maxProperties"].as_u64();
            assert!(most.is_some(), "{field} has no maxProperties");
            let most = most.unwrap_or_default();
            let beyond = (0..=most).map(|at| (format!("k{at}"), json!({"exact": "x"})));
            vec![beyond.collect::<serde_json::Map<_, _>>().into()]
        }
        _ => Vec::new(),
    });
    assert!(fields.len() > 130, "{} limits", fields.len());
    fields
}

/// The list of a pod template, whose content is not ours to limit.
const CONTAINERS: &str = "spec.template.spec.containers";

/// Limits of a number: any number is a limit.
const ANY_NUMBER: [&str; 2] = [
    "spec.analysis.metrics[0].min",
    "spec.analysis.metrics[0].max",
];

fn strings_beyond(field: &str, schema: &Value) -> Vec<Value> {
    if schema["enum"].is_array() {
        return vec![json!("no-such-word")];
    }
    let mut beyond = Vec::new();
    if schema["pattern"].is_string() {
        beyond.push(json!("!? "));
    }
    if schema["minLength"].as_u64().is_some_and(|least| least > 0) {
        beyond.push(json!(""));
    }
    let pattern = schema["pattern"].as_str().unwrap_or("*");
    match schema["maxLength"].as_u64() {
        Some(most) => beyond.push(json!("x".repeat(most as usize + 1))),
        None => assert!(
            !pattern.contains(['*', '+']),
            "{field} has no longest length"
        ),
    }
    beyond
}

fn numbers_beyond(field: &str, schema: &Value) -> Vec<Value> {
    if ANY_NUMBER.contains(&field) {
        return Vec::new();
    }
    let limit = |name: &str| {
        let limit = schema[name].as_f64();
        assert!(limit.is_some(), "{field} has no {name}");
        limit.unwrap_or_default()
    };
    let (least, most) = (limit("minimum"), limit("maximum"));
    let beyond = |number: f64| match schema["type"].as_str() {
        Some("integer") => json!(number as i64),
        _ => json!(number),
    };
    vec![beyond(least - 1.0), beyond(most + 1.0)]
}

/// Specs in which one field has a wrong value, for each field of the definition and each wrong value of it.
fn every_field(wrong: &dyn Fn(&str, &Value) -> Vec<Value>) -> Vec<(String, Value)> {
    let definition = parse_one(crd_yaml(), Dialect::Helm).expect("YAML");
    let definition: Value =
        serde_json::from_str(&to_json(&definition).expect("JSON")).expect("JSON");
    let schema =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut fields = Vec::new();
    walk(schema, "spec", wrong, &mut |field, wrong| {
        let mut spec = smallest();
        merge(&mut spec, &wrong);
        fields.push((field.to_owned(), spec));
    });
    fields
}

/// Tells of each field below a schema, with an object that holds a wrong value there.
fn walk(
    schema: &Value,
    field: &str,
    wrong: &dyn Fn(&str, &Value) -> Vec<Value>,
    tell: &mut dyn FnMut(&str, Value),
) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let named = schema["additionalProperties"].is_object();
    let named = named.then(|| ("x".to_owned(), schema["additionalProperties"].clone()));
    for (name, below) in properties
        .map(|(name, below)| (name.clone(), below.clone()))
        .chain(named)
    {
        let place = format!("{field}.{name}");
        for wrong in wrong(&place, &below) {
            tell(&place, json!({&name: wrong}));
        }
        walk(&below, &place, wrong, &mut |field, inner| {
            tell(field, json!({&name: inner}));
        });
        if below["items"].is_object() {
            let items = &below["items"];
            let place = format!("{place}[0]");
            for wrong in wrong(&place, items) {
                tell(&place, json!({&name: [wrong]}));
            }
            walk(items, &place, wrong, &mut |field, inner| {
                tell(field, json!({&name: [inner]}));
            });
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value.clone(),
    }
}

/// Replicas can be changed by an autoscaler from outside, and what is in a template survives.
async fn subresources_work(api: &Api<DynamicObject>) {
    let mut spec = smallest();
    spec["replicas"] = json!(2);
    spec["template"]["spec"]["containers"][0]["newField"] = json!({"kept": true});
    let made = api
        .create(&PostParams::default(), &object("web", &spec))
        .await
        .expect("an object");
    assert_eq!(
        made.data["spec"], spec,
        "nothing is added and nothing is lost"
    );
    let status = json!({"status": {"phase": "Stable", "replicas": 2, "selector": "a=b", "anything": {"else": 1}}});
    let patch = Patch::Merge(&status);
    let patched = api
        .patch_status("web", &PatchParams::default(), &patch)
        .await
        .expect("a status");
    assert_eq!(patched.data["status"], status["status"]);
    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scale = api
        .patch_scale("web", &PatchParams::default(), &scale)
        .await
        .expect("a scale");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(5));
    let after = api.get("web").await.expect("the object");
    assert_eq!(after.data["spec"]["replicas"], json!(5));
    assert_eq!(
        after.metadata.generation,
        made.metadata.generation.map(|generation| generation + 1)
    );
}
