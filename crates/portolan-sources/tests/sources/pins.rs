//! The lock file and what offline means.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portolan_sources::{FileRequest, Lock, Options, Pinning, SourceError};
use portolan_testbed::{HttpServer, Reply};

use crate::desk::{Desk, options};

/// A server whose file changes when told to.
fn changing() -> (HttpServer, Arc<AtomicBool>) {
    let changed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&changed);
    let server = HttpServer::start(move |_| {
        let is_changed = seen.load(Ordering::SeqCst);
        Reply::ok(if is_changed { "new" } else { "old" })
    });
    (server, changed)
}

fn request(server: &HttpServer) -> FileRequest {
    FileRequest {
        url: format!("{}/x.yaml", server.url()),
        ..FileRequest::default()
    }
}

async fn fetched(desk: &Desk, request: &FileRequest) -> Lock {
    let sources = desk.open();
    sources.http_file(request).await.unwrap();
    sources.pins()
}

#[tokio::test]
async fn what_is_pinned_and_cached_needs_no_network() {
    let (server, changed) = changing();
    let desk = Desk::new();
    let lock = fetched(&desk, &request(&server)).await;
    changed.store(true, Ordering::SeqCst);
    let file = desk.open_with(lock.clone(), options());
    assert_eq!(
        file.http_file(&request(&server)).await.unwrap().content,
        b"old"
    );
    let offline = desk.offline_with(lock);
    assert_eq!(
        offline.http_file(&request(&server)).await.unwrap().content,
        b"old"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn offline_refuses_what_is_not_cached_and_names_it() {
    let (server, _) = changing();
    let error = Desk::new()
        .offline()
        .http_file(&request(&server))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "file `{}/x.yaml` is not in the cache, and --offline fetches nothing",
            server.url()
        )
    );
    let lock = fetched(&Desk::new(), &request(&server)).await;
    let error = Desk::new()
        .offline_with(lock)
        .http_file(&request(&server))
        .await
        .unwrap_err();
    assert!(matches!(error, SourceError::Offline { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn offline_takes_what_was_fetched_last_even_without_a_lock() {
    let (server, _) = changing();
    let desk = Desk::new();
    fetched(&desk, &request(&server)).await;
    let file = desk.offline().http_file(&request(&server)).await.unwrap();
    assert_eq!(file.content, b"old");
}

#[tokio::test]
async fn a_remote_that_changed_behind_the_pin_is_an_error() {
    let (server, changed) = changing();
    let lock = fetched(&Desk::new(), &request(&server)).await;
    changed.store(true, Ordering::SeqCst);
    let other_machine = Desk::new();
    let sources = other_machine.open_with(lock, options());
    let error = sources.http_file(&request(&server)).await.unwrap_err();
    assert!(
        error.to_string().contains("has changed: `sha256:"),
        "{error}"
    );
}

#[tokio::test]
async fn an_update_takes_what_is_there_now() {
    let (server, changed) = changing();
    let desk = Desk::new();
    let lock = fetched(&desk, &request(&server)).await;
    changed.store(true, Ordering::SeqCst);
    let options = Options {
        pinning: Pinning::Update,
        ..options()
    };
    let sources = desk.open_with(lock.clone(), options);
    assert_eq!(
        sources.http_file(&request(&server)).await.unwrap().content,
        b"new"
    );
    assert_ne!(sources.pins(), lock);
}

#[tokio::test]
async fn what_must_be_pinned_and_is_not_is_refused() {
    let (server, _) = changing();
    let options = Options {
        pinning: Pinning::Require,
        ..options()
    };
    let sources = Desk::new().open_with(Lock::default(), options);
    let error = sources.http_file(&request(&server)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("is not pinned in the lock file"),
        "{error}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn passwords_in_addresses_do_not_reach_the_lock_file() {
    let (server, _) = changing();
    let request = FileRequest {
        url: format!("http://ada:hunter2@{}/x.yaml", server.host()),
        ..FileRequest::default()
    };
    let lock = fetched(&Desk::new(), &request).await;
    assert!(!lock.to_text().contains("hunter2"));
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("Basic YWRhOmh1bnRlcjI=")
    );
}
