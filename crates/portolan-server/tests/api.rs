//! The API as clients see it: requests to the router, on a store in a directory of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portolan_server::{ApiServer, ServerOptions};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

struct Bed {
    router: Router,
    admin: String,
    directory: tempfile::TempDir,
    cancelled: CancellationToken,
    running: tokio::task::JoinHandle<Option<String>>,
    engine: Arc<Embedded>,
}

async fn bed() -> Bed {
    bed_in(tempfile::tempdir().expect("a directory")).await
}

async fn bed_in(directory: tempfile::TempDir) -> Bed {
    let path = directory.path().join("store.redb");
    let engine = Arc::new(Embedded::open(&path, EmbeddedOptions::default()).expect("a store"));
    let store = Store::new(Arc::clone(&engine) as Arc<dyn portolan_store::Engine>);
    let vault = portolan_server::VaultOptions {
        address: vault().await,
        token_file: directory.path().join("vault.token"),
        authorities: Vec::new(),
    };
    std::fs::write(&vault.token_file, "the-token-for-vault\n").expect("written");
    let options = ServerOptions {
        vault: Some(vault),
        local_git: true,
        ..ServerOptions::new(directory.path())
    };
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
    async fn ask(
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

    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
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

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(&self.admin, "GET", path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(&self.admin, "POST", path, Some(body)).await
    }

    async fn put(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(&self.admin, "PUT", path, Some(body)).await
    }

    async fn delete(&self, path: &str) -> (StatusCode, Value) {
        self.ask(&self.admin, "DELETE", path, None).await
    }

    /// A token of a user without rights but those of the rules.
    async fn user(&self, name: &str, rules: Value) -> String {
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

    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("audit.log")).expect("a log");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    async fn stop(self) -> tempfile::TempDir {
        self.cancelled.cancel();
        self.running.await.expect("it ends");
        drop(self.router);
        drop(self.engine);
        self.directory
    }
}

/// Waits until something holds, for ten seconds at most.
async fn eventually<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "it never held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn variable(name: &str, values: Value) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": name, "namespace": "default"},
        "spec": {"values": values},
    })
}

