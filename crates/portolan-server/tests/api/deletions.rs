//! What goes with something else: the content of a namespace, and what has an owner.

use serde_json::json;

use crate::bed::{VARIABLES, bed, eventually, variable};

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_with_its_content_and_nothing_is_created_in_it_meanwhile() {
    let bed = bed().await;
    let namespace =
        json!({"apiVersion": "v1alpha", "kind": "Namespace", "metadata": {"name": "shop"}});
    assert_eq!(bed.post("/api/v1alpha/namespaces", namespace).await.0, 201);
    let mut held = variable("held", json!({"x": 1}));
    held["metadata"]["namespace"] = "shop".into();
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let path = "/api/v1alpha/namespaces/shop/variables";
    assert_eq!(bed.post(path, held.clone()).await.0, 201);
    let (_, dry) = bed.delete("/api/v1alpha/namespaces/shop?dryRun=true").await;
    eventually(|| async {
        bed.delete("/api/v1alpha/namespaces/shop?dryRun=true")
            .await
            .1["dependents"]
            == 1
    })
    .await;
    assert_eq!(dry["deleted"], false);
    assert_eq!(bed.delete("/api/v1alpha/namespaces/shop").await.0, 202);
    let mut other = held.clone();
    other["metadata"]["name"] = "other".into();
    let (status, refused) = bed.post(path, other).await;
    assert_eq!(
        (status.as_u16(), refused["reason"].as_str()),
        (409, Some("Terminating"))
    );

    // The finalizer holds the object, and the object holds the namespace.
    let path = format!("{path}/held");
    eventually(|| async { bed.get(&path).await.1["metadata"]["deletionTimestamp"].is_string() })
        .await;
    let (_, mut marked) = bed.get(&path).await;
    marked["spec"]["values"] = json!({"x": 2});
    assert_eq!(
        bed.put(&path, marked.clone()).await.1["reason"],
        "Terminating"
    );
    let (_, mut marked) = bed.get(&path).await;
    marked["metadata"]["finalizers"] = json!([]);
    assert_eq!(bed.put(&path, marked).await.0, 200);
    eventually(|| async { bed.get("/api/v1alpha/namespaces/shop").await.0 == 404 }).await;
    assert_eq!(bed.get(&path).await.0, 404);
    let (status, protected) = bed.delete("/api/v1alpha/namespaces/system").await;
    assert_eq!(status, 409, "{protected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_go_with_their_owner() {
    let bed = bed().await;
    let (_, owner) = bed
        .post(VARIABLES, variable("owner", json!({"x": 1})))
        .await;
    let mut owned = variable("owned", json!({"x": 1}));
    owned["metadata"]["owners"] =
        json!([{"kind": "Variable", "name": "owner", "uuid": owner["metadata"]["uuid"]}]);
    assert_eq!(bed.post(VARIABLES, owned).await.0, 201);
    assert_eq!(bed.delete(&format!("{VARIABLES}/owner")).await.0, 200);
    eventually(|| async { bed.get(&format!("{VARIABLES}/owned")).await.0 == 404 }).await;
}
