//! The exporter's routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use portolan_listen::{Drained, ListenConfig, TlsError, error_reply};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::page::page;
use crate::exporter::Exporter;

/// Answers requests until it is cancelled; then those in flight are still answered. The readiness and the metrics of the
/// configuration are set here.
pub async fn serve(
    listener: TcpListener,
    exporter: Arc<Exporter>,
    config: ListenConfig,
    cancelled: CancellationToken,
) -> Result<Drained, TlsError> {
    let scraped = Arc::clone(&exporter);
    config.metrics.add_text(Box::new(move || scraped.metrics()));
    let ready = Arc::clone(&exporter);
    let config = ListenConfig {
        readiness: Arc::new(move || readiness(&ready)),
        ..config
    };
    let router = Router::new()
        .route("/", get(show))
        .route("/api/v1/findings", get(findings))
        .with_state(exporter);
    portolan_listen::serve(listener, router, config, cancelled).await
}

/// Ready once there is an answer, however old: the metrics tell its age.
fn readiness(exporter: &Exporter) -> Result<(), String> {
    match exporter.snapshot() {
        Some(_) => Ok(()),
        None => Err("not scanned yet".to_owned()),
    }
}

async fn show(Shared(exporter): Shared<Arc<Exporter>>) -> Html<String> {
    Html(page(&exporter.view()))
}

/// The last good report; 503 before there is one.
async fn findings(Shared(exporter): Shared<Arc<Exporter>>) -> Response {
    let view = exporter.view();
    if view.snapshot.is_none() {
        let state = view.state.name();
        let error = match view.last_failure {
            Some(failure) => format!("not scanned yet; the last scan failed: {}", failure.text),
            None => format!("not scanned yet; the state is `{state}`"),
        };
        return error_reply(StatusCode::SERVICE_UNAVAILABLE, &error);
    }
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, view.rendered.findings.clone()).into_response()
}
