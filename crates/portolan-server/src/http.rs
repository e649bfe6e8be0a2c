//! The API over HTTP and JSON: reads requests, writes answers, and holds no rules.
//!
//! ```text
//! /api/v1alpha/KINDS[/NAME]                            global kinds, and namespaced ones of all namespaces
//! /api/v1alpha/namespaces/NAMESPACE/KINDS[/NAME]       namespaced kinds
//! /api/v1alpha/namespaces/NAMESPACE/taskbooks/NAME/run       makes a run
//! /api/v1alpha/namespaces/NAMESPACE/runs/NAME/nodes          the parts of nodes in a run; also …/cancel and …/resume
//! /api/v1alpha/namespaces/NAMESPACE/blobs[/DIGEST]     content that is too large for an object
//! /api/v1alpha/namespaces/NAMESPACE/webhooks/NAME/deliver   a request from outside, signed with the webhook's key
//! /api/v1alpha/namespaces/NAMESPACE/nodes/NAME/variables    the variables of a node, and where each came from
//! /api/v1alpha/trigger-tests                           what triggers would do about an event
//! /api/v1alpha/auth/can-i | rights | tokens[/ID]       rights and tokens
//! /api/v1alpha/enrolments[/…] | join-tokens[/ID]        nodes that come and go
//! /api/v1alpha/authorities                             whom clients trust
//! /api/v1alpha/status                                  the server itself
//! /openapi.json
//! ```

mod blobs;
mod encoded_event;
mod grpc;
mod guard;
mod identity;
mod live;
mod query;
mod reply;
mod route;
mod runs;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use http::{HeaderMap, Method, StatusCode, header};
use portolan_agent::wire::agent_service_server::AgentServiceServer;
use portolan_kinds::KindObject;
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::agents::{AGENT_STREAM, AgentStreams};
use crate::error::{ApiError, RefusalReason};
use crate::fleet_identity::Credential;
use crate::history;
use crate::objects::Preconditions;
use crate::openapi;
use crate::page::{ListQuery, MAX_OBJECTS, PageToken};
use crate::server::{ApiServer, Caller, Target, WriteMode};
use crate::strict_json;
use crate::token::NewToken;
use crate::watching::WatchQuery;
use guard::{Guard, peer_of};
use live::LiveRoute;
use query::Wanted;
use reply::{json_reply, refusal};
use route::Route;

/// The most bytes of an object in a request.
const MAX_BODY: usize = 512 << 10;

struct Http {
    server: Arc<ApiServer>,
    guard: Guard,
}

/// The routes of a server that clients call by these names.
pub(crate) fn router(server: Arc<ApiServer>, hosts: Vec<String>) -> Router {
    let http = Arc::new(Http {
        server,
        guard: Guard::new(hosts),
    });
    // The listener has a fallback of its own, so every path is named.
    Router::new()
        .route("/", any(answer))
        .route("/{*path}", any(answer))
        .with_state(Arc::clone(&http))
        .merge(grpc::routes(http))
}

/// Who a request says it comes from.
struct Claim {
    credential: Result<Credential, ApiError>,
    address: String,
    path: String,
}

impl Claim {
    fn of(request: &Request) -> Self {
        Self {
            credential: guard::credential(request),
            address: address_of(request),
            path: request.uri().path().to_owned(),
        }
    }
}

async fn answer(State(http): State<Arc<Http>>, request: Request) -> Response {
    match Box::pin(http.handle(request)).await {
        Ok(response) => response,
        Err(error) => refusal(&error),
    }
}

