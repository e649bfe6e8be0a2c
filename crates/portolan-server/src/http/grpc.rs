//! The API over gRPC, on the same port: messages are turned into what HTTP requests ask for, and the same functions
//! check and answer them in the same order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::post;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use http::StatusCode;
use portolan_kinds::wire::{
    DeleteRequest, DeleteResponse, GetRequest, ListRequest, Object, ObjectList, WatchRequest,
    WriteRequest,
};
use portolan_kinds::{KindDefinition, KindObject, decode, find_kind, message};
use portolan_listen::ResponseTime;
use prost::Message;
use serde_json::{Value, json};
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use super::encoded_event::{EncodedEvent, WatchCodec};
use super::stream::{WATCH_TIME, WatchAccess, messages};
use super::{Claim, Http, MAX_BODY, fit_path};
use crate::error::{ApiError, RefusalReason};
use crate::object_message::{TYPE_PREFIX, object_message};
use crate::objects::Preconditions;
use crate::page::{ListQuery, MAX_OBJECTS, PageToken};
use crate::server::{Caller, Target, WriteMode};
use crate::watching::WatchQuery;

/// The most bytes of a page: of the largest objects it has fewer.
const MAX_ANSWER: usize = 64 << 20;

/// The routes of gRPC: objects, health, and reflection for tools.
pub(super) fn routes(http: Arc<Http>) -> Router {
    let routes = Router::new()
        .route("/portolan.v1alpha.Objects/{method}", post(objects))
        .route("/grpc.health.v1.Health/{method}", post(health))
        .with_state(http);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(portolan_kinds::DESCRIPTORS)
    };
    let (v1, v1alpha) = (reflection().build_v1(), reflection().build_v1alpha());
    let (Ok(v1), Ok(v1alpha)) = (v1, v1alpha) else {
        // The descriptors are part of the program, and a test reads them.
        return routes;
    };
    routes
        .route_service("/grpc.reflection.v1.ServerReflection/{method}", v1)
        .route_service(
            "/grpc.reflection.v1alpha.ServerReflection/{method}",
            v1alpha,
        )
}

async fn objects(
    State(http): State<Arc<Http>>,
    Path(method): Path<String>,
    request: Request,
) -> Response {
    if let Err(error) = http.guard.check(&request) {
        return refusal(&error);
    }
    let caller = match http.caller(Claim::of(&request)).await {
        Ok(caller) => caller,
        Err(error) => return refusal(&error),
    };
    let call = GrpcCall { http, caller };
    match method.as_str() {
        "Get" => unary(request, |asked| call.get(asked).boxed()).await,
        "List" => unary(request, |asked| call.list(asked).boxed()).await,
        "Create" => {
            unary(request, |asked| {
                call.write(WriteMode::Create, asked).boxed()
            })
            .await
        }
        "Update" => {
            unary(request, |asked| {
                call.write(WriteMode::Update, asked).boxed()
            })
            .await
        }
        "Apply" => unary(request, |asked| call.write(WriteMode::Apply, asked).boxed()).await,
        "Delete" => unary(request, |asked| call.delete(asked).boxed()).await,
        "Watch" => watch(request, |asked| call.watch(asked).boxed()).await,
        _ => as_response(Status::unimplemented("there is no such method").into_http()),
    }
}

/// One call, after its caller is known.
struct GrpcCall {
    http: Arc<Http>,
    caller: Caller,
}

impl GrpcCall {
    async fn get(self, asked: GetRequest) -> Result<Object, ApiError> {
        let target = target(&asked.kind, &asked.namespace, Some(&asked.name))?;
        let server = &self.http.server;
        server.authorise(&self.caller, "get", &target).await?;
        let object = server.get(&self.caller, &target, false).await?;
        Ok(object_message(&object))
    }

