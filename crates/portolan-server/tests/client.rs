//! The client of the API, and curl, over TLS and through the listener.

use std::sync::Arc;
use std::time::Duration;

use portolan_client::{DeliveryState, EventPublisher, EventTarget, FleetServerFiles, JobEvent};
use portolan_kinds::find_kind;
use portolan_listen::ListenConfig;
use portolan_server::{ApiServer, FleetClient, FleetError, FleetMethod, ObjectPath, ServerOptions};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

struct Bed {
    directory: tempfile::TempDir,
    url: String,
    cancelled: CancellationToken,
}

async fn bed() -> Bed {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Embedded::open(
        &directory.path().join("store.redb"),
        EmbeddedOptions::default(),
    );
    let store = Store::new(Arc::new(engine.expect("a store")));
    let started = ApiServer::start(store, ServerOptions::new(directory.path())).await;
    let (server, first) = started.expect("it starts");
    assert!(first.is_some(), "a first start");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let names = vec!["localhost".to_owned()];
    let config = ListenConfig {
        tls: Some(server.tls(names.clone()).expect("a certificate")),
        client_certificates: Some(portolan_identity::EXPORTER_LABEL),
        readiness: server.readiness(),
        ..ListenConfig::default()
    };
    let cancelled = CancellationToken::new();
    tokio::spawn(portolan_listen::serve(
        listener,
        server.router(names),
        config,
        cancelled.clone(),
    ));
    tokio::spawn(server.run(cancelled.clone()));
    let bed = Bed {
        directory,
        url: format!("https://localhost:{port}"),
        cancelled,
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !bed.directory.path().join("ca.pem").exists() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "no authority was made"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bed
}

impl Bed {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).expect(name)
    }

    fn client(&self, authorities: Vec<String>) -> FleetClient {
        let token = self.read("admin.token").trim().to_owned();
        FleetClient::new(&self.url, token.into(), authorities).expect("a client")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

fn path(kind: &str, namespace: Option<&str>, name: Option<&str>) -> ObjectPath {
    ObjectPath {
        kind: find_kind(kind).expect("a kind"),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_reads_writes_and_watches() {
    let bed = bed().await;
    let client = bed.client(vec![bed.read("ca.pem")]);
    let (namespaces, version) = client
        .list(&path("ns", None, None), &[])
        .await
        .expect("a list");
    let names: Vec<&str> = namespaces
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["default", "system"]);
    assert!(version.starts_with("1."), "{version}");

    let object = json!({
        "apiVersion": "v1alpha", "kind": "Role", "metadata": {"name": "a b:ü", "namespace": "default"},
        "spec": {"rules": [{"verbs": ["get"], "kinds": ["Node"]}]},
    });
    let roles = path("role", Some("default"), None);
    let one = path("role", Some("default"), Some("a b:ü"));
    let body = object.to_string();
    let created = client
        .request(FleetMethod::Post, &roles.to_string(), &[], Some(&body))
        .await;
    created.expect("created");
    let applied = client
        .request(
            FleetMethod::Put,
            &one.to_string(),
            &[("apply", "true")],
            Some(&body),
        )
        .await;
    assert_eq!(applied.expect("applied")["metadata"]["generation"], 1);
    let deletion = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        client
            .request(FleetMethod::Delete, &one.to_string(), &[], None)
            .await
            .expect("deleted")
    };
    let mut seen: Vec<String> = Vec::new();
    let watching = client.watch(&roles, &[], |message: Value| {
        seen.push(message["type"].as_str().unwrap_or_default().to_owned());
        message["type"] != "DELETED"
    });
    let (watched, _) = tokio::join!(watching, deletion);
    watched.expect("a watch");
    assert_eq!(seen, ["ADDED", "BOOKMARK", "DELETED"]);

    let missing = client
        .request(FleetMethod::Get, &one.to_string(), &[], None)
        .await;
    assert!(
        matches!(missing, Err(FleetError::Refused { status: 404, .. })),
        "{missing:?}"
    );
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(512 << 10));
    let refused = client
        .request(FleetMethod::Post, &roles.to_string(), &[], Some(&large))
        .await;
    assert!(
        matches!(refused, Err(FleetError::Refused { status: 413, .. })),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_trusted_gets_no_token() {
    let bed = bed().await;
    let stranger = bed.client(Vec::new());
    let refused = stranger
        .request(FleetMethod::Get, "/api/v1alpha/nodes", &[], None)
        .await;
    assert!(matches!(refused, Err(FleetError::Http(_))), "{refused:?}");
    for address in [
        "http://localhost:1",
        "localhost",
        "https://user:secret@localhost:1",
    ] {
        let client = FleetClient::new(address, String::from("t").into(), Vec::new());
        assert!(matches!(client, Err(FleetError::Address(_))), "{address}");
    }
}

/// What a program in another language sees, over HTTP/1 and HTTP/2.
#[tokio::test(flavor = "multi_thread")]
async fn curl_is_a_client_like_any_other() {
    let bed = bed().await;
    let token = format!("Authorization: Bearer {}", bed.read("admin.token").trim());
    let authority = bed.directory.path().join("ca.pem");
    let curl = |path: &str, options: &[&str]| {
        let mut command = tokio::process::Command::new("curl");
        command
            .args(["-sS", "--max-time", "5", "-H", &token, "--cacert"])
            .arg(&authority);
        command.args(options).arg(format!("{}{path}", bed.url));
        async move {
            let output = command.output().await.expect("curl is installed");
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
    };
    let yaml = "apiVersion: v1alpha\nkind: Node\nmetadata: {name: db-1}\nspec: {netwrk: {}}\n";
    let body = [
        "-H",
        "content-type: application/yaml",
        "--data-binary",
        yaml,
    ];
    let refused = curl("/api/v1alpha/nodes", &body).await;
    assert!(
        refused.contains("did you mean `network`?") && refused.contains("\"line\":4"),
        "{refused}"
    );
    let good = yaml.replace("netwrk", "network");
    let body = [
        "--http2",
        "-H",
        "content-type: application/yaml",
        "--data-binary",
        &good,
    ];
    let created = curl("/api/v1alpha/nodes", &body).await;
    assert!(created.contains("\"uuid\""), "{created}");
    for protocol in ["--http1.1", "--http2"] {
        let watched = curl(
            "/api/v1alpha/nodes?watch=true",
            &[protocol, "--max-time", "1"],
        )
        .await;
        assert!(
            watched.starts_with("{\"type\":\"ADDED\"") && watched.contains("BOOKMARK"),
            "{watched}"
        );
    }
    let events = curl(
        "/api/v1alpha/nodes?watch=true",
        &["--max-time", "1", "-H", "Accept: text/event-stream"],
    )
    .await;
    assert!(
        events.starts_with("id: 1.") && events.contains("event: ADDED"),
        "{events}"
    );
    assert!(curl("/openapi.json", &[]).await.contains("\"3.1.0\""));
    assert!(curl("/readyz", &[]).await.starts_with("ok"));
    assert!(
        curl("/metrics", &[])
            .await
            .contains("portolan_listen_requests_total")
    );
    let page = curl(
        "/api/v1alpha/nodes",
        &["-H", "Origin: https://evil.example"],
    )
    .await;
    assert!(page.contains("pages of other sites"), "{page}");
}

fn event(id: &str) -> JobEvent {
    JobEvent::new(
        "test.happened",
        id,
        jiff::Timestamp::UNIX_EPOCH,
        "it happened",
    )
}

/// Waits until a delivery stands as it should.
async fn until(
    publisher: &EventPublisher,
    holds: impl Fn(&DeliveryState) -> bool,
) -> DeliveryState {
    let mut states = publisher.subscribe().expect("a delivery");
    let state = tokio::time::timeout(Duration::from_secs(20), states.wait_for(holds)).await;
    state
        .expect("in time")
        .expect("the publisher is here")
        .clone()
}

impl Bed {
    fn target(&self, token: &str) -> EventTarget {
        let file = |name: &str| self.directory.path().join(name);
        EventTarget {
            server: FleetServerFiles {
                address: self.url.clone(),
                token: file(token),
                authority: Some(file("ca.pem")),
            },
            namespace: "default".to_owned(),
            labels: std::collections::BTreeMap::new(),
            secrets: Arc::default(),
        }
    }

    /// The types and data of the events of a namespace.
    async fn events(&self) -> Vec<(String, Value)> {
        let client = self.target("admin.token").server.client();
        let path = ObjectPath {
            kind: find_kind("Event").expect("a kind"),
            namespace: Some("default".to_owned()),
            name: None,
        };
        let listed = client.expect("a client").list(&path, &[]).await;
        let (items, _) = listed.expect("listed");
        let items = items.into_iter();
        let items = items.map(|item| (item["spec"]["type"].clone(), item["spec"]["data"].clone()));
        items
            .map(|(kind, data)| (kind.as_str().unwrap_or_default().to_owned(), data))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_published_again_is_stored_once() {
    let bed = bed().await;
    for _ in 0..2 {
        let (publisher, delivery) = EventPublisher::new(bed.target("admin.token"));
        let delivery = tokio::spawn(delivery.run());
        for id in ["a", "b", "a"] {
            publisher.publish(event(id));
        }
        let state = publisher.flush(Duration::from_secs(20)).await;
        assert_eq!((state.sent, state.waiting, state.lost), (3, 0, 0));
        delivery.abort();
    }
    assert_eq!(bed.events().await.len(), 2);
    bed.cancelled.cancel();
}

/// A token that is no good keeps events waiting; another one in its file lets them go.
#[tokio::test(flavor = "multi_thread")]
async fn events_wait_until_the_token_is_good() {
    let bed = bed().await;
    let file = bed.directory.path().join("jobs.token");
    std::fs::write(&file, "ptl_nobody_nothing").expect("written");
    let (publisher, delivery) = EventPublisher::new(bed.target("jobs.token"));
    let delivery = tokio::spawn(delivery.run());
    publisher.publish(event("a"));
    // Whoever ends does not wait for what only a person can change.
    let state = publisher.flush(Duration::from_secs(20)).await;
    assert!(
        state.trouble.is_some_and(|trouble| trouble.needs_a_person),
        "it is refused"
    );
    assert_eq!((state.sent, state.waiting), (0, 1));
    std::fs::copy(bed.directory.path().join("admin.token"), &file).expect("copied");
    let state = until(&publisher, |state| state.sent == 1).await;
    assert_eq!(state.waiting, 0);
    delivery.abort();
    bed.cancelled.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_find_the_queue_full_are_counted_and_told() {
    let bed = bed().await;
    let (publisher, delivery) = EventPublisher::with_queue(bed.target("admin.token"), 10);
    for number in 0..25 {
        publisher.publish(event(&number.to_string()));
    }
    assert_eq!(publisher.state().lost, 15);
    let delivery = tokio::spawn(delivery.run());
    until(&publisher, |state| state.sent == 11).await;
    let events = bed.events().await;
    let dropped = events.iter().find(|(kind, _)| kind == "events.dropped");
    assert_eq!(dropped.map(|(_, data)| data), Some(&json!({"count": 15})));
    delivery.abort();
    bed.cancelled.cancel();
}
