//! A server on a store of its own, and how it is asked.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portolan_server::{ApiServer, ServerOptions, TimeSource};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::secrets::vault;

pub(crate) struct Bed {
    pub(crate) router: Router,
    pub(crate) admin: String,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) cancelled: CancellationToken,
    pub(crate) running: tokio::task::JoinHandle<Option<String>>,
    pub(crate) engine: Arc<Embedded>,
}

pub(crate) async fn bed() -> Bed {
    bed_in(tempfile::tempdir().expect("a directory")).await
}

pub(crate) async fn bed_in(directory: tempfile::TempDir) -> Bed {
    bed_with(directory, |_| ()).await
}

/// A server with a clock of its own.
pub(crate) async fn bed_at(directory: tempfile::TempDir, time: Arc<dyn TimeSource>) -> Bed {
    bed_with(directory, |options| options.time = time).await
}

/// A server with other options.
pub(crate) async fn bed_with(
    directory: tempfile::TempDir,
    change: impl FnOnce(&mut ServerOptions),
) -> Bed {
    bed_on(directory, EmbeddedOptions::default(), change).await
}

/// A server on a store with other options.
pub(crate) async fn bed_on(
    directory: tempfile::TempDir,
    engine: EmbeddedOptions,
    change: impl FnOnce(&mut ServerOptions),
) -> Bed {
    let path = directory.path().join("store.redb");
    let engine = Arc::new(Embedded::open(&path, engine).expect("a store"));
    let store = Store::new(Arc::clone(&engine) as Arc<dyn portolan_store::Engine>);
    let vault = portolan_server::VaultOptions {
        address: vault().await,
        token_file: directory.path().join("vault.token"),
        authorities: Vec::new(),
    };
    std::fs::write(&vault.token_file, "the-token-for-vault\n").expect("written");
    let mut options = ServerOptions {
        vault: Some(vault),
        local_git: true,
        ..ServerOptions::new(directory.path())
    };
    change(&mut options);
    let started = ApiServer::start(store, options).await;
    let (running, _) = started.expect("it starts");
    let token = std::fs::read_to_string(directory.path().join("admin.token")).expect("a token");
    let router = running.router(vec!["portolan.test".to_owned()]);
    let cancelled = CancellationToken::new();
    Bed {
        router,
        admin: token.trim().to_owned(),
        running: tokio::spawn(running.run(cancelled.clone())),
        directory,
        cancelled,
        engine,
    }
}

impl Bed {
    pub(crate) async fn ask(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "portolan.test")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        self.send(request.expect("a request")).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().call(request).await.expect("an answer");
        let status = response.status();
        let body = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let value = serde_json::from_slice(&body);
        (
            status,
            value.unwrap_or_else(|_| unreachable!("{}", String::from_utf8_lossy(&body))),
        )
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(&self.admin, "GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(&self.admin, "POST", path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(&self.admin, "PUT", path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (StatusCode, Value) {
        self.ask(&self.admin, "DELETE", path, None).await
    }

    /// A token of a user without rights but those of the rules.
    pub(crate) async fn user(&self, name: &str, rules: Value) -> String {
        let role = json!({"apiVersion": "v1alpha", "kind": "ClusterRole", "metadata": {"name": name}, "spec": {"rules": rules}});
        assert_eq!(self.post("/api/v1alpha/clusterroles", role).await.0, 201);
        let binding = json!({
            "apiVersion": "v1alpha", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "spec": {"role": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "user", "name": name}]},
        });
        assert_eq!(
            self.post("/api/v1alpha/clusterrolebindings", binding)
                .await
                .0,
            201
        );
        let (status, token) = self
            .post(
                "/api/v1alpha/auth/tokens",
                json!({"user": name, "life": "1h"}),
            )
            .await;
        assert_eq!(status, 201, "{token}");
        let token = token["token"].as_str().expect("a token").to_owned();
        // Rights come from the cache, which follows the store a moment later.
        eventually(|| async {
            let (_, rights) = self
                .ask(&token, "GET", "/api/v1alpha/auth/rights", None)
                .await;
            !rights["items"].as_array().expect("a list").is_empty()
        })
        .await;
        token
    }

    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("audit.log")).expect("a log");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    pub(crate) async fn stop(self) -> tempfile::TempDir {
        self.cancelled.cancel();
        self.running.await.expect("it ends");
        drop(self.router);
        drop(self.engine);
        self.directory
    }
}

/// Waits until something holds, for ten seconds at most.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "it never held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
pub(crate) fn variable(name: &str, values: Value) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": name, "namespace": "default"},
        "spec": {"values": values},
    })
}

pub(crate) const VARIABLES: &str = "/api/v1alpha/namespaces/default/variables";
