//! Watches that fail in every way. The API server here is a fake one: it serves Endpoints, deprecated since 1.33, and
//! Services, and does with watches what the test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portolan_audit::{Checker, Target};
use portolan_cluster::Cluster;
use portolan_exporter::{Exporter, ExporterOptions, ScanOptions, Sources};
use portolan_testbed::{HttpServer, Reply, Request};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What happens to a watch on Endpoints, by the number of watches before it.
type Fate = fn(usize) -> Reply;

struct Fixture {
    server: HttpServer,
    exporter: Arc<Exporter>,
    task: JoinHandle<()>,
}

impl Fixture {
    fn start(fate: Fate) -> Self {
        let (watches, lists) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let server = HttpServer::start(move |request| match request.path() {
            "/api/v1/endpoints" if request.target.contains("watch=1") => {
                fate(watches.fetch_add(1, Ordering::SeqCst))
            }
            // The second list has what the first had not.
            "/api/v1/endpoints" => list(lists.fetch_add(1, Ordering::SeqCst)),
            _ => answer(request),
        });
        let uri = server.url().parse().expect("an address");
        let mut config = portolan_cluster::kube::Config::new(uri);
        config.default_retry = false;
        let client = portolan_cluster::kube::Client::try_from(config).expect("a client");
        let cluster = Cluster::from_client(client, &server.url());
        let (exporter, _) = Exporter::open(ExporterOptions {
            scan: ScanOptions {
                sources: Sources::Live,
                ..ScanOptions::default()
            },
            checker: Box::new(|_| {
                Checker::new(Target::kubernetes("1.36".parse().expect("a release")))
            }),
            ttl: Duration::from_hours(1),
            state: None,
            baseline: None,
            finding_series: 0,
        });
        let exporter = Arc::new(exporter);
        let task = tokio::spawn({
            let exporter = Arc::clone(&exporter);
            async move { match exporter.run(&cluster).await {} }
        });
        Self {
            server,
            exporter,
            task,
        }
    }

    fn says(&self, line: &str) -> bool {
        self.exporter.metrics().lines().any(|other| other == line)
    }

    async fn wait_for(&self, line: &str) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while !self.says(line) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{line} is not in {}",
                self.exporter.metrics()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn lists_of(&self, path: &str) -> usize {
        let requests = self.server.requests();
        let lists =
            |request: &&Request| request.path() == path && !request.target.contains("watch=1");
        requests.iter().filter(lists).count()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const FOUND: &str = "portolan_audit_findings{level=\"deprecated\",component=\"k8s\",api_version=\"v1\",kind=\"Endpoints\",removed_in=\"\"} 1";

fn answer(request: &Request) -> Reply {
    let resource = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true, "verbs": ["list", "watch"]});
    match request.path() {
        "/version" => reply(&json!({"gitVersion": "v1.36.3"})),
        "/api/v1" => reply(
            &json!({"resources": [resource("endpoints", "Endpoints"), resource("services", "Service")]}),
        ),
        "/apis" => reply(&json!({"groups": []})),
        "/metrics" => Reply::ok(""),
        _ => reply(&json!({"metadata": {"resourceVersion": "7"}, "items": []})),
    }
}

fn reply(value: &Value) -> Reply {
    Reply::ok(value.to_string()).header("content-type", "application/json")
}

/// Nothing the first time; then an object that a script wrote.
fn list(before: usize) -> Reply {
    let items = if before == 0 { vec![] } else { vec![object()] };
    reply(&json!({"metadata": {"resourceVersion": "9"}, "items": items}))
}

fn object() -> Value {
    let script = json!({"manager": "script", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"});
    json!({"metadata": {"name": "web", "namespace": "shop", "resourceVersion": "8", "managedFields": [script]}})
}

fn event(kind: &str, object: &Value) -> Reply {
    Reply::ok(format!("{}\n", json!({"type": kind, "object": object})))
}

#[tokio::test]
async fn a_watch_that_lost_its_place_lists_its_own_resource_again_and_nothing_else() {
    let status: Fate = |before| match before {
        0 => Reply::status(410),
        _ => Reply::ok(""),
    };
    let event: Fate = |before| match before {
        0 => event("ERROR", &json!({"code": 410, "message": "too old"})),
        _ => Reply::ok(""),
    };
    for fate in [status, event] {
        let fixture = Fixture::start(fate);
        fixture.wait_for(FOUND).await;
        assert!(fixture.says("portolan_audit_scans_total 1"));
        assert_eq!(fixture.lists_of("/api/v1/endpoints"), 2);
        assert_eq!(fixture.lists_of("/api/v1/services"), 1);
    }
}

#[tokio::test]
async fn a_watch_that_stumbles_is_opened_again_from_where_it_was() {
    let fixture = Fixture::start(|before| match before {
        0 => Reply::status(503),
        // The connection breaks in the middle of an event.
        1 => event("ADDED", &object()).cut_after(10),
        2 => event("ADDED", &object()),
        _ => Reply::ok(""),
    });
    fixture.wait_for(FOUND).await;
    assert!(fixture.says("portolan_audit_scans_total 1"));
    assert_eq!(fixture.lists_of("/api/v1/endpoints"), 1);
    let watches = fixture.server.requests();
    let mut watches = watches
        .iter()
        .filter(|request| request.target.contains("watch=1"));
    assert!(watches.all(|request| request.target.contains("&resourceVersion=")));
}

/// Least privilege: what may be listed but not watched is as old as the last scan, which is told, and the rest is followed.
#[tokio::test]
async fn a_watch_that_is_refused_is_left_to_the_next_scan() {
    let fixture = Fixture::start(|_| Reply::status(403));
    fixture
        .wait_for("portolan_audit_lists{followed=\"no\"} 1")
        .await;
    assert!(fixture.says("portolan_audit_scans_total 1"));
    assert!(fixture.says("portolan_audit_scan_state{portolan_audit_scan_state=\"ready\"} 1"));
}

/// An expired token: only a scan can tell, and tells.
#[tokio::test]
async fn a_watch_that_nobody_may_have_any_more_brings_a_scan() {
    let fixture = Fixture::start(|_| Reply::status(401));
    fixture.wait_for("portolan_audit_scans_total 2").await;
    assert_eq!(fixture.lists_of("/api/v1/endpoints"), 2);
}