impl Http {
    /// The order of all requests: host, identity, rate, right from the path alone, and only then the body.
    async fn handle(&self, request: Request) -> Result<Response, ApiError> {
        self.guard.check(&request)?;
        let path = request.uri().path().to_owned();
        if path == "/openapi.json" && request.method() == Method::GET {
            return Ok(json_reply(StatusCode::OK, openapi::document()));
        }
        if path == AGENT_STREAM {
            return Ok(self.agent_stream(request).await);
        }
        let route = Route::parse(&path);
        if let Ok(Route::Identity(route)) = &route
            && route.is_public(request.method())
        {
            let address = address_of(&request);
            let answered = self.public_identity(route, request).await;
            if let Some(error) = too_large(&answered) {
                self.server.record_stranger(&address, &path, error).await;
            }
            return answered;
        }
        if let Ok(Route::Live(LiveRoute::Deliver(target))) = &route {
            return self.deliver(target, request).await;
        }
        let caller = self.caller(Claim::of(&request)).await?;
        let wanted = Wanted::read(request.uri().query().unwrap_or_default())?;
        let route = route?;
        self.check_node(&caller, &route).await?;
        let answered = self.take(&caller, route, wanted, request).await;
        if let Some(error) = too_large(&answered) {
            let about = json!({"path": path});
            let recorded = self
                .server
                .record_about(&caller, "request", about, Err(error));
            recorded.await?;
        }
        answered
    }

    async fn take(
        &self,
        caller: &Caller,
        route: Route,
        wanted: Wanted,
        request: Request,
    ) -> Result<Response, ApiError> {
        match route {
            Route::Identity(route) => self.identity(caller, route, request).await,
            Route::Runs(route) => self.runs(caller, route, request).await,
            Route::Blobs(route) => self.blobs(caller, route, request).await,
            Route::Live(route) => self.live(caller, route, request).await,
            Route::Objects(target) => self.objects(caller, target, wanted, request).await,
            Route::Status => {
                allow(&request, &[Method::GET])?;
                Ok(json_reply(StatusCode::OK, &self.server.status().await?))
            }
            Route::CanI => self.can_i(caller, request).await,
            Route::Rights => {
                allow(&request, &[Method::GET])?;
                let rights = self.server.access.rights_of(&caller.identity);
                let items: Vec<Value> = rights.iter().map(crate::access::Right::to_json).collect();
                let body = json!({
                    "apiVersion": portolan_kinds::VERSION, "kind": "RightList", "user": caller.identity.user,
                    "groups": caller.identity.groups, "items": items,
                });
                Ok(json_reply(StatusCode::OK, &body))
            }
            Route::Tokens => self.tokens(caller, request).await,
            Route::Token(id) => {
                allow(&request, &[Method::DELETE])?;
                self.server.delete_token(caller, &id).await?;
                Ok(json_reply(
                    StatusCode::OK,
                    &json!({"apiVersion": portolan_kinds::VERSION, "kind": "Deleted"}),
                ))
            }
        }
    }

    /// Who asks; who does not say it is in the audit log.
    async fn caller(&self, claim: Claim) -> Result<Caller, ApiError> {
        let Claim {
            credential,
            address,
            path,
        } = claim;
        let identity = match credential {
            Ok(credential) => self.server.authenticate(&credential).await,
            Err(error) => Err(error),
        };
        match identity {
            Ok(identity) => Ok(Caller { identity, address }),
            Err(error) => {
                if error.reason == RefusalReason::Unauthenticated {
                    self.server.record_stranger(&address, &path, &error).await;
                }
                Err(error)
            }
        }
    }

    /// The stream of an agent. Refusals are told as gRPC tells them, so that the agent can read them.
    async fn agent_stream(&self, mut request: Request) -> Response {
        match self.caller(Claim::of(&request)).await {
            Ok(caller) => request.extensions_mut().insert(Arc::new(caller.identity)),
            Err(error) => return tonic::Status::unauthenticated(error.message).into_http(),
        };
        let streams = AgentStreams {
            server: Arc::clone(&self.server),
        };
        let answered = AgentServiceServer::new(streams).call(request).await;
        answered.map_or_else(|never| match never {}, |response| response.map(Body::new))
    }

    /// Agents have no use for anything but objects, their certificate and their report.
    async fn check_node(&self, caller: &Caller, route: &Route) -> Result<(), ApiError> {
        let Some(node) = &caller.identity.node else {
            return Ok(());
        };
        match route {
            Route::Objects(_) | Route::CanI | Route::Rights => Ok(()),
            Route::Identity(route) if route.is_for_nodes() => Ok(()),
            Route::Runs(route) if route.is_for_nodes() => Ok(()),
            _ => {
                let error = crate::node_access::forbidden(node, "use this path");
                let about = json!({"kind": format!("{route:?}")});
                let recorded = self
                    .server
                    .record_about(caller, "request", about, Err(&error));
                recorded.await?;
                Err(error)
            }
        }
    }

