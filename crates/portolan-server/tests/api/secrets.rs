//! Secrets: who sees their values, what becomes of them without their key, and those of Vault.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use portolan_server::{ApiServer, ServerOptions};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bed::bed;

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_never_shown_without_the_right_to_it() {
    let bed = bed().await;
    let secrets = "/api/v1alpha/namespaces/default/secrets";
    let secret = json!({
        "apiVersion": "v1alpha", "kind": "Secret", "metadata": {"name": "db", "namespace": "default"},
        "spec": {"type": "login", "values": {"password": "correct-horse-battery"}},
    });
    let (status, created) = bed.post(secrets, secret.clone()).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["status"]["keys"], json!(["password"]));
    let path = format!("{secrets}/db");
    let reader = bed
        .user(
            "ann",
            json!([{"verbs": ["get", "list", "update"], "kinds": ["Secret"]}]),
        )
        .await;
    for (_, answer) in [
        bed.get(&path).await,
        bed.get(secrets).await,
        bed.get(&format!("{path}?history=true")).await,
    ] {
        assert!(!answer.to_string().contains("correct-horse"), "{answer}");
    }
    let (_, revealed) = bed.get(&format!("{path}?reveal=true")).await;
    assert_eq!(
        revealed["spec"]["values"]["password"],
        "correct-horse-battery"
    );
    let (status, refused) = bed
        .ask(&reader, "GET", &format!("{path}?reveal=true"), None)
        .await;
    assert_eq!(status, 403, "{refused}");

    // Sent back without values it keeps them; who cannot read them always makes a new revision.
    let (_, mut read) = bed.ask(&reader, "GET", &path, None).await;
    read["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(bed.ask(&reader, "PUT", &path, Some(read)).await.0, 200);
    let (_, revealed) = bed.get(&format!("{path}?reveal=true")).await;
    assert_eq!(
        revealed["spec"]["values"]["password"],
        "correct-horse-battery"
    );
    let (_, before) = bed.get(&path).await;
    let apply = format!("{path}?apply=true");
    let (_, same) = bed.put(&apply, secret.clone()).await;
    assert_eq!(
        same["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    let (_, blind) = bed.ask(&reader, "PUT", &apply, Some(secret)).await;
    assert_ne!(
        blind["metadata"]["generation"], before["metadata"]["generation"],
        "{blind}"
    );

    let directory = bed.stop().await;
    for file in ["store.redb", "audit.log"] {
        let bytes = std::fs::read(directory.path().join(file)).expect("a file");
        let found = bytes.windows(13).any(|part| part == b"correct-horse");
        assert!(!found, "{file}");
    }
    let log = std::fs::read_to_string(directory.path().join("audit.log")).expect("a log");
    assert!(
        log.contains("\"verb\":\"read-secret\"") && log.contains("\"status\":403"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_without_their_key_stop_the_start() {
    let bed = bed().await;
    let secret = json!({
        "apiVersion": "v1alpha", "kind": "Secret", "metadata": {"name": "db", "namespace": "default"},
        "spec": {"values": {"password": "x"}},
    });
    assert_eq!(
        bed.post("/api/v1alpha/namespaces/default/secrets", secret)
            .await
            .0,
        201
    );
    let directory = bed.stop().await;
    std::fs::remove_file(directory.path().join("secrets.key")).expect("removed");
    let engine = Embedded::open(
        &directory.path().join("store.redb"),
        EmbeddedOptions::default(),
    )
    .expect("a store");
    let started = ApiServer::start(
        Store::new(Arc::new(engine)),
        ServerOptions::new(directory.path()),
    )
    .await;
    let error = started.err().expect("no key");
    assert!(
        error.to_string().contains("1 secrets are sealed with keys"),
        "{error}"
    );
}

/// A server with the answers of Vault's key-value engine, version 2; returns its address.
pub(crate) async fn vault() -> String {
    let answer = |request: Request<Body>| async move {
        let is_known = request
            .headers()
            .get("x-vault-token")
            .is_some_and(|token| token == "the-token-for-vault");
        match request.uri().path() {
            _ if !is_known => (
                StatusCode::FORBIDDEN,
                "{\"errors\":[\"permission denied\"]}".to_owned(),
            ),
            "/v1/secret/data/teams/shop/db" => {
                let data = json!({"data": {"password": "from-the-vault", "port": 5432}, "metadata": {"version": 3}});
                (
                    StatusCode::OK,
                    json!({"request_id": "1", "data": data}).to_string(),
                )
            }
            _ => (StatusCode::NOT_FOUND, "{\"errors\":[]}".to_owned()),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route("/{*path}", axum::routing::any(answer));
    tokio::spawn(portolan_listen::serve(
        listener,
        router,
        portolan_listen::ListenConfig::default(),
        CancellationToken::new(),
    ));
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_vault_are_read_below_the_prefix_of_their_namespace() {
    let bed = bed().await;
    let namespace = json!({"apiVersion": "v1alpha", "kind": "Namespace", "metadata": {"name": "shop"}, "spec": {}});
    let (_, namespace) = bed.post("/api/v1alpha/namespaces", namespace).await;
    let secrets = "/api/v1alpha/namespaces/shop/secrets";
    let secret = |name: &str, path: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"vault": {"path": path, "keys": ["password"]}},
        })
    };
    assert_eq!(bed.post(secrets, secret("db", "db")).await.0, 201);
    assert_eq!(bed.post(secrets, secret("other", "db2")).await.0, 201);
    assert_eq!(bed.post(secrets, secret("out", "../other/db")).await.0, 422);
    let (_, without) = bed.get(&format!("{secrets}/db?reveal=true")).await;
    assert!(
        without["error"]
            .as_str()
            .expect("text")
            .contains("has no `vaultPrefix`"),
        "{without}"
    );
    let mut namespace = namespace;
    namespace["spec"]["vaultPrefix"] = "secret/teams/shop".into();
    assert_eq!(
        bed.put("/api/v1alpha/namespaces/shop", namespace).await.0,
        200
    );
    let (status, revealed) = bed.get(&format!("{secrets}/db?reveal=true")).await;
    assert_eq!(status, 200, "{revealed}");
    assert_eq!(
        revealed["spec"]["values"],
        json!({"password": "from-the-vault"})
    );
    let (status, missing) = bed.get(&format!("{secrets}/other?reveal=true")).await;
    assert_eq!(
        (
            status.as_u16(),
            missing["error"]
                .as_str()
                .is_some_and(|text| text.contains("no secret `db2`"))
        ),
        (502, true)
    );
    std::fs::write(bed.directory.path().join("vault.token"), "revoked").expect("written");
    let (status, denied) = bed.get(&format!("{secrets}/db?reveal=true")).await;
    assert_eq!(status, 502, "{denied}");
    assert!(
        !bed.get(&format!("{secrets}/db"))
            .await
            .1
            .to_string()
            .contains("from-the-vault")
    );
    let asked = bed
        .audit()
        .into_iter()
        .filter(|entry| entry["verb"] == "read-secret")
        .count();
    assert_eq!(asked, 4);
}
