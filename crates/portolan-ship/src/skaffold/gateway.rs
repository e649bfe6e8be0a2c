//! The service over HTTP, as grpc-gateway shapes it: JSON, streams as lines of `{"result": …}`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use futures_util::StreamExt as _;
use portolan_listen::ResponseTime;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tonic::{Code, Request, Status};

use super::json::to_json;
use super::service::{Events, SkaffoldService};
use super::wire::skaffold_v2_service_server::SkaffoldV2Service;
use super::{DESCRIPTORS, wire};

/// How long a stream may go on.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// The service, and the types that are written as JSON.
struct Gateway {
    service: Arc<SkaffoldService>,
    state: MessageDescriptor,
    event: MessageDescriptor,
}

/// The body of `/v2/execute`.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct IntentBody {
    build: bool,
    sync: bool,
    deploy: bool,
    devloop: bool,
}

/// The body of `/v2/*/auto_execute`.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct TriggerBody {
    enabled: Option<bool>,
}

pub(super) fn router(service: Arc<SkaffoldService>) -> Result<Router, Status> {
    let pool =
        DescriptorPool::decode(DESCRIPTORS).map_err(|error| Status::internal(error.to_string()))?;
    let kind = |name: &str| {
        let found = pool.get_message_by_name(name);
        found.ok_or_else(|| Status::internal(format!("there is no message `{name}`")))
    };
    let gateway = Gateway {
        state: kind("proto.v2.State")?,
        event: kind("proto.v2.Event")?,
        service,
    };
    Ok(Router::new()
        .route("/v2/state", get(state))
        .route("/v2/events", get(events))
        .route("/v2/applicationLogs", get(application_logs))
        .route("/v2/execute", post(execute))
        .route("/v2/build/auto_execute", put(auto_build))
        .route("/v2/sync/auto_execute", put(auto_sync))
        .route("/v2/deploy/auto_execute", put(auto_deploy))
        .route("/v2/events/handle", post(handle))
        .with_state(Arc::new(gateway)))
}

async fn state(Shared(gateway): Shared<Arc<Gateway>>) -> Response {
    match gateway.service.state() {
        Ok(state) => json_reply(StatusCode::OK, &to_json(&state, &gateway.state)),
        Err(status) => error(&status),
    }
}

async fn events(Shared(gateway): Shared<Arc<Gateway>>) -> Response {
    let answer = gateway.service.events(Request::new(())).await;
    stream_of(gateway, answer)
}

async fn application_logs(Shared(gateway): Shared<Arc<Gateway>>) -> Response {
    let answer = gateway.service.application_logs(Request::new(())).await;
    stream_of(gateway, answer)
}

fn stream_of(gateway: Arc<Gateway>, answer: Result<tonic::Response<Events>, Status>) -> Response {
    let events = match answer {
        Ok(events) => events.into_inner(),
        Err(status) => return error(&status),
    };
    let lines = events.map(move |event| {
        let line = match event {
            Ok(event) => json!({"result": to_json(&event, &gateway.event)}),
            Err(status) => json!({"error": status_json(&status)}),
        };
        Ok::<_, Infallible>(format!("{line}\n"))
    });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (kind, Body::from_stream(lines)).into_response();
    response.extensions_mut().insert(ResponseTime(LONGEST));
    response
}

async fn execute(Shared(gateway): Shared<Arc<Gateway>>, body: Bytes) -> Response {
    let intent: IntentBody = match read(&body) {
        Ok(intent) => intent,
        Err(status) => return error(&status),
    };
    let request = wire::UserIntentRequest {
        intent: Some(wire::Intent {
            build: intent.build,
            sync: intent.sync,
            deploy: intent.deploy,
            devloop: intent.devloop,
        }),
    };
    done(gateway.service.execute(Request::new(request)).await)
}

async fn auto_build(Shared(gateway): Shared<Arc<Gateway>>, body: Bytes) -> Response {
    match trigger(&body) {
        Ok(request) => done(gateway.service.auto_build(request).await),
        Err(status) => error(&status),
    }
}

async fn auto_sync(Shared(gateway): Shared<Arc<Gateway>>, body: Bytes) -> Response {
    match trigger(&body) {
        Ok(request) => done(gateway.service.auto_sync(request).await),
        Err(status) => error(&status),
    }
}

async fn auto_deploy(Shared(gateway): Shared<Arc<Gateway>>, body: Bytes) -> Response {
    match trigger(&body) {
        Ok(request) => done(gateway.service.auto_deploy(request).await),
        Err(status) => error(&status),
    }
}

async fn handle(Shared(gateway): Shared<Arc<Gateway>>) -> Response {
    let request = Request::new(wire::Event::default());
    done(gateway.service.handle(request).await)
}

fn trigger(body: &[u8]) -> Result<Request<wire::TriggerRequest>, Status> {
    let body: TriggerBody = read(body)?;
    let val = body.enabled.map(wire::trigger_state::Val::Enabled);
    let state = Some(wire::TriggerState { val });
    Ok(Request::new(wire::TriggerRequest { state }))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(body).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn done(answer: Result<tonic::Response<()>, Status>) -> Response {
    match answer {
        Ok(_) => json_reply(StatusCode::OK, &json!({})),
        Err(status) => error(&status),
    }
}

fn error(status: &Status) -> Response {
    let code = match status.code() {
        Code::InvalidArgument | Code::FailedPrecondition => StatusCode::BAD_REQUEST,
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    json_reply(code, &status_json(status))
}

fn status_json(status: &Status) -> Value {
    json!({"code": i32::from(status.code()), "message": status.message(), "details": []})
}

fn json_reply(code: StatusCode, value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (code, kind, value.to_string()).into_response()
}
