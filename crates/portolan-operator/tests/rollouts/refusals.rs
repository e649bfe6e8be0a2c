//! What cannot be done is said in a condition.

use kube::api::{Patch, PatchParams};
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, create, spec, spec_with};

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = status["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn is_stalled(status: &Value, reason: &str) -> bool {
    condition(status, "Stalled").is_some_and(|stalled| stalled["reason"] == reason)
}

async fn a_template_that_is_refused_holds_until_it_is_mended() {
    let Some(bed) = Bed::start("template").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    let wrong = json!({"spec": {"template": {"spec": {"containers": [{"name": "Web_1", "image": "web:2"}]}}}});
    bed.change(wrong).await;
    let status = bed
        .wait("the refusal", |status| {
            is_stalled(status, "InvalidTemplate")
        })
        .await;
    let message = condition(&status, "Stalled").expect("just found")["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("Web_1") || message.contains("containers[0].name"),
        "{message}"
    );
    bed.reach_shares((100, 0)).await;
    assert!(
        bed.deployments()
            .get_opt("web-b")
            .await
            .expect("an answer")
            .is_none()
    );
    bed.release("web:3").await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    bed.end().await;
}

async fn an_object_of_somebody_else_is_taken_only_when_asked_to() {
    let Some(bed) = Bed::start("adopt").await else {
        return;
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": bed.namespace},
        "spec": {"selector": {"app": "old"}, "ports": [{"name": "http", "port": 80}]},
    });
    create(&bed.client, "", "v1", "Service", &service).await;
    bed.make(spec("web:1")).await;
    let status = bed
        .wait("the refusal", |status| is_stalled(status, "NotOurs"))
        .await;
    let message = condition(&status, "Stalled").expect("just found")["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("Service web exists and is managed by"),
        "{message}"
    );
    let untouched = bed.services().get("web").await.expect("the service");
    assert_eq!(untouched.data["spec"]["selector"], json!({"app": "old"}));
    bed.change(json!({"spec": {"adopt": true}})).await;
    bed.reach("Stable").await;
    bed.told("Adopted", "Service web").await;
    bed.end().await;
}

/// The API server lets some things pass that no spec can mean, and others may write any status.
async fn a_status_of_a_newer_operator_is_left_alone() {
    let Some(mut bed) = Bed::start("newer-status").await else {
        return;
    };
    bed.make_stable(spec("web:1")).await;
    bed.stop_operators();
    let status = json!({"status": {"schema": 99, "phase": "Levitating"}});
    let rollouts = bed.rollouts();
    rollouts
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await
        .expect("patched");
    let operator = bed.operator(None, None).await;
    let status = bed
        .wait("the word", |status| is_stalled(status, "StatusTooNew"))
        .await;
    assert_eq!(
        (&status["schema"], &status["phase"]),
        (&json!(99), &json!("Levitating"))
    );
    bed.release("web:2").await;
    eventually("a look", || async { bed.get().await.is_some() }).await;
    operator.stop().await;
    assert!(
        bed.deployments()
            .get_opt("web-b")
            .await
            .expect("an answer")
            .is_none()
    );
    bed.end().await;
}

async fn routes_of_a_gateway_wait_until_they_are_accepted() {
    let Some(bed) = Bed::start("gateway").await else {
        return;
    };
    let gateway = json!({"routing": {"provider": "gatewayAPI"}});
    bed.make(spec_with("web:1", &gateway)).await;
    let routes = bed.api("gateway.networking.k8s.io", "v1", "HTTPRoute");
    eventually("the route", || async {
        routes.get_opt("web").await.expect("an answer").is_some()
    })
    .await;
    bed.wait("the hold", |status| status["hold"]["reason"] == "Routes")
        .await;
    let route = routes.get("web").await.expect("a route");
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "observedGeneration": route.metadata.generation,
            "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let parent = json!({
        "parentRef": {"group": "", "kind": "Service", "name": "web", "port": 80},
        "controllerName": "example.com/mesh",
        "conditions": [condition("Accepted"), condition("ResolvedRefs")],
    });
    let status = json!({"status": {"parents": [parent]}});
    routes
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await
        .expect("accepted");
    bed.reach("Stable").await;
    bed.end().await;
}

/// Istio and the Gateway API may come after the operator and its rollouts.
async fn a_rollout_waits_for_routes_that_are_defined_later() {
    let definitions = portolan_testbed::cluster::definitions;
    let (Some(istio), Some(gateway)) = (definitions("istio"), definitions("gateway-api")) else {
        return;
    };
    let Some(bed) = Bed::without_routes("later").await else {
        return;
    };
    let _operator = bed.operator(None, None).await;
    bed.make(spec("web:1")).await;
    let status = bed
        .wait("the wait", |status| is_stalled(status, "RoutesNotServed"))
        .await;
    assert!(
        status["slots"]["a"].is_object(),
        "it is planned: {status:#}"
    );
    assert!(
        bed.deployments()
            .get_opt("web-a")
            .await
            .expect("an answer")
            .is_none()
    );
    crate::bed::define(&bed.client, &istio).await;
    bed.reach("Stable").await;
    bed.reach_shares((100, 0)).await;
    // The same with the other kind of routes.
    bed.delete().await;
    eventually("the end", || async {
        bed.get().await.is_none()
            && bed
                .services()
                .get_opt("web")
                .await
                .expect("an answer")
                .is_none()
    })
    .await;
    let routing = json!({"routing": {"provider": "gatewayAPI"}});
    bed.make(spec_with("web:1", &routing)).await;
    bed.wait("the wait", |status| is_stalled(status, "RoutesNotServed"))
        .await;
    crate::bed::define(&bed.client, &gateway).await;
    let routes = bed.api("gateway.networking.k8s.io", "v1", "HTTPRoute");
    eventually("the route", || async {
        routes.get_opt("web").await.expect("an answer").is_some()
    })
    .await;
    bed.end().await;
}

crate::cases!(
    a_template_that_is_refused_holds_until_it_is_mended,
    an_object_of_somebody_else_is_taken_only_when_asked_to,
    a_status_of_a_newer_operator_is_left_alone,
    routes_of_a_gateway_wait_until_they_are_accepted,
    a_rollout_waits_for_routes_that_are_defined_later
);
