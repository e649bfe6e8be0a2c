//! The rollout is deleted.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, create, shares_of, spec, spec_with};
use crate::observer::Version;

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

/// Routes of a user, by which one of three destinations is the application.
fn users_routes(namespace: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"hosts": ["shop.example.com"], "gateways": ["istio-system/public"], "http": [
            {"name": "app", "timeout": "3s", "route": [{"destination": {"host": "web"}}]},
            {"name": "part", "match": [{"uri": {"prefix": "/part"}}], "route": [
                {"destination": {"host": "web"}, "weight": 70}, {"destination": {"host": "legacy"}, "weight": 30},
            ]},
            {"name": "other", "match": [{"uri": {"prefix": "/other"}}], "route": [{"destination": {"host": "other"}}]},
        ]},
    })
}

/// Routes that are the user's stay, and must not lead to Services that go: not for a moment.
async fn routes_of_the_user_are_given_back_before_a_rollout_goes(bed: Bed, is_on_its_way: bool) {
    let routes = users_routes(&bed.namespace);
    create(
        &bed.client,
        "networking.istio.io",
        "v1",
        "VirtualService",
        &routes,
    )
    .await;
    let fields =
        json!({"virtualServiceRef": {"name": "shop"}, "strategy": {"stepInterval": "60s"}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    let now = async || bed.routes().get("shop").await.expect("the routes").data["spec"].clone();
    if is_on_its_way {
        bed.release("web:2").await;
        bed.happened("Started").await;
        eventually("traffic", || async {
            shares_of(&now().await) == Some((90, 10))
        })
        .await;
    }
    assert_ne!(now().await, routes["spec"], "they are split");
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    assert_eq!(now().await, routes["spec"]);
    eventually("what it made", || async {
        let services = bed.services().list(&ListParams::default()).await;
        services.expect("a list").items.is_empty()
    })
    .await;
    bed.observer.catch_up().await;
    let versions = bed.observer.versions();
    let leads_to_slots = |version: &&Version| {
        let text = version.object.as_ref().map(Value::to_string);
        version.kind == "VirtualService" && text.is_some_and(|text| text.contains("\"web-"))
    };
    let last = versions.iter().rfind(leads_to_slots).expect("split routes");
    let gone = versions.iter().find(|version| {
        matches!(version.kind, "Deployment" | "Service") && version.object.is_none()
    });
    assert!(last.number < gone.expect("a deletion").number);
    bed.end().await;
}

async fn a_stable_rollout_that_is_deleted_gives_routes_back_to_their_user() {
    if let Some(bed) = Bed::start("back-stable").await {
        routes_of_the_user_are_given_back_before_a_rollout_goes(bed, false).await;
    }
}

async fn a_rollout_deleted_on_its_way_gives_routes_back_to_their_user() {
    if let Some(bed) = Bed::start("back-moving").await {
        routes_of_the_user_are_given_back_before_a_rollout_goes(bed, true).await;
    }
}

/// What cannot be done any more keeps nothing: here nobody may change routes, and the namespace goes.
async fn a_deletion_is_not_kept_by_routes_that_cannot_be_changed() {
    let Some(bed) = Bed::start("kept").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    let nobody = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": bed.namespace},
        "webhooks": [{
            "name": "nobody.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bed.namespace}},
            "rules": [{"apiGroups": ["networking.istio.io"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["virtualservices"]}],
        }],
    });
    create(
        &bed.client,
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        &nobody,
    )
    .await;
    eventually("nobody may change routes", || async {
        let label = Patch::Merge(json!({"metadata": {"labels": {"tried": "yes"}}}));
        let params = PatchParams::default();
        bed.routes().patch("web", &params, &label).await.is_err()
    })
    .await;
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    namespaces
        .delete(&bed.namespace, &DeleteParams::default())
        .await
        .expect("deleted");
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
}

/// Others may write any status; one that cannot be read keeps nobody from deleting.
async fn a_rollout_whose_status_cannot_be_read_can_be_deleted() {
    let Some(bed) = Bed::start("unreadable").await else {
        return;
    };
    let slow = json!({"strategy": {"stepInterval": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    eventually("traffic", || async { bed.shares().await == Some((90, 10)) }).await;
    let odd = json!({"status": {"phase": "Levitating"}});
    bed.rollouts()
        .patch_status("web", &PatchParams::default(), &Patch::Merge(odd))
        .await
        .expect("written");
    bed.wait("the word", |status| {
        status.to_string().contains("InvalidStatus")
    })
    .await;
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
}

crate::cases!(
    a_rollout_whose_status_cannot_be_read_can_be_deleted,
    a_rollout_deleted_on_its_way_sends_traffic_home_before_pods_go,
    a_stable_rollout_is_deleted_at_once,
    a_stable_rollout_that_is_deleted_gives_routes_back_to_their_user,
    a_rollout_deleted_on_its_way_gives_routes_back_to_their_user,
    a_deletion_is_not_kept_by_routes_that_cannot_be_changed,
);