    async fn objects(
        &self,
        caller: &Caller,
        target: Target,
        wanted: Wanted,
        request: Request,
    ) -> Result<Response, ApiError> {
        let method = request.method().clone();
        let has_name = target.name.is_some();
        match (method.as_str(), has_name) {
            ("GET", false) if wanted.watch => {
                self.watch(caller, &target, wanted, request.headers().clone())
                    .await
            }
            ("GET", false) => self.list(caller, &target, &wanted).await,
            ("GET", true) => self.get(caller, &target, &wanted).await,
            ("POST", false) => {
                self.write(caller, target, WriteMode::Create, &wanted, request)
                    .await
            }
            ("PUT", true) => {
                let how = if wanted.apply {
                    WriteMode::Apply
                } else {
                    WriteMode::Update
                };
                self.write(caller, target, how, &wanted, request).await
            }
            ("DELETE", true) => self.delete(caller, &target, wanted).await,
            _ => Err(not_allowed(if has_name {
                "GET, PUT, DELETE"
            } else {
                "GET, POST"
            })),
        }
    }

    async fn get(
        &self,
        caller: &Caller,
        target: &Target,
        wanted: &Wanted,
    ) -> Result<Response, ApiError> {
        self.server.authorise(caller, "get", target).await?;
        if wanted.history {
            self.server.check_visible(caller, target).await?;
            let now = self.server.find(target).await?;
            let now = now.ok_or_else(|| ApiError::not_found(&target.shown()))?;
            let changes = history::history(&self.server.objects, &target.key()?, now).await?;
            return Ok(json_reply(StatusCode::OK, &changes));
        }
        let reveal = wanted.reveal && target.kind.name == "Secret";
        if reveal {
            self.server.authorise(caller, "read-secret", target).await?;
        }
        let object = self.server.get(caller, target, reveal).await?;
        Ok(json_reply(StatusCode::OK, &object.to_json()))
    }

