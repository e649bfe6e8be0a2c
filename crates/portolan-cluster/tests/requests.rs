//! Lists and records from an API server that is busy, stumbles or forgets. The server here is a fake one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portolan_cluster::{Cluster, ClusterError, Driver, ErrorKind, PAGE_SIZE, Query};
use portolan_testbed::{DrippingServer, HttpServer, Reply, Request};
use serde_json::json;

fn cluster(server: &HttpServer) -> Cluster {
    let mut config = portolan_cluster::kube::Config::new(server.url().parse().expect("an address"));
    config.default_retry = false;
    let client = portolan_cluster::kube::Client::try_from(config).expect("a client");
    Cluster::from_client(client, &server.url())
}

fn secrets() -> Query {
    Query {
        path: "/api/v1/secrets".to_owned(),
        ..Query::default()
    }
}

fn json_reply(value: &serde_json::Value) -> Reply {
    Reply::ok(value.to_string()).header("content-type", "application/json")
}

/// A page of objects with these numbers, and the token of the next page.
fn page(numbers: std::ops::Range<usize>, next: &str) -> Reply {
    let items: Vec<_> = numbers
        .map(|number| json!({"metadata": {"name": format!("s{number}")}}))
        .collect();
    json_reply(&json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": items}))
}

fn token(request: &Request) -> Option<&str> {
    request.target.split("&continue=").nth(1)
}

async fn names(cluster: &Cluster) -> Result<Vec<String>, ClusterError> {
    let mut names = Vec::new();
    cluster
        .list(&secrets(), |metadata| names.push(metadata.name))
        .await?;
    Ok(names)
}

#[tokio::test]
async fn a_list_is_read_in_pages_of_metadata() {
    let server = HttpServer::start(|request| match token(request) {
        None => page(0..256, "a%2Fb=="),
        Some("a%252Fb%3D%3D") => page(256..300, ""),
        Some(other) => panic!("{other}"),
    });
    let cluster = cluster(&server);
    assert_eq!(names(&cluster).await.unwrap().len(), 300);
    assert_eq!(cluster.requests(), 2);
    for request in server.requests() {
        assert!(
            request.target.contains(&format!("?limit={PAGE_SIZE}")),
            "{}",
            request.target
        );
        assert!(
            !request.target.contains("resourceVersion"),
            "{}",
            request.target
        );
        let accept = request.header("accept").unwrap();
        assert!(accept.contains("as=PartialObjectMetadataList"), "{accept}");
    }
}

#[tokio::test]
async fn a_list_that_outlives_its_token_goes_on_with_the_one_it_is_given() {
    let server = HttpServer::start(|request| match token(request) {
        None => page(0..2, "old"),
        Some("old") => {
            let gone = json!({"code": 410, "reason": "Expired", "metadata": {"continue": "fresh"}});
            Reply {
                status: 410,
                ..json_reply(&gone)
            }
        }
        Some("fresh") => page(2..4, ""),
        Some(other) => panic!("{other}"),
    });
    let names = names(&cluster(&server)).await.unwrap();
    assert_eq!(names, ["s0", "s1", "s2", "s3"]);
}

#[tokio::test]
async fn without_a_new_token_the_list_begins_anew_and_gives_up_in_the_end() {
    let expirations = AtomicUsize::new(0);
    let server = HttpServer::start(move |request| match token(request) {
        None => page(0..2, "old"),
        Some(_) if expirations.fetch_add(1, Ordering::SeqCst) == 0 => Reply::status(410),
        Some(_) => page(2..4, ""),
    });
    let names: BTreeSet<String> = names(&cluster(&server))
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(names.len(), 4);

    let server = HttpServer::start(|request| match token(request) {
        None => page(0..2, "old"),
        Some(_) => Reply::status(410),
    });
    let error = self::names(&cluster(&server)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gone);
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    // The same token for ever.
    let server = HttpServer::start(|_| page(0..2, "more"));
    let cluster_of_one = cluster(&server);
    let error = names(&cluster_of_one).await.unwrap_err();
    assert!(error.to_string().contains("same next page"), "{error}");
    assert_eq!(cluster_of_one.requests(), 2);
    // Another token for ever: empty pages, so that only their number can be what is too much.
    let count = AtomicUsize::new(0);
    let server = HttpServer::start(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        page(0..0, &format!("t{number}"))
    });
    let cluster_of_many = cluster(&server).with_max_pages(30);
    let error = names(&cluster_of_many).await.unwrap_err();
    assert!(error.to_string().contains("more than 30 pages"), "{error}");
    assert_eq!(cluster_of_many.requests(), 30);
}

