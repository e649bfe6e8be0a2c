//! The rollout is deleted.

use kube::api::ListParams;
use portolan_testbed::cluster::eventually;
use serde_json::json;

use crate::bed::{Bed, shares_of, spec, spec_with};

/// All requests go to the stable slot before any pod goes.
async fn a_rollout_deleted_on_its_way_sends_traffic_home_before_pods_go() {
    let Some(bed) = Bed::start("gone").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    assert_eq!(
        bed.get().await.expect("the rollout")["metadata"]["finalizers"],
        json!(null)
    );
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    assert_eq!(
        bed.get().await.expect("the rollout")["metadata"]["finalizers"],
        json!(["portolan.dev/traffic"])
    );
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    eventually("what it made", || async {
        let deployments = bed
            .deployments()
            .list(&ListParams::default())
            .await
            .expect("a list");
        let routes = bed
            .routes()
            .list(&ListParams::default())
            .await
            .expect("a list");
        deployments.items.is_empty() && routes.items.is_empty()
    })
    .await;
    bed.observer.catch_up().await;
    let versions = bed.observer.versions();
    let home = versions.iter().rev().find(|version| {
        let object = version.object.as_ref();
        version.kind == "VirtualService"
            && object.is_some_and(|object| shares_of(&object["spec"]) == Some((100, 0)))
    });
    let home = home.expect("traffic went home").number;
    let gone = versions
        .iter()
        .find(|version| version.kind == "Deployment" && version.object.is_none());
    assert!(home < gone.expect("a deletion").number);
    bed.end().await;
}

async fn a_stable_rollout_is_deleted_at_once() {
    let Some(mut bed) = Bed::start("at-once").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    // Nobody is needed for it.
    bed.stop_operators();
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    bed.end().await;
}

crate::cases!(
    a_rollout_deleted_on_its_way_sends_traffic_home_before_pods_go,
    a_stable_rollout_is_deleted_at_once
);
