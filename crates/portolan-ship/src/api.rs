//! The event API of a run: where it stands, what happened, what programs printed, and how it is called off.
//!
//! ```text
//! socket or address ──guard (Host, Origin, token, content type)──▶ /api/ship/v1/runs | state | events | log | control
//!                                                                       └─ the run of this process, or the files of another one
//! ```
//!
//! Readers pull from the journal: one that is slow or never comes back costs nothing.

mod guard;
mod session;
mod state;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Query, State as Shared};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use camino::Utf8PathBuf;
use futures_util::future::{try_join, try_join_all};
use portolan_engine::{Canceller, Journal, Key, State};
use portolan_listen::{Limits, ListenConfig, Listener, TlsError, error_reply};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use guard::Guard;
pub use session::{ServedRun, SessionError};

use crate::document::API_VERSION;
use crate::runs::ShipRun;
use crate::skaffold::{DevControl, RunOutline, SkaffoldApi, SkaffoldTurns};

/// How long readers have to take the last events when a run has ended.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// How long a run that has ended waits for a reader that takes nothing. What the system has taken for it counts, so only
/// one that is stuck takes nothing.
const STUCK: Duration = Duration::from_millis(200);

/// Serves the events of a run.
pub struct EventApi {
    /// The store, whose other runs can be read as well.
    pub store: Utf8PathBuf,
    /// The run that is meant if a request names none.
    pub run: ShipRun,
    /// The same if it is done by this process; `None` for one that is read from its files.
    pub live: Option<LiveRun>,
}

/// A run of this process.
pub struct LiveRun {
    /// Its events.
    pub journal: Journal,
    /// Calls it off.
    pub canceller: Canceller,
    /// What it is about, for clients of Skaffold.
    pub outline: RunOutline,
}

/// The addresses that a run is served at, beside its socket; each may be left out.
#[derive(Debug, Default)]
pub struct Addresses {
    /// Of this API. Every request must carry the token of the session.
    pub own: Option<TcpListener>,
    /// Of Skaffold's API over gRPC; without a token, so it must be an address of this machine for itself.
    pub skaffold_grpc: Option<TcpListener>,
    /// Of Skaffold's API over HTTP; likewise.
    pub skaffold_http: Option<TcpListener>,
}

/// The parameters of a request that has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The run that a request is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfRun {
    run: Option<String>,
}

/// What a request for the state says it wants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedState {
    run: Option<String>,
    at: Option<u64>,
}

/// What a request for events says it wants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedEvents {
    run: Option<String>,
    after: Option<u64>,
    follow: Option<bool>,
}

/// What a request for output says it wants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedLog {
    run: Option<String>,
    artifact: Option<String>,
}

/// What a request wants to be done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Order {
    /// Given back with the answer.
    request_id: Option<String>,
    action: Action,
    /// The artifact; all of the run without it.
    artifact: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Cancel,
    Retry,
}

/// The parameters of a request; what is wrong with them is answered as every error is.
struct Asked<T>(T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let Query(asked) = Query::try_from_uri(&parts.uri)
            .map_err(|error| refuse(StatusCode::BAD_REQUEST, &error.body_text()))?;
        Ok(Self(asked))
    }
}

/// An answer that is an error; boxed because it is large and rare.
struct Refusal(Box<Response>);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl EventApi {
    /// Answers requests until it is cancelled: through the socket of the run, which only its owner can open, and at the
    /// addresses that there are. Inside of the runtime.
    ///
    /// # Errors
    /// When the session file cannot be written.
    pub fn start(
        self,
        addresses: Addresses,
        cancelled: CancellationToken,
    ) -> Result<impl Future<Output = Result<(), TlsError>> + Send + 'static, SessionError> {
        let run = self.run.clone();
        let of_skaffold = (addresses.skaffold_grpc, addresses.skaffold_http);
        let turns = match &self.live {
            Some(live) => SkaffoldTurns::of_one(&live.journal, live.outline.clone()),
            // What the run was about is only needed by clients of Skaffold.
            None if of_skaffold.0.is_none() && of_skaffold.1.is_none() => SkaffoldTurns::default(),
            None => SkaffoldTurns::of_files(&run)?,
        };
        let socket = self.live.as_ref().and_then(|_| socket(&run));
        let has_socket = socket.is_some();
        let router = self.router();
        let mut served = Vec::new();
        if let Some(socket) = socket {
            served.push((socket, Guard::for_socket(), router.clone()));
        }
        let mut session = None;
        if let Some(listener) = addresses.own {
            let at = local_address(&listener)?;
            let begun = ServedRun::begin(&run, at)?;
            let guard = Guard::with_token(at, begun.token.clone());
            served.push((listener.into(), guard, router));
            session = Some(begun);
        }
        let skaffold = serve_skaffold(of_skaffold, turns, None, cancelled.clone())?;
        let serve_all = served.into_iter().map(move |(listener, guard, router)| {
            serve_guarded(listener, guard, router, cancelled.clone())
        });
        let serve_all = try_join(try_join_all(serve_all), skaffold);
        Ok(async move {
            let ended = serve_all.await;
            if let Some(session) = session {
                session.end();
            }
            if has_socket {
                // Where it cannot be removed, nobody answers there.
                let _ = std::fs::remove_file(run.socket());
            }
            ended.map(|_| ())
        })
    }

    fn router(self) -> Router {
        Router::new()
            .route("/api/ship/v1/runs", get(runs))
            .route("/api/ship/v1/state", get(state))
            .route("/api/ship/v1/events", get(events))
            .route("/api/ship/v1/log", get(log))
            .route("/api/ship/v1/control", post(control))
            .with_state(Arc::new(self))
    }

    /// The run that is wanted; none is the one of this process.
    fn find(&self, id: Option<&str>) -> Result<ShipRun, Refusal> {
        let Some(id) = id.filter(|id| *id != self.run.id()) else {
            return Ok(self.run.clone());
        };
        let runs = ShipRun::list(&self.store).map_err(|error| failed(&error))?;
        let found = runs.into_iter().find(|run| run.id() == id);
        found.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "there is no such run"))
    }

    /// The run that is wanted, if this process does it.
    fn live(&self, run: &ShipRun) -> Option<&LiveRun> {
        self.live.as_ref().filter(|_| *run == self.run)
    }
}

