//! Rollouts that are written to break the operator, or to keep it from looking after others.

use kube::api::{DynamicObject, PostParams};
use portolan_rollout::{API_VERSION, KIND};
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, record, spec, spec_with, template};

async fn make(bed: &Bed, name: &str, spec: Value) {
    let object =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    bed.rollouts()
        .create(&PostParams::default(), &object)
        .await
        .expect("a rollout");
}

/// A value with so many objects inside of one another.
fn nested(depth: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
}

/// No program reads objects that are nested without end. One such rollout must not hide all others from the operator.
async fn a_rollout_that_is_nested_too_deep_stops_no_other() {
    let Some(bed) = Bed::without_operator("deep").await else {
        return;
    };
    let spec_text = spec("web:1").to_string();
    let spec_text = spec_text.replacen(
        "\"image\":",
        &format!("\"deep\":{},\"image\":", nested(300)),
        1,
    );
    let body = format!(
        "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",\"metadata\":{{\"name\":\"deep\"}},\"spec\":{spec_text}}}"
    );
    let path = format!(
        "/apis/{API_VERSION}/namespaces/{}/istiocanarydeployments",
        bed.namespace
    );
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .expect("a request");
    bed.client.request_text(request).await.expect("created");
    let operator = bed.operator(None, None).await;
    // The observer of the test reads like everybody else, and is blind here.
    bed.make(spec("web:1")).await;
    let happened = async |reason: &str| {
        eventually(reason, || async {
            record(&bed.status().await, reason).is_some()
        })
        .await;
    };
    happened("Initialized").await;
    bed.release("web:2").await;
    happened("Started").await;
    bed.told("InvalidSpec", "nested too deep").await;
    operator.stop().await;
}

/// What is made of a rollout has longer names than it has itself.
async fn the_longest_name_serves() {
    let Some(bed) = Bed::start("longest").await else {
        return;
    };
    let name = format!("n{}", "x".repeat(49));
    make(&bed, &name, spec("web:1")).await;
    let phase = |found: &DynamicObject| found.data["status"]["phase"].clone();
    eventually("it serves", || async {
        phase(&bed.rollouts().get(&name).await.expect("it")) == "Stable"
    })
    .await;
}

/// The longest times, a century each, and nearly as much text as an object may have.
async fn the_longest_times_and_the_largest_template_are_carried_out() {
    let Some(bed) = Bed::start("largest").await else {
        return;
    };
    let long = "878400h";
    let mut strategy: Value = [
        "maxDuration",
        "progressDeadline",
        "soak",
        "rollbackWindow",
        "drain",
    ]
    .into_iter()
    .map(|field| (field.to_owned(), json!(long)))
    .collect::<serde_json::Map<_, _>>()
    .into();
    strategy["stepInterval"] = json!(long);
    let large = |image: &str| {
        let mut template = template(image);
        template["metadata"] = json!({"annotations": {"large": "x".repeat(200_000)}});
        template
    };
    let fields =
        json!({"template": large("web:1"), "strategy": strategy, "analysis": {"warmup": long}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.change(json!({"spec": {"template": large("web:2")}}))
        .await;
    bed.happened("Started").await;
    bed.reach_shares((90, 10)).await;
    bed.token("abort").await;
    // It waits for a century until the last requests are answered, as it was asked to; there are no new ones.
    bed.happened("RollingBack").await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

crate::cases!(
    a_rollout_that_is_nested_too_deep_stops_no_other,
    the_longest_name_serves,
    the_longest_times_and_the_largest_template_are_carried_out,
);