    async fn list(
        &self,
        caller: &Caller,
        target: &Target,
        wanted: &Wanted,
    ) -> Result<Response, ApiError> {
        self.server.authorise(caller, "list", target).await?;
        let prefix = crate::keys::listed(target.kind, target.namespace.as_deref());
        let resume = match wanted.resume.as_deref() {
            None | Some("") => None,
            Some(text) => Some(PageToken::read(text, &prefix)?),
        };
        let page = self
            .server
            .list(&ListQuery {
                kind: target.kind,
                namespace: target.namespace.clone(),
                filter: target
                    .filter(&wanted.labels, &wanted.fields)?
                    .within(self.server.scope_of(caller)),
                limit: wanted.limit.unwrap_or(MAX_OBJECTS),
                resume,
            })
            .await?;
        let position = portolan_store::Position {
            incarnation: self.server.objects.incarnation.number,
            revision: page.revision,
        };
        let items: Vec<Value> = page
            .objects
            .iter()
            .map(|stored| stored.object.to_json())
            .collect();
        let mut metadata = json!({"resourceVersion": position.to_string()});
        if let Some(next) = &page.next {
            metadata["continue"] = next.to_text().into();
        }
        let body = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": format!("{}List", target.kind.name),
            "metadata": metadata, "items": items,
        });
        Ok(json_reply(StatusCode::OK, &body))
    }

    async fn watch(
        &self,
        caller: &Caller,
        target: &Target,
        wanted: Wanted,
        headers: HeaderMap,
    ) -> Result<Response, ApiError> {
        self.server.authorise(caller, "watch", target).await?;
        let query = WatchQuery {
            kind: target.kind,
            namespace: target.namespace.clone(),
            filter: target
                .filter(&wanted.labels, &wanted.fields)?
                .within(self.server.scope_of(caller)),
        };
        // A browser that lost its connection says where it was.
        let last = headers.get("last-event-id");
        let last = last.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let version = last.or(wanted.version).filter(|_| !wanted.initial);
        let version = version.filter(|version| !version.is_empty() && version != "0");
        let watch = self.server.watch(query, version.as_deref()).await?;
        let accepts = headers.get(header::ACCEPT);
        let is_sse = accepts
            .and_then(|accepts| accepts.to_str().ok())
            .is_some_and(|accepts| accepts.contains("text/event-stream"));
        let access =
            stream::WatchAccess::new(Arc::clone(&self.server), caller.clone(), target.clone());
        Ok(stream::reply(watch, access, is_sse))
    }

    async fn write(
        &self,
        caller: &Caller,
        mut target: Target,
        how: WriteMode,
        wanted: &Wanted,
        request: Request,
    ) -> Result<Response, ApiError> {
        self.server.authorise(caller, how.verb(), &target).await?;
        let text = read_body(request).await?;
        if let Some(why) = strict_json::repeated_key(&text) {
            return Err(ApiError::bad_request(format!(
                "the body is ambiguous: {why}"
            )));
        }
        let mut object =
            KindObject::read_text(&text).map_err(|faults| ApiError::invalid(&faults))?;
        fit_path(&mut object, &mut target)?;
        let object = self
            .server
            .write(caller, &target, how, object, wanted.dry_run)
            .await?;
        let status = if how == WriteMode::Create {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        Ok(json_reply(status, &object.to_json()))
    }

    async fn delete(
        &self,
        caller: &Caller,
        target: &Target,
        wanted: Wanted,
    ) -> Result<Response, ApiError> {
        self.server.authorise(caller, "delete", target).await?;
        let preconditions = Preconditions {
            uuid: wanted.uuid,
            version: wanted.version,
        };
        let (deletion, dependents) = self
            .server
            .delete(caller, target, &preconditions, wanted.dry_run)
            .await?;
        let body = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Deletion", "deleted": deletion.is_done,
            "dependents": dependents, "finalizers": deletion.object.metadata.finalizers,
            "object": deletion.object.to_json(),
        });
        let status = if deletion.is_done {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        Ok(json_reply(status, &body))
    }

    /// Says whether the caller may do something, and why.
    async fn can_i(&self, caller: &Caller, request: Request) -> Result<Response, ApiError> {
        allow(&request, &[Method::POST])?;
        let body = read_json(request).await?;
        let text = |key: &str| {
            body.get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let (Some(verb), Some(kind)) = (text("verb"), text("kind")) else {
            return Err(ApiError::bad_request(
                "the body must have `verb` and `kind`",
            ));
        };
        let known = portolan_kinds::find_kind(kind);
        let kind = known.map_or(kind, |kind| kind.name);
        let action = crate::access::Action {
            verb,
            kind,
            namespace: text("namespace").filter(|_| known.is_none_or(|kind| kind.is_namespaced)),
            name: text("name"),
        };
        let answer = match self.server.access.check(&caller.identity, &action) {
            Ok(right) => json!({"allowed": true, "because": &*right.because}),
            Err(error) => {
                json!({"allowed": false, "because": error.message, "missing": error.details["missing"]})
            }
        };
        Ok(json_reply(StatusCode::OK, &answer))
    }

    async fn tokens(&self, caller: &Caller, request: Request) -> Result<Response, ApiError> {
        allow(&request, &[Method::GET, Method::POST])?;
        if request.method() == Method::GET {
            return Ok(json_reply(
                StatusCode::OK,
                &self.server.list_tokens(caller).await?,
            ));
        }
        let new = read_new_token(&read_json(request).await?)?;
        Ok(json_reply(
            StatusCode::CREATED,
            &self.server.create_token(caller, new).await?,
        ))
    }
}

/// The refusal of a body that is larger than it may be.
fn too_large(answered: &Result<Response, ApiError>) -> Option<&ApiError> {
    let error = answered.as_ref().err()?;
    (error.status == StatusCode::PAYLOAD_TOO_LARGE).then_some(error)
}