/// Serves Skaffold's API over gRPC and over HTTP, for one run or for the turns of a dev loop, until it is cancelled. Inside of
/// the runtime.
///
/// # Errors
/// When an address cannot be used.
pub fn serve_skaffold(
    (grpc, http): (Option<TcpListener>, Option<TcpListener>),
    turns: SkaffoldTurns,
    control: Option<Arc<DevControl>>,
    cancelled: CancellationToken,
) -> Result<impl Future<Output = Result<(), TlsError>> + Send + 'static, SessionError> {
    let api = SkaffoldApi::new(turns, control);
    let api = api.map_err(|status| SessionError::Skaffold(status.to_string()))?;
    let mut served = Vec::new();
    for (listener, router) in [(grpc, api.grpc), (http, api.http)] {
        if let Some(listener) = listener {
            let guard = Guard::for_skaffold(local_address(&listener)?);
            served.push((listener, guard, router));
        }
    }
    let serve_all = served.into_iter().map(move |(listener, guard, router)| {
        serve_guarded(listener.into(), guard, router, cancelled.clone())
    });
    let serve_all = try_join_all(serve_all);
    Ok(async move { serve_all.await.map(|_| ()) })
}

fn serve_guarded(
    listener: Listener,
    guard: Guard,
    router: Router,
    cancelled: CancellationToken,
) -> impl Future<Output = Result<(), TlsError>> + Send + 'static {
    let guarded = from_fn_with_state(Arc::new(guard), guard::check);
    let served = portolan_listen::serve(listener, router.layer(guarded), config(), cancelled);
    async move { served.await.map(|_| ()) }
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, SessionError> {
    listener.local_addr().map_err(SessionError::Address)
}

/// The socket of a run. A build does not fail for the want of one: its events can be read from its files.
fn socket(run: &ShipRun) -> Option<Listener> {
    let path = run.socket();
    match Listener::socket(path.as_std_path()) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(%path, %error, "the run has no socket; `--listen` gives it an address");
            None
        }
    }
}

/// How many requests readers on this machine send in a second: pages that ask for the state again and again.
const REQUESTS_PER_SECOND: u32 = 20_000;

fn config() -> ListenConfig {
    ListenConfig {
        limits: Limits {
            // All readers are on this machine and come from one address: they share what there is.
            connections_per_client: Limits::CONNECTIONS,
            requests_per_second: REQUESTS_PER_SECOND,
            request_burst: REQUESTS_PER_SECOND,
            drain_time: LAST_EVENTS,
            drain_stall: STUCK,
            ..Limits::default()
        },
        ..ListenConfig::default()
    }
}

