//! Somebody else changes or deletes what the operator made.

use kube::api::{DeleteParams, Patch, PatchParams};
use portolan_testbed::cluster::eventually;
use serde_json::json;

use crate::bed::{Bed, spec_with};

async fn what_somebody_changes_is_put_back_with_its_weights_and_they_are_named() {
    let Some(bed) = Bed::start("drift").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s"}, "service": {"timeout": "5s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    let edit = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    // Weights.
    let routes = bed.routes();
    let mut spec = routes.get("web").await.expect("routes").data["spec"].clone();
    spec["http"][0]["route"][0]["weight"] = json!(0);
    spec["http"][0]["route"][1]["weight"] = json!(100);
    routes
        .patch("web", &edit, &Patch::Merge(json!({"spec": spec})))
        .await
        .expect("edited");
    eventually("the weights", || async {
        bed.shares().await == Some((90, 10))
    })
    .await;
    bed.told("DriftCorrected", "`kubectl-edit` changed .spec.http")
        .await;
    // Another field of the routes.
    spec["http"][0]["route"][0]["weight"] = json!(90);
    spec["http"][0]["route"][1]["weight"] = json!(10);
    spec["http"][0]["timeout"] = json!("9s");
    routes
        .patch("web", &edit, &Patch::Merge(json!({"spec": spec})))
        .await
        .expect("edited");
    eventually("the timeout", || async {
        routes.get("web").await.expect("routes").data["spec"]["http"][0]["timeout"] == "5s"
    })
    .await;
    // The application's own Service.
    let services = bed.services();
    let elsewhere = json!({"spec": {"selector": {"app": "other"}}});
    services
        .patch("web", &edit, &Patch::Merge(elsewhere))
        .await
        .expect("edited");
    eventually("the selector", || async {
        services.get("web").await.expect("a service").data["spec"]["selector"]["portolan.dev/slot"]
            == "a"
    })
    .await;
    bed.told(
        "DriftCorrected",
        "Service web: `kubectl-edit` changed .spec.selector",
    )
    .await;
    // The image of a slot.
    let deployments = bed.deployments();
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "evil:1"}]}}}});
    deployments
        .patch("web-a", &edit, &Patch::Strategic(image))
        .await
        .expect("edited");
    eventually("the image", || async {
        let slot = deployments.get("web-a").await.expect("a slot");
        slot.data["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
    })
    .await;
    assert_eq!(bed.status().await["weight"], 10);
    bed.end().await;
}

async fn what_somebody_deletes_is_made_again_with_its_weights() {
    let Some(bed) = Bed::start("deleted").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s", "progressDeadline": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    let uid = async |api: &kube::Api<kube::api::DynamicObject>, name: &str| {
        let found = api.get_opt(name).await.expect("an answer");
        found.and_then(|found| found.metadata.uid)
    };
    for (api, name) in [
        (bed.routes(), "web"),
        (bed.services(), "web"),
        (bed.services(), "web-b"),
        (bed.deployments(), "web-a"),
    ] {
        let before = uid(&api, name).await.expect("it is there");
        api.delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
        eventually(&format!("{name} again"), || async {
            let now = uid(&api, name).await;
            now.is_some_and(|now| now != before)
        })
        .await;
        eventually("the weights", || async {
            bed.shares().await == Some((90, 10))
        })
        .await;
    }
    let slot = bed
        .deployments()
        .get("web-a")
        .await
        .expect("the stable slot");
    assert_eq!(
        slot.data["spec"]["template"]["spec"]["containers"][0]["image"],
        "web:1"
    );
    bed.told("ObjectRestored", "VirtualService web was deleted")
        .await;
    bed.end().await;
}

crate::cases!(
    what_somebody_changes_is_put_back_with_its_weights_and_they_are_named,
    what_somebody_deletes_is_made_again_with_its_weights
);