/// Reads whom a token or certificate is for.
fn read_new_token(body: &Value) -> Result<NewToken, ApiError> {
    let text = |key: &str| {
        body.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let life = match text("life").as_str() {
        "" => None,
        life => Some(
            portolan_kinds::read_span(life)
                .map_err(|why| ApiError::bad_request(format!("`life` {why}")))?,
        ),
    };
    let user = text("user");
    if user.is_empty() || user.len() > 253 || user.starts_with("system:") {
        return Err(ApiError::bad_request(
            "`user` must be a name that does not begin with `system:`",
        ));
    }
    let groups = body
        .get("groups")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let groups = groups
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    Ok(NewToken {
        user,
        groups,
        life,
        description: text("description").chars().take(200).collect(),
    })
}

/// The object must be the one of the path; a name or namespace that it does not have comes from there.
fn fit_path(object: &mut KindObject, target: &mut Target) -> Result<(), ApiError> {
    if object.kind != target.kind {
        let message = format!(
            "the object is a {}, but the path is of {}",
            object.kind.name, target.kind.plural
        );
        return Err(ApiError::bad_request(message));
    }
    if target.kind.is_namespaced {
        if object.metadata.namespace.is_none() {
            object.metadata.namespace.clone_from(&target.namespace);
        }
        if object.metadata.namespace.is_none() || object.metadata.namespace != target.namespace {
            let message = "the namespace of the object is not the one of the path";
            return Err(ApiError::bad_request(message));
        }
    }
    match &target.name {
        Some(name) if name != object.name() => Err(ApiError::bad_request(
            "the name of the object is not the one of the path",
        )),
        _ => {
            target.name = Some(object.name().to_owned());
            Ok(())
        }
    }
}

async fn read_body(request: Request) -> Result<String, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !matches!(kind, "application/json" | "application/yaml") {
        let message = "the body must be `content-type: application/json` or `application/yaml`";
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            RefusalReason::BadRequest,
            message,
        ));
    }
    let limited = http_body_util::Limited::new(request.into_body(), MAX_BODY);
    let collected = http_body_util::BodyExt::collect(limited).await;
    let bytes = collected.map_err(|_| {
        let message = format!("the body is larger than {MAX_BODY} bytes, or ended early");
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            RefusalReason::BadRequest,
            message,
        )
    })?;
    String::from_utf8(bytes.to_bytes().into())
        .map_err(|_| ApiError::bad_request("the body is not UTF-8"))
}

async fn read_json(request: Request) -> Result<Value, ApiError> {
    let text = read_body(request).await?;
    let value = strict_json::parse(&text)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ApiError::bad_request("the body must be a JSON object"))
    }
}

fn allow(request: &Request<Body>, methods: &[Method]) -> Result<(), ApiError> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    let allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
    Err(not_allowed(&allowed.join(", ")))
}

fn not_allowed(allowed: &str) -> ApiError {
    let message = format!("this path takes {allowed}");
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        RefusalReason::BadRequest,
        message,
    )
    .details(json!({ "allow": allowed }))
}

fn address_of(request: &Request) -> String {
    let address = request.extensions().get::<portolan_listen::PeerAddress>();
    address.map_or_else(String::new, |peer| peer.0.to_string())
}

/// Reads an address as the server does, for the fuzz targets; says whether it is one of ours.
pub fn fuzz_request(address: &str) -> bool {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let (Ok(Route::Objects(target)), Ok(wanted)) = (Route::parse(path), Wanted::read(query)) else {
        return false;
    };
    let prefix = crate::keys::listed(target.kind, target.namespace.as_deref());
    let resumed = wanted
        .resume
        .as_deref()
        .map(|text| PageToken::read(text, &prefix));
    if let Some(Ok(token)) = &resumed {
        let again = PageToken::read(&token.to_text(), &prefix);
        assert_eq!(
            again.as_ref(),
            Ok(token),
            "a page token reads as it is written"
        );
    }
    target.filter(&wanted.labels, &wanted.fields).is_ok()
        && resumed.is_none_or(|token| token.is_ok())
}

/// Reads the body of an enrolment as the server does, for the fuzz targets; says whether it is one.
pub fn fuzz_enrolment(body: &str) -> bool {
    let read = strict_json::parse(body).ok();
    read.is_some_and(|body| identity::read_enrolment(&body, None, String::new()).is_ok())
}

/// Reads an object of a gRPC call as the server does, for the fuzz targets; says whether it is one.
pub fn fuzz_grpc_object(bytes: &[u8]) -> bool {
    grpc::fuzz(bytes)
}
