//! One request: the rate limit, the routes that every server has, the server's own, and the access log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt as _;
use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::Instant;
use tower_service::Service as _;

use crate::activity::Activity;
use crate::body::{BodyRelease, Refused, RequestBody, TrackedBody, Verdict};
use crate::client::Client;
use crate::connections::Connections;
use crate::error_reply::error_reply;
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::serve::Readiness;
use crate::tls::TlsPeer;

/// The characters of a path that the access log shows.
const MAX_LOGGED_PATH: usize = 200;

/// The time that a handler has after its last limit: to answer in its own words that the body came too slowly.
const ANSWER_GRACE: Duration = Duration::from_secs(5);

/// Put into an answer's extensions, it replaces [`crate::Limits::response_time`] for that answer: a stream that goes on for
/// minutes says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTime(pub Duration);

/// In the extensions of every request: the address that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub std::net::IpAddr);

/// What a connection's requests share.
pub(crate) struct Responder {
    pub(crate) router: Router,
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
}

/// Whose request it is.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) client: Client,
    pub(crate) address: std::net::IpAddr,
    pub(crate) peer: Option<Arc<TlsPeer>>,
    pub(crate) activity: Arc<Activity>,
}

impl Responder {
    /// Answers a request. The connection's deadline for it ends when the answer's body has been taken.
    pub(crate) async fn respond(
        &self,
        request: Request<Incoming>,
        asker: Asker,
    ) -> Response<TrackedBody> {
        let limits = self.connections.limits();
        let started = Instant::now();
        let running = asker.activity.begin(limits.handler_time + ANSWER_GRACE);
        let method = request.method().clone();
        let path = logged_path(request.uri().path());
        let mut response = self.answer(request, &asker).await;
        let time = response.extensions_mut().remove::<ResponseTime>();
        running.answering(time.map_or(limits.response_time, |time| time.0));
        let (status, took) = (response.status(), started.elapsed());
        self.metrics.answered(&method, status, took.as_secs_f64());
        let taken = running.taking();
        let end = move |bytes: u64| {
            // Neither the query nor any header: both may hold secrets.
            tracing::info!(
                target: "portolan_listen::access",
                client = %asker.address, %method, path, status = status.as_u16(), bytes,
                answered_ms = took.as_millis() as u64, ended_ms = started.elapsed().as_millis() as u64,
                "request"
            );
            drop(running);
        };
        response.map(|body| TrackedBody::new(body, taken, end))
    }

    async fn answer(&self, request: Request<Incoming>, asker: &Asker) -> Response<Body> {
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/healthz" if is_get => return text(StatusCode::OK, "ok\n"),
            "/readyz" if is_get => return self.ready(),
            _ => {}
        }
        if !self.connections.may_ask(asker.client) {
            let message = "too many requests of this client; ask again in a second";
            let mut response = error_reply(StatusCode::TOO_MANY_REQUESTS, message);
            let second = header::HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, second);
            return response;
        }
        if request.uri().path() == "/metrics" && is_get {
            let kind = [(header::CONTENT_TYPE, CONTENT_TYPE)];
            return axum::response::IntoResponse::into_response((kind, self.metrics.text()));
        }
        self.ask_router(request, asker).await
    }

    fn ready(&self) -> Response<Body> {
        match (self.readiness)() {
            Ok(()) => text(StatusCode::OK, "ok\n"),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{reason}\n")),
        }
    }

    async fn ask_router(&self, mut request: Request<Incoming>, asker: &Asker) -> Response<Body> {
        let limits = self.connections.limits();
        if said_length(&request) > limits.body_bytes {
            return self.refusal(Refused::TooLarge);
        }
        request.extensions_mut().insert(PeerAddress(asker.address));
        if let Some(peer) = &asker.peer {
            request.extensions_mut().insert(Arc::clone(peer));
        }
        let verdict = Verdict::default();
        let deadline = Instant::now() + limits.body_time;
        let release = BodyRelease::default();
        request.extensions_mut().insert(release.clone());
        let body =
            |inner| RequestBody::new(inner, limits.body_bytes, deadline, verdict.clone(), release);
        let request = request.map(|inner| Body::new(body(inner)));
        let mut router = self.router.clone();
        // A router is ready at any time, and a panic of a handler leaves no state of ours half-changed.
        let handled = AssertUnwindSafe(router.call(request)).catch_unwind();
        let handled = tokio::time::timeout(limits.handler_time, handled).await;
        if let Some(refused) = verdict.refused() {
            return self.refusal(refused);
        }
        match handled {
            Ok(Ok(Ok(response))) => response,
            Ok(Ok(Err(never))) => match never {},
            Ok(Err(_)) => error_reply(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request failed because of a defect in portolan",
            ),
            Err(_) => error_reply(
                StatusCode::SERVICE_UNAVAILABLE,
                "the request took too long to answer",
            ),
        }
    }

    fn refusal(&self, refused: Refused) -> Response<Body> {
        let limits = self.connections.limits();
        match refused {
            Refused::TooLarge => error_reply(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!(
                    "the request's body is larger than {} bytes",
                    limits.body_bytes
                ),
            ),
            Refused::TooSlow => error_reply(
                StatusCode::REQUEST_TIMEOUT,
                &format!(
                    "the request's body took longer than {} s",
                    limits.body_time.as_secs_f64()
                ),
            ),
        }
    }
}

/// The router with JSON errors for what it does not have.
pub(crate) fn with_json_errors(router: Router) -> Router {
    let not_found =
        || async { error_reply(StatusCode::NOT_FOUND, "there is nothing at this path") };
    let not_allowed = || async {
        error_reply(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path does not take this method",
        )
    };
    router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
}

fn said_length(request: &Request<Incoming>) -> u64 {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length.unwrap_or(0)
}

fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// A path for the log: short, and without characters that could forge a line.
fn logged_path(path: &str) -> String {
    let shown = path.chars().take(MAX_LOGGED_PATH);
    shown.flat_map(char::escape_default).collect()
}
