//! The routes of blobs: of people, by namespace, and of the other servers.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use portolan_identity::SubjectKind;
use portolan_object::NameRule;
use portolan_store::blob::BlobName;
use serde_json::json;

use super::reply::json_reply;
use super::{Http, allow};
use crate::access::Action;
use crate::blobs::MAX_BLOB;
use crate::error::{ApiError, RefusalReason};
use crate::server::{ApiServer, Caller};

/// What a path of blobs is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlobRoute {
    /// All of a namespace.
    Namespace(String),
    /// One of a namespace.
    Named(String, BlobName),
    /// The file of another server.
    File(BlobName),
}

impl BlobRoute {
    pub(super) fn parse(parts: &[&str]) -> Option<Result<Self, ApiError>> {
        let name = |text: &str| {
            let digits = text.strip_prefix("sha256:").unwrap_or(text);
            let name = digits.parse::<BlobName>();
            name.map_err(|error| ApiError::bad_request(error.to_string()))
        };
        let namespace = |text: &str| {
            let fits = NameRule::Label.fits(text);
            let wrong = || ApiError::bad_request(format!("the namespace {}", NameRule::Label));
            fits.then(|| text.to_owned()).ok_or_else(wrong)
        };
        Some(match parts {
            ["blobs", digest] => name(digest).map(Self::File),
            ["namespaces", one, "blobs"] => namespace(one).map(Self::Namespace),
            ["namespaces", one, "blobs", digest] => {
                namespace(one).and_then(|namespace| Ok(Self::Named(namespace, name(digest)?)))
            }
            _ => return None,
        })
    }
}

impl Http {
    pub(super) async fn blobs(
        &self,
        caller: &Caller,
        route: BlobRoute,
        request: Request,
    ) -> Result<Response, ApiError> {
        let server = &self.server;
        match route {
            BlobRoute::Namespace(namespace) => {
                allow(&request, &[Method::POST])?;
                server
                    .allow_blob(caller, "create", &namespace, None)
                    .await?;
                let content = read_content(request).await?;
                let made = server.blobs.put(&namespace, content).await;
                let name = made.as_ref().ok().and_then(|made| made["digest"].as_str());
                let about = json!({"kind": "Blob", "namespace": namespace, "name": name});
                let result = made.as_ref().map(|_| None);
                server.record_about(caller, "create", about, result).await?;
                Ok(json_reply(StatusCode::CREATED, &made?))
            }
            BlobRoute::Named(namespace, name) => {
                allow(&request, &[Method::GET, Method::DELETE])?;
                let is_read = request.method() == Method::GET;
                let verb = if is_read { "get" } else { "delete" };
                server
                    .allow_blob(caller, verb, &namespace, Some(name))
                    .await?;
                if is_read {
                    return Ok(content_reply(server.blobs.get(&namespace, name).await?));
                }
                server.blobs.delete(&namespace, name).await?;
                let about =
                    json!({"kind": "Blob", "namespace": namespace, "name": name.to_string()});
                server
                    .record_about(caller, "delete", about, Ok(None))
                    .await?;
                let body = json!({"apiVersion": portolan_kinds::VERSION, "kind": "Deleted"});
                Ok(json_reply(StatusCode::OK, &body))
            }
            BlobRoute::File(name) => {
                allow(&request, &[Method::GET, Method::PUT])?;
                server.require_server(caller, name).await?;
                if request.method() == Method::GET {
                    return Ok(content_reply(server.blobs.give(name).await?));
                }
                server
                    .blobs
                    .accept(name, read_content(request).await?)
                    .await?;
                let body = json!({"apiVersion": portolan_kinds::VERSION, "kind": "Blob"});
                Ok(json_reply(StatusCode::OK, &body))
            }
        }
    }
}

impl ApiServer {
    /// Whether the caller may do something with blobs of a namespace. Refusals are in the audit log.
    async fn allow_blob(
        &self,
        caller: &Caller,
        verb: &str,
        namespace: &str,
        name: Option<BlobName>,
    ) -> Result<(), ApiError> {
        let name = name.map(|name| name.to_string());
        let action = Action {
            verb,
            kind: "Blob",
            namespace: Some(namespace),
            name: name.as_deref(),
        };
        let Err(error) = self.access.check(&caller.identity, &action) else {
            return Ok(());
        };
        let about = json!({"kind": "Blob", "namespace": namespace, "name": name});
        self.record_about(caller, verb, about, Err(&error)).await?;
        Err(error)
    }

    /// Only another server may ask for files.
    async fn require_server(&self, caller: &Caller, name: BlobName) -> Result<(), ApiError> {
        let certificate = caller.identity.certificate.as_ref();
        if certificate.is_some_and(|one| one.subject.kind == SubjectKind::Server) {
            return Ok(());
        }
        let error = ApiError::new(
            StatusCode::FORBIDDEN,
            RefusalReason::Forbidden,
            "this path is for servers of the fleet",
        );
        let about = json!({"kind": "Blob", "name": name.to_string()});
        self.record_about(caller, "get", about, Err(&error)).await?;
        Err(error)
    }
}

async fn read_content(request: Request) -> Result<Bytes, ApiError> {
    let limited = Limited::new(request.into_body(), MAX_BLOB);
    let collected = limited.collect().await.map_err(|_| {
        let message = format!("the content has more than {MAX_BLOB} bytes, or ended early");
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            RefusalReason::BadRequest,
            message,
        )
    })?;
    Ok(collected.to_bytes())
}

fn content_reply(content: Vec<u8>) -> Response {
    let mut response = json_reply(StatusCode::OK, &serde_json::Value::Null);
    *response.body_mut() = Body::from(content);
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
