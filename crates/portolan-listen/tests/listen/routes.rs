//! What every server answers by itself, and errors as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portolan_listen::{Limits, ListenConfig};

use crate::harness::{Server, status};

#[tokio::test]
async fn readiness_is_what_the_server_says_and_health_is_not() {
    let ready = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ready);
    let server = Server::start_with(ListenConfig {
        readiness: Arc::new(move || {
            let ready = asked.load(Ordering::SeqCst);
            ready.then_some(()).ok_or("not scanned yet".to_owned())
        }),
        ..ListenConfig::default()
    })
    .await;
    assert_eq!(status(&server.get("/healthz").await), "200");
    let answer = server.get("/readyz").await;
    assert_eq!(status(&answer), "503");
    assert!(answer.ends_with("not scanned yet\n"), "{answer}");
    ready.store(true, Ordering::SeqCst);
    assert_eq!(status(&server.get("/readyz").await), "200");
}

#[tokio::test]
async fn metrics_of_the_server_and_the_listener_are_one_text() {
    let server = Server::start(Limits::default()).await;
    server
        .metrics
        .add_text(Box::new(|| "# TYPE own gauge\nown 7\n".to_owned()));
    server.get("/hello").await;
    let answer = server.get("/metrics").await;
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    assert!(answer.contains("\nown 7\n"), "{answer}");
    let requests = "portolan_listen_requests_total{method=\"GET\",status=\"2xx\"} 1\n";
    assert!(answer.contains(requests), "{answer}");
    assert_eq!(answer.matches("# EOF").count(), 1);
    assert!(answer.ends_with("# EOF\n"), "{answer}");
}

#[tokio::test]
async fn errors_are_json() {
    let server = Server::start(Limits::default()).await;
    for (path, expected) in [("/nothing", "404"), ("/echo", "405"), ("/panic", "500")] {
        let answer = server.get(path).await;
        assert_eq!(status(&answer), expected);
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["kind"], "Error");
        assert_eq!(body["apiVersion"], "portolan.dev/v1alpha1");
        assert_eq!(body["status"].to_string(), expected);
    }
    // A handler that panicked took nothing down.
    assert_eq!(status(&server.get("/hello").await), "200");
}