async fn runs(
    Shared(api): Shared<Arc<EventApi>>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Response, Refusal> {
    let is_own = |run: &ShipRun| api.live(run).is_some();
    let runs = ShipRun::list(&api.store).map_err(|error| failed(&error))?;
    let runs: Vec<Value> = runs
        .iter()
        .map(|run| json!({"id": run.id(), "live": is_own(run) || run.is_live().unwrap_or(false)}))
        .collect();
    Ok(json_reply(
        &json!({"apiVersion": API_VERSION, "kind": "RunList", "items": runs}),
    ))
}

async fn state(
    Shared(api): Shared<Arc<EventApi>>,
    Asked(wanted): Asked<WantedState>,
) -> Result<Response, Refusal> {
    let run = api.find(wanted.run.as_deref())?;
    let folded = match (api.live(&run), wanted.at) {
        (Some(live), None) => live.journal.state(),
        (live, at) => {
            if let Some(live) = live {
                // What readers have seen is on file, and may be asked for.
                live.journal.flush().await.map_err(|error| failed(&error))?;
            }
            fold(run.clone(), at.unwrap_or(u64::MAX)).await?
        }
    };
    if wanted.at.is_some_and(|at| folded.seq() < at) {
        let last = folded.seq();
        let message = format!("the last event of the run is {last}");
        return Err(refuse(StatusCode::NOT_FOUND, &message));
    }
    Ok(json_reply(&state::to_json(&folded, run.id())))
}

/// Where a run stood after an event.
async fn fold(run: ShipRun, at: u64) -> Result<State, Refusal> {
    let folded = tokio::task::spawn_blocking(move || state::fold(&run, at)).await;
    let folded = folded.map_err(|died| failed(&died))?;
    folded.map_err(|error| failed(&error))
}

async fn events(
    Shared(api): Shared<Arc<EventApi>>,
    Asked(wanted): Asked<WantedEvents>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let run = api.find(wanted.run.as_deref())?;
    let wants_sse = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"));
    // A browser that lost its connection says where it was.
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let after = last.or(wanted.after).unwrap_or(0);
    let follow = wanted.follow.unwrap_or(true);
    let source = match api.live(&run) {
        Some(live) => stream::Source::journal(&live.journal, after, follow),
        None => stream::Source::files(&run, after),
    };
    if wants_sse {
        return Ok(stream::sse(source, run));
    }
    stream::ndjson(source, &run).await
}

async fn log(
    Shared(api): Shared<Arc<EventApi>>,
    Asked(wanted): Asked<WantedLog>,
) -> Result<Response, Refusal> {
    let run = api.find(wanted.run.as_deref())?;
    let Some(artifact) = &wanted.artifact else {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "say of which artifact: `?artifact=NAME`",
        ));
    };
    let kept = run.kept_output(artifact).map_err(|error| failed(&error))?;
    let Some(kept) = kept else {
        return Err(refuse(
            StatusCode::NOT_FOUND,
            "the run has no output of such an artifact",
        ));
    };
    let text = if kept.dropped == 0 {
        format!("{}{}", kept.first, kept.last)
    } else {
        format!(
            "{}… {} bytes left out …\n{}",
            kept.first, kept.dropped, kept.last
        )
    };
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, text).into_response())
}

/// Calls an artifact or the whole run off, or has an artifact tried again that failed. What cannot be done any more is answered
/// with how the artifact ended.
async fn control(
    Shared(api): Shared<Arc<EventApi>>,
    Asked(wanted): Asked<OfRun>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let run = api.find(wanted.run.as_deref())?;
    let Some(live) = api.live(&run) else {
        return Err(refuse(
            StatusCode::CONFLICT,
            "only a run that this process does can be controlled",
        ));
    };
    let order: Order = serde_json::from_slice(&body).map_err(|error| {
        let message = format!("{error}; write `{{\"action\": \"cancel\", \"artifact\": \"web\"}}`");
        refuse(StatusCode::BAD_REQUEST, &message)
    })?;
    let mut answer = json!({
        "apiVersion": API_VERSION, "kind": "ControlResult", "requestId": order.request_id, "accepted": true,
    });
    match (&order.artifact, order.action) {
        (None, Action::Cancel) => live.canceller.cancel(),
        (None, Action::Retry) => {
            let message = "say which artifact is tried again: `\"artifact\": \"web\"`";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        }
        (Some(name), action) => {
            let folded = live.journal.state();
            let key = Key::from(format!("artifact/{name}").as_str());
            let Some(unit) = folded.get(&key) else {
                return Err(refuse(
                    StatusCode::NOT_FOUND,
                    "the run builds no such artifact",
                ));
            };
            answer["state"] = state::unit_to_json(unit);
            match action {
                Action::Cancel if unit.phase.is_end() => answer["accepted"] = false.into(),
                Action::Cancel => live.canceller.cancel_unit(&key),
                Action::Retry => {
                    let queued = live.canceller.retry_unit(&key);
                    answer["accepted"] = (!queued.is_empty()).into();
                    answer["queued"] = queued.iter().map(Key::as_str).collect();
                }
            }
        }
    }
    Ok(json_reply(&answer))
}

fn json_reply(value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, format!("{value}\n")).into_response()
}

fn refuse(status: StatusCode, message: &str) -> Refusal {
    Refusal(Box::new(error_reply(status, message)))
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    let message = error.to_string();
    refuse(StatusCode::INTERNAL_SERVER_ERROR, &message)
}
