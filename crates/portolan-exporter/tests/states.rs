//! What an exporter says while its cluster answers well, badly, or not at all. The API server here is a fake one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use portolan_audit::Checker;
use portolan_cluster::Cluster;
use portolan_exporter::{Exporter, ExporterOptions, ScanOptions, Snapshot, Sources, State};
use portolan_testbed::{HttpServer, Reply, Request};

/// An API server with no releases, that answers with the status it is told to.
fn server() -> (HttpServer, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let told = Arc::clone(&status);
    let answer = move |request: &Request| match told.load(Ordering::SeqCst) {
        200 if request.target.contains("watch=1") => Reply::ok(""),
        200 if request.path() == "/version" => Reply::ok(r#"{"gitVersion": "v1.36.3"}"#),
        200 => Reply::ok(r#"{"metadata": {"resourceVersion": "7"}, "items": []}"#)
            .header("content-type", "application/json"),
        code => Reply::status(code).header("retry-after", "0"),
    };
    (HttpServer::start(answer), status)
}

fn cluster(server: &HttpServer) -> Cluster {
    let uri = server.url().parse().expect("an address");
    let mut config = portolan_cluster::kube::Config::new(uri);
    config.default_retry = false;
    let client = portolan_cluster::kube::Client::try_from(config).expect("a client");
    Cluster::from_client(client, &server.url())
}

fn options(state: Option<&std::path::Path>) -> ExporterOptions {
    ExporterOptions {
        scan: ScanOptions {
            sources: Sources::Helm,
            ..ScanOptions::default()
        },
        checker: Box::new(|_| Checker::default()),
        ttl: Duration::from_hours(1),
        state: state.map(std::path::Path::to_owned),
        baseline: None,
        finding_series: 0,
    }
}

#[tokio::test]
async fn not_scanned_yet_is_not_nothing_found() {
    let (exporter, _) = Exporter::open(options(None));
    assert_eq!(exporter.state(), State::Empty);
    assert!(exporter.metrics().contains("portolan_audit_has_data 0\n"));
    assert!(!exporter.metrics().contains("portolan_audit_findings"));
    let (server, _) = server();
    exporter.scan(&cluster(&server)).await.unwrap();
    assert_eq!(exporter.state(), State::Ready);
    assert!(exporter.metrics().contains("portolan_audit_has_data 1\n"));
}

#[tokio::test]
async fn a_failed_scan_is_told_and_the_last_good_data_stay() {
    let (exporter, _) = Exporter::open(options(None));
    let (server, status) = server();
    let cluster = cluster(&server);
    exporter.scan(&cluster).await.unwrap();
    for (code, name) in [
        (500, "server"),
        (429, "throttled"),
        (410, "gone"),
        (401, "unauthorized"),
        (403, "forbidden"),
    ] {
        status.store(code, Ordering::SeqCst);
        assert!(exporter.scan(&cluster).await.is_err());
        let metrics = exporter.metrics();
        assert!(
            metrics.contains(&format!(
                "portolan_audit_last_scan_error{{portolan_audit_last_scan_error=\"{name}\"}} 1\n"
            )),
            "{metrics}"
        );
        assert!(metrics.contains("portolan_audit_has_data 1\n"));
    }
    status.store(200, Ordering::SeqCst);
    exporter.scan(&cluster).await.unwrap();
    assert!(
        exporter
            .metrics()
            .contains("portolan_audit_scan_failures_total 5\n")
    );
    assert_eq!(exporter.state(), State::Ready);
}

#[tokio::test]
async fn a_server_that_is_gone_is_told() {
    let (exporter, _) = Exporter::open(options(None));
    let (server, _) = server();
    let cluster = cluster(&server);
    drop(server);
    assert!(exporter.scan(&cluster).await.is_err());
    assert!(
        exporter
            .metrics()
            .contains("portolan_audit_last_scan_error=\"unreachable\"} 1\n")
    );
}

/// What a killed process leaves behind is the last whole snapshot, and perhaps a part of the next.
#[tokio::test]
async fn a_restart_serves_the_last_good_snapshot_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (exporter, _) = Exporter::open(options(Some(directory.path())));
    let (server, _) = server();
    exporter.scan(&cluster(&server)).await.unwrap();
    drop(exporter);
    std::fs::write(
        directory.path().join("snapshot.json.part"),
        "{\"format\": 1, \"rep",
    )
    .unwrap();
    let (exporter, trouble) = Exporter::open(options(Some(directory.path())));
    assert!(trouble.is_none());
    assert_eq!(exporter.state(), State::Ready);
    assert!(exporter.metrics().contains("portolan_audit_has_data 1\n"));
    assert!(Snapshot::load(directory.path()).unwrap().is_some());
}

/// Every metric that the dashboard asks for is one that the exporter has.
#[tokio::test]
async fn the_dashboard_asks_for_metrics_that_exist() {
    let (exporter, _) = Exporter::open(options(None));
    let (server, _) = server();
    exporter.scan(&cluster(&server)).await.unwrap();
    let metrics = exporter.metrics();
    let dashboard = include_str!("../../../deploy/audit/dashboard.json");
    let mut names: Vec<&str> = dashboard
        .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|word| word.starts_with("portolan_audit_"))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let family = name.strip_suffix("_total").unwrap_or(name);
        let told = format!("# TYPE {family} ");
        assert!(metrics.contains(&told), "there is no metric `{name}`");
    }
}
