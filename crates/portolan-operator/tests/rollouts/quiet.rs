//! When there is no news, nothing is written.

use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use portolan_cluster::LeaseOptions;
use serde_json::{Value, json};

use crate::bed::{Bed, create, spec, spec_with};

/// Also for an operator that has just started.
async fn an_idle_rollout_costs_no_write_and_a_new_operator_starts_nothing() {
    let Some(mut bed) = Bed::start("idle").await else {
        return;
    };
    let quantities = json!({"template": {"spec": {"containers": [{
        "name": "web", "image": "web:1", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
    }]}}});
    bed.make_stable(spec_with("web:1", &quantities)).await;
    bed.wait("all told", |status| {
        let last = status["history"]
            .as_array()
            .and_then(|history| history.last());
        last.is_some_and(|last| last["number"] == status["delivered"])
    })
    .await;
    bed.stop_operators();
    let before = bed.get().await.expect("the rollout");
    let cluster = bed.connect().await;
    let running = bed.operator_on(cluster.clone(), None, None);
    // Long enough for several looks, each asked for by a change that is no news.
    for number in 0..5 {
        bed.change(json!({"metadata": {"labels": {"look": format!("{number}")}}}))
            .await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let after = bed.get().await.expect("the rollout");
    assert_eq!(before["status"], after["status"]);
    let writes = cluster.writes();
    // A Deployment whose quantities the API server writes differently is applied once, which changes nothing.
    assert!(writes <= 1, "{writes} writes");
    bed.change(json!({"metadata": {"labels": {"look": "again"}}}))
        .await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(cluster.writes(), writes);
    running.stop().await;
    bed.end().await;
}

async fn of_two_operators_one_acts_and_the_other_follows_when_it_ends() {
    let Some(bed) = Bed::without_operator("two").await else {
        return;
    };
    let lease = |holder: &str| LeaseOptions {
        namespace: bed.namespace.clone(),
        name: "operator".to_owned(),
        holder: holder.to_owned(),
        duration: Duration::from_secs(3),
    };
    let (one_cluster, other_cluster) = (bed.connect().await, bed.connect().await);
    let one = bed.operator_on(one_cluster.clone(), Some(lease("one")), None);
    bed.make_stable(spec("web:1")).await;
    let other = bed.operator_on(other_cluster.clone(), Some(lease("other")), None);
    bed.release("web:2").await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    assert!(one_cluster.writes() > 0);
    assert_eq!(other_cluster.writes(), 0, "the second operator wrote");
    one.stop().await;
    bed.release("web:3").await;
    bed.wait("the second promotion", |status| {
        status["phase"] == "Stable" && status["stable"]["slot"] == "a"
    })
    .await;
    assert!(other_cluster.writes() > 0);
    other.stop().await;
    bed.end().await;
}

/// What the pods below are named after, for ever: whoever changes it restarts every application of every user.
const NAMED: &str = "r1-2d8465bb7a770c99";

/// An application as an earlier operator left it: with the fields that its status had, and some that it has no more.
async fn an_operator_of_another_version_starts_nothing() {
    let Some(mut bed) = Bed::start("upgrade").await else {
        return;
    };
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": bed.namespace},
        "data": {"level": "info"},
    });
    create(&bed.client, "", "v1", "ConfigMap", &settings).await;
    let level = json!({"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}});
    let containers = json!([{"name": "web", "image": "web:1", "env": [level]}]);
    let fields = json!({"template": {"spec": {"containers": containers}}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    let status = bed
        .wait("all told", |status| status["delivered"] == 1)
        .await;
    assert_eq!(status["stable"]["revision"], NAMED);
    bed.stop_operators();
    write_status(&bed, &earlier(&status, NAMED)).await;
    nothing_starts(&bed, NAMED).await;

    // Names that were made in another way are believed, not made again.
    let other = "r9-0123456789abcdef";
    let annotation = json!({"metadata": {"annotations": {"portolan.dev/revision": other}}});
    bed.deployments()
        .patch("web-a", &PatchParams::default(), &Patch::Merge(annotation))
        .await
        .expect("renamed");
    write_status(&bed, &earlier(&status, other)).await;
    nothing_starts(&bed, other).await;
    bed.end().await;
}

/// A status with what an earlier operator knew, and nothing else.
fn earlier(status: &Value, revision: &str) -> Value {
    let generation = &status["observedGeneration"];
    json!({
        "schema": 1, "phase": "Stable", "weight": 0, "observedGeneration": generation,
        "stable": {"revision": revision, "slot": "a"},
        "slots": {"a": {"revision": revision, "replicas": 2}},
        "traffic": status["traffic"], "apex": "a", "target": revision,
        "fence": {"generation": generation, "config": status["fence"]["config"]},
        "delivered": 1,
        "history": [{
            "number": 1, "at": "2026-01-31T12:00:00Z", "from": "Initializing", "to": "Stable", "revision": revision,
            "weight": 0, "reason": "Initialized", "message": "it serves", "actor": "operator",
        }],
        "operatorVersion": "0.0.1", "unknownToday": {"kept": [1, 2]},
    })
}

async fn write_status(bed: &Bed, status: &Value) {
    let (api, params) = (bed.rollouts(), PatchParams::default());
    // What is not named goes.
    for patch in [json!({"status": null}), json!({"status": status})] {
        api.patch_status("web", &params, &Patch::Merge(patch))
            .await
            .expect("written");
    }
}

/// Runs an operator for several looks; pods, Deployments and the history stay as they are.
async fn nothing_starts(bed: &Bed, revision: &str) {
    let seen = async || {
        let slot = bed.deployments().get("web-a").await.expect("the slot");
        let pods = bed.api("", "v1", "Pod").list(&ListParams::default()).await;
        let pods = pods.expect("pods").items.into_iter();
        let mut pods: Vec<Option<String>> = pods.map(|pod| pod.metadata.uid).collect();
        pods.sort();
        (slot.data["spec"].clone(), pods)
    };
    let before = seen().await;
    let operator = bed.operator(None, None).await;
    bed.wait("a look", |status| !status["conditions"].is_null())
        .await;
    for number in 0..3 {
        bed.change(json!({"metadata": {"labels": {"look": format!("{revision}-{number}")}}}))
            .await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    operator.stop().await;
    let status = bed.status().await;
    assert_eq!(
        (&status["phase"], &status["stable"]["revision"]),
        (&json!("Stable"), &json!(revision)),
        "{status:#}"
    );
    assert_eq!(status["history"].as_array().map(Vec::len), Some(1));
    assert_eq!(seen().await, before);
    let other = bed.deployments().get_opt("web-b").await.expect("an answer");
    assert!(other.is_none(), "a canary was started");
}

crate::cases!(
    an_operator_of_another_version_starts_nothing,
    an_idle_rollout_costs_no_write_and_a_new_operator_starts_nothing,
    of_two_operators_one_acts_and_the_other_follows_when_it_ends
);
