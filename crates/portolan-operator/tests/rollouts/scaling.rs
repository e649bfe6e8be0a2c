//! Who decides how many pods there are: autoscalers of the slots, or a Deployment that stays in its chart.

use kube::api::{Patch, PatchParams};
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, create, spec_with, template};

/// A spec without a number of replicas.
fn spec_without_replicas(image: &str, fields: &Value) -> Value {
    let mut spec = spec_with(image, fields);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("replicas");
    }
    spec
}

/// Kubernetes' own controller carries the autoscalers out. Its pods have no metrics here, so the test scales as load would.
async fn each_slot_has_an_autoscaler_whose_floor_carries_its_share() {
    let Some(bed) = Bed::start("autoscaled").await else {
        return;
    };
    let fields = json!({
        "autoscaling": {"minReplicas": 2, "maxReplicas": 8},
        "strategy": {"weights": [50], "stepInterval": "3s"},
    });
    bed.make_stable(spec_without_replicas("web:1", &fields))
        .await;
    let scalers = bed.api("autoscaling", "v2", "HorizontalPodAutoscaler");
    let floor = async |name: &str| {
        let found = scalers.get_opt(name).await.expect("an answer");
        found.and_then(|found| found.data["spec"]["minReplicas"].as_u64())
    };
    let replicas = async |name: &str| {
        let found = bed.deployments().get_opt(name).await.expect("an answer");
        found.and_then(|found| found.data["spec"]["replicas"].as_u64())
    };
    eventually("the first floor", || async {
        floor("web-a").await == Some(2) && replicas("web-a").await == Some(2)
    })
    .await;
    assert_eq!(floor("web-b").await, None, "an empty slot is not scaled");
    // Load grows: the autoscaler wants six.
    let six = Patch::Merge(json!({"spec": {"replicas": 6}}));
    bed.deployments()
        .patch_scale("web-a", &PatchParams::default(), &six)
        .await
        .expect("scaled");
    bed.wait("six pods", |status| status["replicas"] == 6).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    // Half of the requests of six pods, and a fifth more.
    eventually("the floor of the new revision", || async {
        floor("web-b").await.is_some_and(|floor| floor >= 4)
    })
    .await;
    assert_eq!(
        replicas("web-a").await,
        Some(6),
        "nobody scales the old one down meanwhile"
    );
    bed.happened("Promoted").await;
    let taken = bed.observer.size_at_take_over("b").await;
    assert!(taken >= 6, "the new revision took over with {taken} pods");
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    // When all is over the floor is the user's again, and the old slot has neither pods nor an autoscaler.
    eventually("the last floors", || async {
        floor("web-b").await == Some(2)
            && floor("web-a").await.is_none()
            && replicas("web-a").await == Some(0)
    })
    .await;
    bed.end().await;
}

async fn a_deployment_that_stays_in_its_chart_is_the_template_and_gets_its_pods_back() {
    let Some(bed) = Bed::start("workload").await else {
        return;
    };
    let deployment = |image: &str| {
        let mut template = template(image);
        template["metadata"] = json!({"labels": {"app": "shop"}});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": bed.namespace},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}}, "template": template},
        })
    };
    create(
        &bed.client,
        "apps",
        "v1",
        "Deployment",
        &deployment("web:1"),
    )
    .await;
    let ready = async |pods: u64| {
        let found = bed.deployments().get("shop").await.expect("the Deployment");
        let status = &found.data["status"];
        // Of a Deployment that is scaled back and forth, Kubernetes tells for a moment of pods that are gone.
        let is_settled = status["observedGeneration"].as_i64() == found.metadata.generation;
        let count = |field: &str| status[field].as_u64().unwrap_or(0);
        let counted = (count("replicas"), count("readyReplicas"));
        is_settled
            && found.data["spec"]["replicas"].as_u64() == Some(pods)
            && counted == (pods, pods)
    };
    eventually("its pods", || ready(3)).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": bed.namespace, "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {"selector": {"app": "shop"}, "ports": [{"name": "http", "port": 80}]},
    });
    create(&bed.client, "", "v1", "Service", &service).await;
    let fields = json!({"workloadRef": {"name": "shop"}, "adopt": true});
    let mut spec = spec_without_replicas("web:1", &fields);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("template");
    }
    bed.make_stable(spec).await;
    // Its pods go only when their successors serve.
    eventually("no pods of its own", || ready(0)).await;
    bed.told("WorkloadHeld", "shop").await;
    bed.wait("three pods", |status| status["replicas"] == 3)
        .await;
    // A release is a change of the Deployment; its replicas are not one.
    let change = async |patch: Value| {
        let params = PatchParams::default();
        bed.deployments()
            .patch("shop", &params, &Patch::Strategic(patch))
            .await
            .expect("changed");
    };
    change(json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}})).await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    let image = bed.deployments().get("web-b").await.expect("a slot");
    assert_eq!(
        image.data["spec"]["template"]["spec"]["containers"][0]["image"],
        "web:2"
    );
    let before = bed.status().await["history"].clone();
    change(json!({"spec": {"replicas": 3}})).await;
    eventually("held again", || ready(0)).await;
    assert_eq!(bed.status().await["history"], before);
    // The rollout goes, and the Deployment serves before it does.
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    let found = bed.deployments().get("shop").await.expect("the Deployment");
    assert!(
        ready(3).await,
        "the Deployment has its pods back: {} {}",
        found.data["spec"]["replicas"],
        found.data["status"]
    );
    // So has its Service, and whoever goes by the routes gets there until they are gone.
    let given_back = bed.services().get("web").await.expect("the Service stays");
    assert_eq!(given_back.data["spec"]["selector"], json!({"app": "shop"}));
    assert_eq!(given_back.metadata.owner_references, None);
    assert_eq!(
        given_back.metadata.labels,
        Some([("app.kubernetes.io/managed-by".to_owned(), "Helm".to_owned())].into())
    );
    eventually("the slots are gone", || async {
        let slot = bed.deployments().get_opt("web-b").await;
        slot.expect("an answer").is_none()
    })
    .await;
    bed.observer.catch_up().await;
    let versions = bed.observer.versions();
    let routes = versions
        .iter()
        .rfind(|version| version.kind == "VirtualService" && version.object.is_some());
    let routes = routes.expect("routes");
    let spec = routes.object.as_ref().map(|object| &object["spec"]);
    let spec = spec.map(Value::to_string).unwrap_or_default();
    assert!(!spec.contains("web-a") && !spec.contains("web-b"), "{spec}");
    let gone = versions
        .iter()
        .find(|version| version.kind == "Deployment" && version.object.is_none());
    assert!(routes.number < gone.expect("a deletion").number);
    bed.end().await;
}

crate::cases!(
    each_slot_has_an_autoscaler_whose_floor_carries_its_share,
    a_deployment_that_stays_in_its_chart_is_the_template_and_gets_its_pods_back,
);
