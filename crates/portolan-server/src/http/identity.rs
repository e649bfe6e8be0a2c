//! The routes of identities: enrolment, join tokens, certificates and authorities.

use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use portolan_identity::CaPin;
use serde_json::Value;

use super::reply::json_reply;
use super::{Http, address_of, allow, peer_of, read_json, read_new_token};
use crate::enrolments::{EnrolAnswer, EnrolRequest};
use crate::error::ApiError;
use crate::server::Caller;

/// What a path of identities is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IdentityRoute {
    Enrolments,
    Renew,
    Approve(String),
    Enrolment(String),
    JoinTokens,
    JoinToken(String),
    NodeStatus(String),
    Revoke(String),
    Authorities,
    Rotate,
    Certificates,
}

impl IdentityRoute {
    pub(super) fn parse(parts: &[&str]) -> Option<Self> {
        let owned = |text: &str| text.to_owned();
        Some(match parts {
            ["enrolments"] => Self::Enrolments,
            ["enrolments", "renew"] => Self::Renew,
            ["enrolments", key] => Self::Enrolment(owned(key)),
            ["enrolments", key, "approve"] => Self::Approve(owned(key)),
            ["join-tokens"] => Self::JoinTokens,
            ["join-tokens", id] => Self::JoinToken(owned(id)),
            ["nodes", name, "status"] => Self::NodeStatus(owned(name)),
            ["nodes", name, "revoke"] => Self::Revoke(owned(name)),
            ["authorities"] => Self::Authorities,
            ["authorities", "rotate"] => Self::Rotate,
            ["auth", "certificates"] => Self::Certificates,
            _ => return None,
        })
    }

    /// Whether nobody has to say who they are.
    pub(super) fn is_public(&self, method: &Method) -> bool {
        match self {
            Self::Enrolments => method == Method::POST,
            Self::Authorities => method == Method::GET,
            _ => false,
        }
    }

    /// Whether agents may use it.
    pub(super) fn is_for_nodes(&self) -> bool {
        matches!(self, Self::Renew | Self::NodeStatus(_))
    }
}

impl Http {
    /// Routes for which nobody has to say who they are.
    pub(super) async fn public_identity(
        &self,
        route: &IdentityRoute,
        request: Request,
    ) -> Result<Response, ApiError> {
        if *route == IdentityRoute::Authorities {
            return Ok(json_reply(StatusCode::OK, &self.server.authorities()?));
        }
        let address = address_of(&request);
        let exporter = peer_of(&request).and_then(|peer| peer.exporter);
        let asked = read_enrolment(&read_json(request).await?, exporter, address)?;
        match self.server.enrol(&asked).await? {
            EnrolAnswer::Enrolled(answer) => Ok(json_reply(StatusCode::OK, &answer)),
            EnrolAnswer::Pending(answer) => Ok(json_reply(StatusCode::ACCEPTED, &answer)),
        }
    }

    pub(super) async fn identity(
        &self,
        caller: &Caller,
        route: IdentityRoute,
        request: Request,
    ) -> Result<Response, ApiError> {
        let server = &self.server;
        let method = request.method().clone();
        let answer = match route {
            IdentityRoute::Enrolments => {
                allow(&request, &[Method::GET, Method::POST])?;
                server.waiting(caller).await?
            }
            IdentityRoute::Renew => {
                allow(&request, &[Method::POST])?;
                let body = read_json(request).await?;
                server.renew(caller, text(&body, "csr")).await?
            }
            IdentityRoute::Approve(key) => {
                allow(&request, &[Method::POST])?;
                server.approve(caller, &fingerprint(&key)?).await?
            }
            IdentityRoute::Enrolment(key) => {
                allow(&request, &[Method::DELETE])?;
                server.deny(caller, &fingerprint(&key)?).await?
            }
            IdentityRoute::JoinTokens if method == Method::POST => {
                let body = read_json(request).await?;
                let made = server.create_join_token(caller, &body).await?;
                return Ok(json_reply(StatusCode::CREATED, &made));
            }
            IdentityRoute::JoinTokens => {
                allow(&request, &[Method::GET, Method::POST])?;
                server.list_join_tokens(caller).await?
            }
            IdentityRoute::JoinToken(id) => {
                allow(&request, &[Method::DELETE])?;
                server.delete_join_token(caller, &id).await?
            }
            IdentityRoute::NodeStatus(name) => {
                allow(&request, &[Method::PUT])?;
                let body = read_json(request).await?;
                server.report_node(caller, &name, &body).await?
            }
            IdentityRoute::Revoke(name) => {
                allow(&request, &[Method::POST])?;
                server.revoke(caller, &name).await?
            }
            IdentityRoute::Authorities => {
                allow(&request, &[Method::GET])?;
                server.authorities()?
            }
            IdentityRoute::Rotate => {
                allow(&request, &[Method::POST])?;
                server.rotate(caller).await?
            }
            IdentityRoute::Certificates => {
                allow(&request, &[Method::POST])?;
                let body = read_json(request).await?;
                let new = read_new_token(&body)?;
                let request = text(&body, "csr");
                let made = server.create_certificate(caller, new, request).await?;
                return Ok(json_reply(StatusCode::CREATED, &made));
            }
        };
        Ok(json_reply(StatusCode::OK, &answer))
    }
}

/// Reads the body of a request to be a node.
pub(super) fn read_enrolment(
    body: &Value,
    exporter: Option<[u8; 32]>,
    address: String,
) -> Result<EnrolRequest, ApiError> {
    let known = ["name", "csr", "token", "signature"];
    let fields = body.as_object().into_iter().flatten();
    for (key, value) in fields {
        if !known.contains(&key.as_str()) || !value.is_string() {
            let message = format!("`{key}` must be one of {} and a text", known.join(", "));
            return Err(ApiError::bad_request(message));
        }
    }
    let proof = match (text(body, "token"), text(body, "signature")) {
        ("", "") => None,
        (id, signature) => {
            let signature = STANDARD.decode(signature);
            let signature =
                signature.map_err(|_| ApiError::bad_request("`signature` is not base64"))?;
            Some((id.to_owned(), signature))
        }
    };
    if proof.as_ref().is_some_and(|(id, _)| !is_token_id(id)) {
        return Err(ApiError::bad_request("`token` is the id of a join token"));
    }
    Ok(EnrolRequest {
        name: text(body, "name").to_owned(),
        request: text(body, "csr").to_owned(),
        proof,
        exporter,
        address,
    })
}

/// An id becomes part of a key of the store.
fn is_token_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn text<'v>(body: &'v Value, key: &str) -> &'v str {
    body.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn fingerprint(text: &str) -> Result<CaPin, ApiError> {
    text.parse()
        .map_err(|_| ApiError::bad_request("the path must have the fingerprint of a key, sha256:…"))
}