    async fn list(self, asked: ListRequest) -> Result<ObjectList, ApiError> {
        let target = target(&asked.kind, &asked.namespace, None)?;
        let server = &self.http.server;
        server.authorise(&self.caller, "list", &target).await?;
        let prefix = crate::keys::listed(target.kind, target.namespace.as_deref());
        let resume = match asked.r#continue.as_str() {
            "" => None,
            text => Some(PageToken::read(text, &prefix)?),
        };
        let filter = target.filter(&asked.label_selector, &asked.field_selector)?;
        let limit = match asked.limit {
            0 => MAX_OBJECTS,
            limit => usize::try_from(limit).unwrap_or(MAX_OBJECTS),
        };
        let query = ListQuery {
            kind: target.kind,
            namespace: target.namespace.clone(),
            filter: filter.within(server.scope_of(&self.caller)),
            limit,
            resume,
        };
        let page = server.list(&query).await?;
        let items = page.objects.iter();
        let items = items.map(|stored| object_message(&stored.object)).collect();
        let position = portolan_store::Position {
            incarnation: server.objects.incarnation.number,
            revision: page.revision,
        };
        Ok(ObjectList {
            items,
            resource_version: position.to_string(),
            r#continue: page.next.map(|next| next.to_text()).unwrap_or_default(),
        })
    }

    async fn write(self, how: WriteMode, asked: WriteRequest) -> Result<Object, ApiError> {
        let object = asked
            .object
            .ok_or_else(|| ApiError::bad_request("`object` is missing"))?;
        let metadata = object.metadata.clone().unwrap_or_default();
        let name = metadata.name.filter(|_| how != WriteMode::Create);
        let namespace = metadata.namespace.unwrap_or_default();
        let mut target = target(&object.kind, &namespace, name.as_deref())?;
        let server = &self.http.server;
        server.authorise(&self.caller, how.verb(), &target).await?;
        let text = object_json(target.kind, &object)?.to_string();
        let mut object =
            KindObject::read_text(&text).map_err(|faults| ApiError::invalid(&faults))?;
        fit_path(&mut object, &mut target)?;
        let written = server
            .write(&self.caller, &target, how, object, asked.dry_run)
            .await?;
        Ok(object_message(&written))
    }

    async fn delete(self, asked: DeleteRequest) -> Result<DeleteResponse, ApiError> {
        let target = target(&asked.kind, &asked.namespace, Some(&asked.name))?;
        let server = &self.http.server;
        server.authorise(&self.caller, "delete", &target).await?;
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let preconditions = Preconditions {
            uuid: given(asked.uuid),
            version: given(asked.resource_version),
        };
        let deleted = server
            .delete(&self.caller, &target, &preconditions, asked.dry_run)
            .await?;
        Ok(DeleteResponse {
            object: Some(object_message(&deleted.0.object)),
            deleted: deleted.0.is_done,
        })
    }

    async fn watch(self, asked: WatchRequest) -> Result<Events, ApiError> {
        let target = target(&asked.kind, &asked.namespace, None)?;
        let server = Arc::clone(&self.http.server);
        server.authorise(&self.caller, "watch", &target).await?;
        let filter = target.filter(&asked.label_selector, &asked.field_selector)?;
        let query = WatchQuery {
            kind: target.kind,
            namespace: target.namespace.clone(),
            filter: filter.within(server.scope_of(&self.caller)),
        };
        let version = Some(asked.resource_version.as_str());
        let version = version.filter(|version| !version.is_empty() && *version != "0");
        let watch = server.watch(query, version).await?;
        let access = WatchAccess::new(server, self.caller, target);
        let events = messages(watch, access).map(|message| Ok(EncodedEvent::of(&message)));
        Ok(events.boxed())
    }
}

/// Names what a call is about, by the same rules as a path.
fn target(kind: &str, namespace: &str, name: Option<&str>) -> Result<Target, ApiError> {
    let kind = find_kind(kind).ok_or_else(|| ApiError::not_found(&format!("kind {kind}")))?;
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    super::route::checked_target(kind, namespace, name)
}

/// The JSON of a message, to be read as a body would be.
fn object_json(kind: &KindDefinition, object: &Object) -> Result<Value, ApiError> {
    let wrong = |error: portolan_kinds::DecodeError| ApiError::bad_request(error.to_string());
    let metadata = object.metadata.clone().unwrap_or_default().encode_to_vec();
    let schema = message("Metadata").ok_or_else(|| ApiError::internal("no message Metadata"))?;
    let version = match object.api_version.as_str() {
        "" => portolan_kinds::VERSION,
        version => version,
    };
    let mut json = json!({
        "apiVersion": version, "kind": kind.name, "metadata": decode(schema, &metadata).map_err(wrong)?,
    });
    let Some(spec) = &object.spec else {
        json["spec"] = json!({});
        return Ok(json);
    };
    if spec.type_url.rsplit('/').next() != Some(&format!("portolan.v1alpha.{}", kind.spec)) {
        let message = format!(
            "`spec` of a {} must be a {TYPE_PREFIX}{}",
            kind.name, kind.spec
        );
        return Err(ApiError::bad_request(message));
    }
    let schema = message(kind.spec).ok_or_else(|| ApiError::internal("no message of the spec"))?;
    json["spec"] = decode(schema, &spec.value).map_err(wrong)?;
    Ok(json)
}

/// One answer to one message.
struct Unary<Q, A>(Option<Method<Q, A>>);

/// What a method does with its message.
type Method<Q, A> = Box<dyn FnOnce(Q) -> BoxFuture<'static, Result<A, ApiError>> + Send>;

impl<Q: Send + 'static, A: Send + 'static> UnaryService<Q> for Unary<Q, A> {
    type Response = A;
    type Future = BoxFuture<'static, Result<tonic::Response<A>, Status>>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        let answer = self.0.take().map(|answer| answer(request.into_inner()));
        async move {
            match answer {
                Some(answer) => answer
                    .await
                    .map(tonic::Response::new)
                    .map_err(|error| status(&error)),
                None => Err(Status::internal("a call is answered once")),
            }
        }
        .boxed()
    }
}

