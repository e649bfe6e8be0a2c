//! The exporter over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::exporter::Exporter;
use crate::page::page;

/// Answers requests until the future is dropped.
pub async fn serve(listener: TcpListener, exporter: Arc<Exporter>) -> std::io::Result<()> {
    let router = Router::new()
        .route("/", get(show))
        .route("/metrics", get(scrape))
        .route("/api/v1/findings", get(findings))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(exporter);
    // The end of a long answer must not wait until its beginning is acknowledged.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

async fn scrape(Shared(exporter): Shared<Arc<Exporter>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], exporter.metrics()).into_response()
}

async fn show(Shared(exporter): Shared<Arc<Exporter>>) -> Html<String> {
    Html(page(&exporter.view()))
}

/// The last good report; 503 before there is one.
async fn findings(Shared(exporter): Shared<Arc<Exporter>>) -> Response {
    let view = exporter.view();
    let json = [(header::CONTENT_TYPE, "application/json")];
    if view.snapshot.is_none() {
        let last = view.last_failure.map(|failure| failure.text);
        let error = serde_json::json!({"error": "not scanned yet", "state": view.state.name(), "lastError": last});
        return (StatusCode::SERVICE_UNAVAILABLE, json, error.to_string()).into_response();
    }
    (json, view.rendered.findings.clone()).into_response()
}

/// Ready once there is an answer, however old: the metrics tell its age.
async fn ready(Shared(exporter): Shared<Arc<Exporter>>) -> (StatusCode, &'static str) {
    if exporter.snapshot().is_some() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not scanned yet\n")
    }
}