const VARIABLES: &str = "/api/v1alpha/namespaces/default/variables";

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_created_read_updated_and_deleted() {
    let bed = bed().await;
    let (status, created) = bed
        .post(VARIABLES, variable("region", json!({"region": "north"})))
        .await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["metadata"]["generation"], 1);
    let (status, again) = bed
        .post(VARIABLES, variable("region", json!({"region": "x"})))
        .await;
    assert_eq!(
        (status.as_u16(), again["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    let path = format!("{VARIABLES}/region");
    let (_, read) = bed.get(&path).await;
    assert_eq!(read, created);

    let (status, refused) = bed
        .put(&path, variable("region", json!({"region": "south"})))
        .await;
    assert_eq!(
        (status.as_u16(), refused["reason"].as_str()),
        (428, Some("VersionRequired"))
    );
    let mut update = read.clone();
    update["spec"]["values"]["region"] = "south".into();
    let (status, updated) = bed.put(&path, update.clone()).await;
    assert_eq!(status, 200, "{updated}");
    assert_eq!(updated["metadata"]["generation"], 2);
    assert_ne!(
        updated["metadata"]["resourceVersion"],
        read["metadata"]["resourceVersion"]
    );

    update["spec"]["values"]["region"] = "west".into();
    let (status, conflict) = bed.put(&path, update).await;
    assert_eq!(
        (status.as_u16(), conflict["reason"].as_str()),
        (409, Some("Conflict"))
    );
    assert_eq!(
        conflict["details"]["changed"],
        json!(["metadata.generation", "spec.values.region"])
    );

    let (status, wrong) = bed.delete(&format!("{path}?uuid=x")).await;
    assert_eq!(status, 409, "{wrong}");
    let (status, deleted) = bed.delete(&path).await;
    assert_eq!((status.as_u16(), &deleted["deleted"]), (200, &json!(true)));
    assert_eq!(bed.get(&path).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_keeps_what_others_added_and_writes_nothing_when_nothing_changed() {
    let bed = bed().await;
    let path = format!("{VARIABLES}/a?apply=true");
    let mut applied = variable("a", json!({"x": 1}));
    applied["metadata"]["labels"] = json!({"mine": "1", "also": "2"});
    let (_, first) = bed.put(&path, applied.clone()).await;
    let (_, second) = bed.put(&path, applied.clone()).await;
    assert_eq!(first, second, "nothing changed");

    let mut other = second.clone();
    other["metadata"]["labels"]["theirs"] = "3".into();
    let (status, _) = bed.put(&format!("{VARIABLES}/a"), other).await;
    assert_eq!(status, 200);
    applied["metadata"]["labels"] = json!({"mine": "9"});
    let (_, third) = bed.put(&path, applied).await;
    assert_eq!(
        third["metadata"]["labels"],
        json!({"mine": "9", "theirs": "3"})
    );
    assert_eq!(third["metadata"]["generation"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_object_is_told_with_every_field_and_changes_nothing() {
    let bed = bed().await;
    let mut wrong = variable("a", json!({"1x": 1}));
    wrong["spec"]["vales"] = json!(3);
    let (status, error) = bed.post(VARIABLES, wrong).await;
    assert_eq!(status, 422);
    let faults = error["details"]["faults"].as_array().expect("faults");
    let paths: Vec<&str> = faults
        .iter()
        .filter_map(|fault| fault["path"].as_str())
        .collect();
    assert!(
        paths.contains(&"spec.vales") && paths.contains(&"spec.values.1x"),
        "{error}"
    );
    let (status, _) = bed
        .post(
            &format!("{VARIABLES}?dryRun=true"),
            variable("a", json!({"x": 1})),
        )
        .await;
    assert_eq!(status, 201);
    let (_, list) = bed.get(VARIABLES).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_are_of_one_revision() {
    let bed = bed().await;
    for number in 0..7 {
        let mut object = variable(&format!("v{number}"), json!({"n": number}));
        object["metadata"]["labels"] = json!({"odd": (number % 2).to_string()});
        assert_eq!(bed.post(VARIABLES, object).await.0, 201);
    }
    let (_, first) = bed.get(&format!("{VARIABLES}?limit=3")).await;
    bed.delete(&format!("{VARIABLES}/v5")).await;
    let mut names: Vec<String> = Vec::new();
    let mut page = first.clone();
    loop {
        let items = page["items"].as_array().expect("a list");
        names.extend(
            items
                .iter()
                .filter_map(|item| item["metadata"]["name"].as_str())
                .map(str::to_owned),
        );
        assert_eq!(
            page["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"]
        );
        let Some(next) = page["metadata"]["continue"].as_str() else {
            break;
        };
        page = bed
            .get(&format!("{VARIABLES}?limit=3&continue={next}"))
            .await
            .1;
    }
    assert_eq!(names, ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]);
    let (_, odd) = bed.get(&format!("{VARIABLES}?labelSelector=odd%3D1")).await;
    assert_eq!(odd["items"].as_array().map(Vec::len), Some(2));
    let (_, one) = bed
        .get("/api/v1alpha/variables?fieldSelector=metadata.name%3Dv2")
        .await;
    assert_eq!(one["items"].as_array().map(Vec::len), Some(1));
    let (status, wrong) = bed
        .get(&format!("{VARIABLES}?fieldSelector=spec.x%3D1"))
        .await;
    assert_eq!(status, 400, "{wrong}");
    assert_eq!(bed.get(&format!("{VARIABLES}?continue=x")).await.0, 400);
    assert_eq!(
        bed.get(&format!("{VARIABLES}?resourceVersion=7.1&watch=true"))
            .await
            .0,
        410
    );
}

async fn watch(bed: &Bed, query: &str, accept: &str) -> axum::body::BodyDataStream {
    let request = Request::builder()
        .uri(format!("{VARIABLES}?watch=true{query}"))
        .header(header::HOST, "portolan.test")
        .header(header::ACCEPT, accept)
        .header(header::AUTHORIZATION, format!("Bearer {}", bed.admin))
        .body(Body::empty())
        .expect("a request");
    let response = bed.router.clone().call(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream()
}

async fn next(stream: &mut axum::body::BodyDataStream) -> String {
    let next = futures_util::StreamExt::next(stream);
    let piece = tokio::time::timeout(Duration::from_secs(10), next)
        .await
        .expect("in time");
    String::from_utf8(piece.expect("a piece").expect("bytes").to_vec()).expect("text")
}

/// The type of a message, the name of its object and one label.
fn seen(line: &str) -> (String, String) {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|_| unreachable!("{line}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&value["type"]),
        text(&value["object"]["metadata"]["name"]),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_the_objects_then_every_change_of_what_it_selects() {
    let bed = bed().await;
    let mut a = variable("a", json!({"x": 1}));
    a["metadata"]["labels"] = json!({"in": "yes"});
    let (_, a) = bed.post(VARIABLES, a).await;
    bed.post(VARIABLES, variable("b", json!({"x": 1}))).await;
    let mut stream = watch(&bed, "&labelSelector=in%3Dyes", "*/*").await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "a".to_owned())
    );
    let bookmark = next(&mut stream).await;
    assert_eq!(seen(&bookmark).0, "BOOKMARK");

    // An object that comes into the selection is added, one that leaves it is deleted.
    let (_, mut b) = bed.get(&format!("{VARIABLES}/b")).await;
    b["metadata"]["labels"] = json!({"in": "yes"});
    bed.put(&format!("{VARIABLES}/b"), b).await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "b".to_owned())
    );
    let mut left = a.clone();
    left["metadata"]["labels"] = json!({});
    bed.put(&format!("{VARIABLES}/a"), left).await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("DELETED".to_owned(), "a".to_owned())
    );

    // A watch goes on where another one ended, also as server-sent events.
    let version: Value = serde_json::from_str(&bookmark).expect("JSON");
    let version = version["object"]["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned();
    let mut resumed = watch(
        &bed,
        &format!("&labelSelector=in%3Dyes&resourceVersion={version}"),
        "text/event-stream",
    )
    .await;
    let first = next(&mut resumed).await;
    assert!(
        first.starts_with("id: 1.") && first.contains("event: ADDED\ndata: {"),
        "{first}"
    );
    bed.delete(&format!("{VARIABLES}/b")).await;
    assert!(
        next(&mut resumed).await.contains("event: DELETED"),
        "a left"
    );
    assert!(
        next(&mut resumed).await.contains("event: DELETED"),
        "b is gone"
    );

    // When the server ends, the last thing is a bookmark.
    bed.cancelled.cancel();
    let mut last = next(&mut stream).await;
    while seen(&last).0 == "DELETED" {
        last = next(&mut stream).await;
    }
    assert_eq!(seen(&last).0, "BOOKMARK");
}

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
async fn rights_are_given_by_roles_and_nobody_gives_more_than_they_have() {
    let bed = bed().await;
    let ann = bed.user("ann", json!([
        {"verbs": ["get", "list", "watch"], "kinds": ["Variable"]},
        {"verbs": ["create", "update"], "kinds": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]},
    ])).await;
    assert_eq!(bed.ask(&ann, "GET", VARIABLES, None).await.0, 200);
    let (status, refused) = bed
        .ask(
            &ann,
            "POST",
            VARIABLES,
            Some(variable("a", json!({"x": 1}))),
        )
        .await;
    assert_eq!(status, 403);
    assert_eq!(
        refused["details"]["missing"],
        json!({"verbs": ["create"], "kinds": ["Variable"], "namespace": "default"})
    );
    // Whether an object exists is not told to who may not see it.
    for name in ["admin", "nobody"] {
        let (status, _) = bed
            .ask(
                &ann,
                "GET",
                &format!("/api/v1alpha/clusterroles/{name}"),
                None,
            )
            .await;
        assert_eq!(status, 403);
    }
    let role = |verb: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "ClusterRole", "metadata": {"name": format!("own-{verb}")},
            "spec": {"rules": [{"verbs": [verb], "kinds": ["Variable"]}]},
        })
    };
    assert_eq!(
        bed.ask(&ann, "POST", "/api/v1alpha/clusterroles", Some(role("get")))
            .await
            .0,
        201
    );
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/clusterroles",
            Some(role("delete"))
        )
        .await
        .0,
        403
    );
    let binding = json!({
        "apiVersion": "v1alpha", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "spec": {"role": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "user", "name": "ann"}]},
    });
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/clusterrolebindings",
            Some(binding)
        )
        .await
        .0,
        403
    );
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/auth/tokens",
            Some(json!({"user": "admin"}))
        )
        .await
        .0,
        403
    );
    let (_, can) = bed
        .ask(
            &ann,
            "POST",
            "/api/v1alpha/auth/can-i",
            Some(json!({"verb": "get", "kind": "var", "namespace": "x"})),
        )
        .await;
    assert_eq!(can["allowed"], true);
    assert!(
        can["because"]
            .as_str()
            .expect("a reason")
            .contains("ClusterRoleBinding ann"),
        "{can}"
    );

    // Every refusal is in the audit log, in a chain that nobody can change unnoticed.
    let refusals = bed
        .audit()
        .into_iter()
        .filter(|entry| entry["status"] == 403)
        .count();
    assert_eq!(refusals, 6);
    let directory = bed.stop().await;
    let log = directory.path().join("audit.log");
    portolan_server::verify_audit(directory.path(), None).expect("a whole log");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(
        &log,
        text.replacen("\"user\":\"ann\"", "\"user\":\"eve\"", 1),
    )
    .expect("written");
    portolan_server::verify_audit(directory.path(), None).expect_err("a changed log");
    let short: String = text.split_inclusive('\n').take(2).collect();
    std::fs::write(&log, short).expect("written");
    let cut =
        portolan_server::verify_audit(directory.path(), Some((5, ""))).expect_err("a cut log");
    assert!(cut.to_string().contains("ends at entry 2"), "{cut}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_good_token_learns_nothing() {
    let bed = bed().await;
    let id = &bed.admin[4..20];
    let tokens = [
        "x".to_owned(),
        format!("ptl_{id}_{}", "0".repeat(64)),
        format!("ptl_{}_{}", "0".repeat(16), "0".repeat(64)),
    ];
    let mut answers = Vec::new();
    for token in &tokens {
        let (status, answer) = bed.ask(token, "GET", VARIABLES, None).await;
        assert_eq!(status, 401);
        answers.push(answer);
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let request = |headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri(VARIABLES);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    };
    let bearer = format!("Bearer {}", bed.admin);
    let cases = [
        (401, vec![("host", "portolan.test")]),
        (401, vec![("host", "portolan.test"), ("cookie", "token=x")]),
        (
            401,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("authorization", &bearer),
            ],
        ),
        (
            401,
            vec![("host", "portolan.test"), ("authorization", "Basic YTpi")],
        ),
        (
            421,
            vec![("host", "evil.example"), ("authorization", &bearer)],
        ),
        (
            403,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("origin", "https://evil.example"),
            ],
        ),
        (
            403,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("sec-fetch-site", "cross-site"),
            ],
        ),
    ];
    for (status, headers) in cases {
        assert_eq!(bed.send(request(&headers)).await.0, status, "{headers:?}");
    }
    // A token that was ended works no more, and its watch is cut.
    let ann = bed
        .user("ann", json!([{"verbs": ["watch"], "kinds": ["Variable"]}]))
        .await;
    assert_eq!(
        bed.delete(&format!("/api/v1alpha/auth/tokens/{}", &ann[4..20]))
            .await
            .0,
        200
    );
    assert_eq!(bed.ask(&ann, "GET", VARIABLES, None).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_has_everything_and_watches_resume() {
    let first = bed().await;
    let (_, created) = first.post(VARIABLES, variable("a", json!({"x": 1}))).await;
    first.post(VARIABLES, variable("b", json!({"x": 1}))).await;
    let directory = first.stop().await;
    let second = bed_in(directory).await;
    assert_eq!(second.get(&format!("{VARIABLES}/a")).await.1, created);
    let version = created["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let mut stream = watch(&second, &format!("&resourceVersion={version}"), "*/*").await;
    assert_eq!(
        seen(&next(&mut stream).await),
        ("ADDED".to_owned(), "b".to_owned())
    );
    let (_, status) = second.get("/api/v1alpha/status").await;
    assert_eq!(status["store"]["engine"], "embedded");
    assert_eq!(second.get("/openapi.json").await.1["openapi"], "3.1.0");
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

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn repository(spec: Value) -> Value {
    json!({"apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "main"}, "spec": spec})
}

const REPOSITORY: &str = "/api/v1alpha/repositories/main";

impl Bed {
    /// Waits until the status of the repository says something.
    async fn told(&self, field: &str, part: &str) -> Value {
        eventually(|| async {
            let (_, repository) = self.get(REPOSITORY).await;
            repository["status"][field]
                .as_str()
                .is_some_and(|text| text.contains(part))
        })
        .await;
        self.get(REPOSITORY).await.1["status"].clone()
    }
}

fn write(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
}

fn region(value: &str) -> String {
    format!(
        "apiVersion: v1alpha\nkind: Variable\nmetadata: {{name: region}}\nspec: {{values: {{region: {value}}}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_applied_as_its_account_and_a_bad_state_changes_nothing() {
    let bed = bed().await;
    bed.user(
        "git",
        json!([{"verbs": ["create", "update"], "kinds": ["Variable"]}]),
    )
    .await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    write(&root.join("fleet/region.yaml"), &region("north"));
    write(
        &root.join("fleet/role.yaml"),
        "apiVersion: v1alpha\nkind: ClusterRole\nmetadata: {name: x}\nspec: {rules: [{verbs: [get], kinds: [Node]}]}\n",
    );
    let spec = json!({"dir": root, "path": "fleet", "namespace": "default", "serviceAccount": "git", "interval": "1s"});
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository(spec))
            .await
            .0,
        201
    );

    // The account may write variables and nothing else.
    let status = bed
        .told(
            "error",
            "fleet/role.yaml:1: user git may not create ClusterRole",
        )
        .await;
    assert!(
        status["error"]
            .as_str()
            .expect("text")
            .contains("has rights that you do not have"),
        "{status}"
    );
    assert_eq!(
        bed.get(&format!("{VARIABLES}/region")).await.0,
        404,
        "nothing was applied"
    );
    std::fs::remove_file(root.join("fleet/role.yaml")).expect("removed");
    eventually(|| async { bed.get(REPOSITORY).await.1["status"]["objects"] == 1 }).await;
    let (_, object) = bed.get(&format!("{VARIABLES}/region")).await;
    assert_eq!(object["metadata"]["source"]["path"], "fleet/region.yaml");

    // Others cannot change it.
    let mut changed = object.clone();
    changed["spec"]["values"]["region"] = "west".into();
    let (status, refused) = bed.put(&format!("{VARIABLES}/region"), changed).await;
    assert_eq!(
        (status.as_u16(), refused["reason"].as_str()),
        (409, Some("Managed"))
    );
    assert_eq!(
        bed.delete(&format!("{VARIABLES}/region")).await.1["reason"],
        "Managed"
    );

    // A fault anywhere changes nothing anywhere, and is told with file and line.
    write(&root.join("fleet/region.yaml"), &region("south"));
    write(
        &root.join("fleet/bad.yaml"),
        "apiVersion: v1alpha\nkind: Variable\nmetadata: {name: bad}\nspec:\n  vales: {}\n",
    );
    let status = bed
        .told("error", "fleet/bad.yaml:5:3: `spec.vales` is not a field")
        .await;
    assert!(
        status["failedCommit"].is_string() && status["commit"] != status["failedCommit"],
        "{status}"
    );
    assert_eq!(
        bed.get(&format!("{VARIABLES}/region")).await.1["spec"]["values"]["region"],
        "north"
    );
    write(&root.join("fleet/bad.yaml"), &region("x"));
    bed.told("error", "Variable default/region is also at")
        .await;
    std::fs::remove_file(root.join("fleet/bad.yaml")).expect("removed");
    eventually(|| async {
        bed.get(&format!("{VARIABLES}/region")).await.1["spec"]["values"]["region"] == "south"
    })
    .await;

    // A prune needs the right to delete.
    write(
        &root.join("fleet/other.yaml"),
        &region("north").replace("name: region", "name: other"),
    );
    std::fs::remove_file(root.join("fleet/region.yaml")).expect("removed");
    bed.told("error", "user git may not delete Variable region")
        .await;

    // Without its repository an object is anybody's again.
    assert_eq!(bed.delete(REPOSITORY).await.0, 200);
    eventually(|| async { bed.delete(&format!("{VARIABLES}/region")).await.0 == 200 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_repository_is_applied_pruned_and_asked_about_before_it_deletes_much() {
    let bed = bed().await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(args)
            .current_dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git is installed");
        assert!(
            output.status.success(),
            "{args:?} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    for number in 0..15 {
        let text = region("north").replace("name: region", &format!("name: v{number}"));
        write(&root.join(format!("v{number}.yaml")), &text);
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let first = git(&["rev-parse", "HEAD"]);
    let url = format!("file://{}", root.display());
    let mut spec = json!({"url": url, "ref": "main", "namespace": "default", "serviceAccount": "admin", "interval": "1s"});
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository(spec.clone()))
            .await
            .0,
        201
    );
    bed.told("commit", &first).await;
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(15)
    );

    for number in 1..15 {
        std::fs::remove_file(root.join(format!("v{number}.yaml"))).expect("removed");
    }
    git(&["commit", "-q", "-a", "-m", "second"]);
    let second = git(&["rev-parse", "HEAD"]);
    let status = bed.told("error", "14 of 15 objects would be deleted").await;
    assert_eq!(
        (status["commit"].as_str(), status["failedCommit"].as_str()),
        (Some(first.as_str()), Some(second.as_str()))
    );
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(15)
    );
    spec["allowPruneAt"] = second.as_str().into();
    assert_eq!(
        bed.put(
            &format!("{REPOSITORY}?apply=true"),
            repository(spec.clone())
        )
        .await
        .0,
        200
    );
    bed.told("commit", &second).await;
    eventually(|| async {
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len) == Some(1)
    })
    .await;
    spec["path"] = "nowhere".into();
    assert_eq!(
        bed.put(&format!("{REPOSITORY}?apply=true"), repository(spec))
            .await
            .0,
        200
    );
    bed.told("error", "path `/nowhere` does not exist").await;
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(1)
    );
}

/// A server with the answers of Vault's key-value engine, version 2; returns its address.
async fn vault() -> String {
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