type Events = BoxStream<'static, Result<EncodedEvent, Status>>;

/// Many answers to one message.
struct Streaming(Option<Method<WatchRequest, Events>>);

impl ServerStreamingService<WatchRequest> for Streaming {
    type Response = EncodedEvent;
    type ResponseStream = Events;
    type Future = BoxFuture<'static, Result<tonic::Response<Events>, Status>>;

    fn call(&mut self, request: tonic::Request<WatchRequest>) -> Self::Future {
        let answer = self.0.take().map(|answer| answer(request.into_inner()));
        async move {
            match answer {
                Some(answer) => answer
                    .await
                    .map(tonic::Response::new)
                    .map_err(|error| status(&error)),
                None => Err(Status::internal("a call is answered once")),
            }
        }
        .boxed()
    }
}

async fn unary<Q, A>(
    request: Request,
    answer: impl FnOnce(Q) -> BoxFuture<'static, Result<A, ApiError>> + Send + 'static,
) -> Response
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default())
        .max_decoding_message_size(MAX_BODY)
        .max_encoding_message_size(MAX_ANSWER);
    as_response(grpc.unary(Unary(Some(Box::new(answer))), request).await)
}

async fn watch(
    request: Request,
    answer: impl FnOnce(WatchRequest) -> BoxFuture<'static, Result<Events, ApiError>> + Send + 'static,
) -> Response {
    let mut grpc = Grpc::new(WatchCodec)
        .max_decoding_message_size(MAX_BODY)
        .max_encoding_message_size(MAX_ANSWER);
    let answered = grpc.server_streaming(Streaming(Some(Box::new(answer))), request);
    let mut response = as_response(answered.await);
    let time = ResponseTime(WATCH_TIME + Duration::from_mins(1));
    response.extensions_mut().insert(time);
    response
}

/// `grpc.health.v1.Health`.
#[derive(Clone, PartialEq, Message)]
struct HealthRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthAnswer {
    /// 1 is serving, 2 is not.
    #[prost(int32, tag = "1")]
    status: i32,
}

async fn health(
    State(http): State<Arc<Http>>,
    Path(method): Path<String>,
    request: Request,
) -> Response {
    if method != "Check" {
        let only = Status::unimplemented("health can be checked, and objects watched");
        return as_response(only.into_http());
    }
    let answer = move |asked: HealthRequest| {
        async move {
            if !matches!(asked.service.as_str(), "" | "portolan.v1alpha.Objects") {
                return Err(ApiError::not_found(&format!("service {}", asked.service)));
            }
            let status = if http.server.readiness().is_ok() {
                1
            } else {
                2
            };
            Ok(HealthAnswer { status })
        }
        .boxed()
    };
    unary(request, answer).await
}

fn as_response(response: http::Response<tonic::body::Body>) -> Response {
    response.map(Body::new)
}

fn refusal(error: &ApiError) -> Response {
    as_response(status(error).into_http())
}

/// A refusal in the words of gRPC; the whole of it is in the metadata `portolan-error`, as JSON.
fn status(error: &ApiError) -> Status {
    let code = match error.reason {
        RefusalReason::BadRequest if error.status == StatusCode::PAYLOAD_TOO_LARGE => {
            Code::ResourceExhausted
        }
        RefusalReason::BadRequest | RefusalReason::Invalid => Code::InvalidArgument,
        RefusalReason::Unauthenticated => Code::Unauthenticated,
        RefusalReason::Forbidden => Code::PermissionDenied,
        RefusalReason::NotFound => Code::NotFound,
        RefusalReason::AlreadyExists => Code::AlreadyExists,
        RefusalReason::Conflict => Code::Aborted,
        RefusalReason::Managed | RefusalReason::Terminating | RefusalReason::VersionRequired => {
            Code::FailedPrecondition
        }
        RefusalReason::Expired => Code::OutOfRange,
        RefusalReason::StorageFull | RefusalReason::TooManyRequests => Code::ResourceExhausted,
        RefusalReason::Unavailable => Code::Unavailable,
        RefusalReason::Unknown => Code::Unknown,
        RefusalReason::Internal => Code::Internal,
    };
    let mut status = Status::new(code, error.message.clone());
    if let Ok(text) = error.to_json().to_string().parse() {
        status.metadata_mut().insert("portolan-error", text);
    }
    status
}

/// Reads a message with an object as the server does, for the fuzz targets; says whether it is one.
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    let Ok(object) = Object::decode(bytes) else {
        return false;
    };
    let Some(kind) = find_kind(&object.kind) else {
        return false;
    };
    let json = object_json(kind, &object).map(|json| json.to_string());
    let read = json.map(|text| KindObject::read_text(&text));
    let Ok(Ok(read)) = read else {
        return false;
    };
    object_message(&read).encoded_len() > 0
}
