//! What the operator may do: the manifests in `deploy/operator`, applied, and used with the token of their service account.

use portolan_cluster::{Cluster, LeaseOptions};
use portolan_testbed::cluster::{client, eventually};
use portolan_yaml::{Dialect, parse, to_json};
use serde_json::{Value, json};

use crate::bed::{Bed, spec_with};

const RBAC: &str = include_str!("../../../../deploy/operator/rbac.yaml");

async fn the_deployed_role_is_enough() {
    let Some(bed) = Bed::without_operator("rights").await else {
        return;
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portolan"}});
    crate::bed::create(&bed.client, "", "v1", "Namespace", &namespace).await;
    for document in parse(RBAC, Dialect::Helm).expect("YAML") {
        let object: Value = serde_json::from_str(&to_json(&document).expect("JSON")).expect("JSON");
        let api_version = object["apiVersion"].as_str().expect("a version");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().expect("a kind");
        crate::bed::create(&bed.client, group, version, kind, &object).await;
    }
    let request = http::Request::post(
        "/api/v1/namespaces/portolan/serviceaccounts/portolan-operator/token",
    )
    .header("content-type", "application/json")
    .body(
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
            .to_string()
            .into_bytes(),
    )
    .expect("a request");
    let answer: Value = bed.client.request(request).await.expect("a token");
    let token = answer["status"]["token"].as_str().expect("a token");
    let kubeconfig = bed.test_cluster.kubeconfig_for(token);
    let cluster = Cluster::from_client(client(&kubeconfig).await, bed.test_cluster.url());
    let lease = LeaseOptions {
        namespace: "portolan".to_owned(),
        name: "portolan-operator".to_owned(),
        holder: "test".to_owned(),
        duration: std::time::Duration::from_secs(5),
    };
    let operator = bed.operator_on(cluster, Some(lease), None);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": bed.namespace},
        "data": {"colour": "blue"},
    });
    crate::bed::create(&bed.client, "", "v1", "ConfigMap", &settings).await;
    let containers = |image: &str| json!([{"name": "web", "image": image, "envFrom": [{"configMapRef": {"name": "settings"}}]}]);
    let fields = json!({
        "template": {"spec": {"containers": containers("web:1")}},
        "service": {"trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"}}},
    });
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.change(json!({"spec": {"template": {"spec": {"containers": containers("web:2")}}}}))
        .await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    bed.told("Promoted", "proven").await;
    bed.change(json!({"spec": {"template": {"spec": {"containers": containers("web:3")}}, "strategy": {"stepInterval": "60s"}}})).await;
    bed.wait("the third", |status| status["phase"] == "Shifting")
        .await;
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    operator.stop().await;
    bed.end().await;
}

crate::cases!(the_deployed_role_is_enough);
