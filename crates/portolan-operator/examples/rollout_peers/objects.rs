//! Objects of a namespace, as JSON; all that are asked for are named `web`.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_testbed::cluster::eventually;
use portolan_yaml::{Dialect, parse, to_json};
use serde_json::{Value, json};

pub(crate) struct Objects {
    client: kube::Client,
    pub(crate) namespace: String,
}

impl Objects {
    /// Makes the namespace.
    pub(crate) async fn new(client: &kube::Client, namespace: &str) -> Self {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        create(client, None, &object).await;
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
        }
    }

    pub(crate) async fn create(&self, object: &Value) {
        create(&self.client, Some(&self.namespace), object).await;
    }

    pub(crate) async fn patch(&self, group: &str, version: &str, kind: &str, patch: &Value) {
        let api = self.api(group, version, kind);
        let params = PatchParams::default();
        api.patch("web", &params, &Patch::Merge(patch))
            .await
            .expect("changed");
    }

    /// The object; null while it cannot be had.
    pub(crate) async fn get(&self, group: &str, version: &str, kind: &str) -> Value {
        let found = self.api(group, version, kind).get_opt("web").await;
        let found = found.ok().flatten();
        found.map_or(Value::Null, |found| {
            serde_json::to_value(found).expect("JSON")
        })
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }
}

async fn create(client: &kube::Client, namespace: Option<&str>, object: &Value) {
    let api_version = object["apiVersion"].as_str().expect("a version");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().expect("a kind");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}

/// Defines kinds and waits until they are served.
pub(crate) async fn define(client: &kube::Client, text: &str) {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    for document in parse(text, Dialect::Helm).expect("YAML") {
        let document = to_json(&document).expect("JSON");
        let definition: Value = serde_json::from_str(&document).expect("JSON");
        let Some(name) = definition["metadata"]["name"].as_str() else {
            continue;
        };
        create(client, None, &definition).await;
        eventually(name, || async {
            let found = api.get(name).await.expect("the definition");
            let conditions = found.data["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "Established" && condition["status"] == "True"
            })
        })
        .await;
    }
}
