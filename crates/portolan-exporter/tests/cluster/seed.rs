//! Releases put into a cluster in Helm's own storage format, many at a time.

use std::sync::Arc;

use http::Request;
use portolan_helm::storage::{Info, StoredHook, StoredRelease, encode, secret_name};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Where a revision is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    Secret,
    ConfigMap,
}

/// One revision to store.
pub(crate) struct Revision {
    pub(crate) release: String,
    pub(crate) number: i64,
    pub(crate) status: String,
    pub(crate) manifest: String,
    pub(crate) hook: String,
    pub(crate) driver: Driver,
    /// Whether the record cannot be read.
    pub(crate) garbage: bool,
}

impl Revision {
    pub(crate) fn new(release: &str, revision: i64, status: &str, manifest: &str) -> Self {
        Self {
            release: release.to_owned(),
            number: revision,
            status: status.to_owned(),
            manifest: manifest.to_owned(),
            hook: String::new(),
            driver: Driver::Secret,
            garbage: false,
        }
    }

    fn record(&self, namespace: &str) -> String {
        if self.garbage {
            return "bm90IGEgcmVjb3Jk".to_owned();
        }
        let hook = StoredHook {
            manifest: self.hook.clone(),
            ..StoredHook::default()
        };
        encode(&StoredRelease {
            name: self.release.clone(),
            info: Info {
                status: self.status.clone(),
                ..Info::default()
            },
            chart: json!({"metadata": {"name": "chart", "version": "1.0.0"}}),
            config: Value::Null,
            manifest: self.manifest.clone(),
            hooks: if self.hook.is_empty() {
                Vec::new()
            } else {
                vec![hook]
            },
            version: self.number,
            namespace: namespace.to_owned(),
        })
        .expect("a record")
    }

    fn object(&self, namespace: &str) -> (String, Value) {
        let metadata = json!({
            "name": secret_name(&self.release, self.number),
            "labels": {"owner": "helm", "name": self.release, "status": self.status, "version": self.number.to_string()},
        });
        let record = self.record(namespace);
        match self.driver {
            Driver::Secret => (
                format!("/api/v1/namespaces/{namespace}/secrets"),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "helm.sh/release.v1", "stringData": {"release": record}}),
            ),
            Driver::ConfigMap => (
                format!("/api/v1/namespaces/{namespace}/configmaps"),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"release": record}}),
            ),
        }
    }
}

/// Puts objects into one namespace.
pub(crate) struct Seeder {
    client: portolan_cluster::kube::Client,
    namespace: String,
}

impl Seeder {
    /// Makes the namespace.
    pub(crate) async fn new(client: portolan_cluster::kube::Client, namespace: &str) -> Self {
        let seeder = Self::with(client, namespace);
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        seeder.create("/api/v1/namespaces", &object).await;
        seeder
    }

    /// Takes the namespace as it is.
    pub(crate) fn with(client: portolan_cluster::kube::Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        create(&self.client, path, object).await;
    }

    /// Asks for something and does nothing with it.
    pub(crate) async fn get(&self, path: &str) {
        send(&self.client, "GET", path, JSON, String::new()).await;
    }

    /// Changes a revision's status, as far as its labels go.
    pub(crate) async fn set_status(&self, release: &str, revision: i64, status: &str) {
        let patch = json!({"metadata": {"labels": {"status": status}}});
        self.patch(&self.secret(release, revision), &patch).await;
    }

    /// Deletes a revision.
    pub(crate) async fn delete(&self, release: &str, revision: i64) {
        self.delete_at(&self.secret(release, revision)).await;
    }

    /// Deletes what is at a path.
    pub(crate) async fn delete_at(&self, path: &str) {
        send(&self.client, "DELETE", path, JSON, String::new()).await;
    }

    /// Merges a patch into what is at a path.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        send(&self.client, "PATCH", path, MERGE_PATCH, patch.to_string()).await;
    }

    /// The same; tells whether it was taken.
    pub(crate) async fn try_patch(&self, path: &str, patch: &Value) -> bool {
        let answer = ask(&self.client, "PATCH", path, MERGE_PATCH, patch.to_string()).await;
        answer.is_ok()
    }

    /// Puts an object at a path, from YAML, whether there is one or not.
    pub(crate) async fn apply_yaml(&self, path: &str, text: &str) {
        let path = format!("{path}?fieldManager=test&force=true");
        let kind = "application/apply-patch+yaml";
        send(&self.client, "PATCH", &path, kind, text.to_owned()).await;
    }

    /// Reads what is at a path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let answer = ask(&self.client, "GET", path, JSON, String::new()).await;
        serde_json::from_str(&answer.expect("an answer")).expect("JSON")
    }

    /// Posts an object and reads the answer.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Value {
        let answer = ask(&self.client, "POST", path, JSON, object.to_string()).await;
        serde_json::from_str(&answer.expect("an answer")).expect("JSON")
    }

    fn secret(&self, release: &str, revision: i64) -> String {
        let (namespace, name) = (&self.namespace, secret_name(release, revision));
        format!("/api/v1/namespaces/{namespace}/secrets/{name}")
    }

    /// Stores revisions, fifty at a time.
    pub(crate) async fn store(&self, revisions: Vec<Revision>) {
        let revisions = Arc::new(revisions);
        let mut running = JoinSet::new();
        for worker in 0..50 {
            let (client, namespace, revisions) = (
                self.client.clone(),
                self.namespace.clone(),
                Arc::clone(&revisions),
            );
            running.spawn(async move {
                for revision in revisions.iter().skip(worker).step_by(50) {
                    let (path, object) = revision.object(&namespace);
                    create(&client, &path, &object).await;
                }
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.expect("every revision is stored");
        }
    }
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

async fn create(client: &portolan_cluster::kube::Client, path: &str, object: &Value) {
    send(client, "POST", path, JSON, object.to_string()).await;
}

async fn send(
    client: &portolan_cluster::kube::Client,
    method: &str,
    path: &str,
    kind: &str,
    body: String,
) {
    let answer = ask(client, method, path, kind, body).await;
    assert!(answer.is_ok(), "{method} {path}: {answer:?}");
}

async fn ask(
    client: &portolan_cluster::kube::Client,
    method: &str,
    path: &str,
    kind: &str,
    body: String,
) -> Result<String, portolan_cluster::kube::Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    let request = request.body(body.into_bytes()).expect("a request");
    client.request_text(request).await
}
