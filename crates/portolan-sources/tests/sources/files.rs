//! Single files from web servers.

use std::sync::Arc;

use portolan_oci::Digest;
use portolan_sources::{FileRequest, SourceError};
use portolan_testbed::{HttpServer, Reply};

use crate::desk::Desk;

fn request(server: &HttpServer) -> FileRequest {
    FileRequest {
        url: format!("{}/install.yaml?ref=v1", server.url()),
        ..FileRequest::default()
    }
}

#[tokio::test]
async fn a_file_is_fetched_through_redirects_with_its_query() {
    let server = HttpServer::start(|request| match request.target.as_str() {
        "/install.yaml?ref=v1" => Reply::redirect("/really"),
        "/really" => Reply::ok("kind: x"),
        _ => Reply::status(404),
    });
    let file = Desk::new()
        .open()
        .http_file(&request(&server))
        .await
        .unwrap();
    assert_eq!(file.content, b"kind: x");
}

#[tokio::test]
async fn a_file_with_another_digest_than_wanted_is_refused() {
    let server = HttpServer::start(|_| Reply::ok("evil"));
    let mut request = request(&server);
    request.digest = Some(Digest::of(b"good"));
    let error = Desk::new().open().http_file(&request).await.unwrap_err();
    assert!(matches!(error, SourceError::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_file_that_breaks_off_leaves_no_entry() {
    let server = HttpServer::start(|_| Reply::ok("whole file").cut_after(3));
    let desk = Desk::new();
    desk.open().http_file(&request(&server)).await.unwrap_err();
    assert_eq!(desk.entries(), 0);
}

#[tokio::test]
async fn addresses_that_are_not_of_the_web_are_refused() {
    let request = FileRequest {
        url: "file:///etc/passwd".to_owned(),
        ..FileRequest::default()
    };
    let error = Desk::new().open().http_file(&request).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot fetch file `file:///etc/passwd`");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_fetch_into_one_cache_at_once() {
    let server = HttpServer::start(|_| Reply::ok(vec![b'x'; 1_000_000]));
    let desk = Arc::new(Desk::new());
    let runs = (0..8).map(|_| {
        let (desk, request) = (Arc::clone(&desk), request(&server));
        tokio::spawn(async move { desk.open().http_file(&request).await.unwrap().digest })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap(), Digest::of(&vec![b'x'; 1_000_000]));
    }
    assert_eq!(desk.entries(), 1);
}