/// A byte now and then is no answer: the whole of it has a deadline, for lists and for refused watches alike.
#[tokio::test]
async fn a_server_that_drips_is_given_up_at_the_deadline() {
    for head in ["HTTP/1.1 200 OK", "HTTP/1.1 403 Forbidden"] {
        let server = DrippingServer::start(head);
        let uri = server.url().parse().expect("an address");
        let mut config = portolan_cluster::kube::Config::new(uri);
        config.default_retry = false;
        let client = portolan_cluster::kube::Client::try_from(config).expect("a client");
        let cluster = Cluster::from_client(client, &server.url());
        let cluster = cluster.with_patience(Duration::from_millis(300));
        let error = names(&cluster).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        if head.contains("403") {
            let error = cluster
                .watch(&secrets(), "1")
                .await
                .err()
                .expect("an error");
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_strict_one_is_not() {
    let refusals = AtomicUsize::new(0);
    let server = HttpServer::start(move |_| match refusals.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(429).header("retry-after", "0"),
        1 => Reply::status(503).header("retry-after", "0"),
        // The connection breaks in the middle of the answer.
        2 => page(0..3, "").cut_after(10),
        _ => page(0..3, ""),
    });
    let cluster_of_many = cluster(&server);
    assert_eq!(names(&cluster_of_many).await.unwrap().len(), 3);
    assert_eq!(cluster_of_many.requests(), 4);

    for (code, kind) in [
        (401, ErrorKind::Unauthorized),
        (403, ErrorKind::Forbidden),
        (404, ErrorKind::Other),
    ] {
        let server = HttpServer::start(move |_| Reply::status(code));
        let cluster = cluster(&server);
        assert_eq!(names(&cluster).await.unwrap_err().kind(), kind);
        assert_eq!(cluster.requests(), 1);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_at_the_deadline() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = HttpServer::start(move |_| {
        // Ends when the test drops its end.
        let _ = wait.lock().map(|wait| wait.recv());
        Reply::status(200)
    });
    let cluster = cluster(&server).with_patience(Duration::from_millis(50));
    assert_eq!(
        names(&cluster).await.unwrap_err().kind(),
        ErrorKind::Timeout
    );
    drop(release);
}

#[tokio::test]
async fn a_record_that_went_away_is_none() {
    let server = HttpServer::start(|request| match request.path() {
        "/api/v1/namespaces/shop/secrets/sh.helm.release.v1.web.v2" => {
            json_reply(&json!({"data": {"release": "cmVjb3Jk"}}))
        }
        "/api/v1/secrets" => {
            let labels =
                json!({"owner": "helm", "name": "web", "status": "deployed", "version": "2"});
            let metadata =
                json!({"name": "sh.helm.release.v1.web.v2", "namespace": "shop", "labels": labels});
            json_reply(
                &json!({"metadata": {"resourceVersion": "9"}, "items": [{"metadata": metadata}]}),
            )
        }
        _ => Reply::status(404),
    });
    let cluster = cluster(&server);
    let (mut records, resume) = cluster.records(Driver::Secret, None).await.unwrap();
    assert_eq!((records.len(), resume.as_str()), (1, "9"));
    let mut record = records.remove(0);
    assert_eq!(cluster.record(&record).await.unwrap().unwrap(), "cmVjb3Jk");
    record.name = "sh.helm.release.v1.web.v1".to_owned();
    assert_eq!(cluster.record(&record).await.unwrap(), None);
}
