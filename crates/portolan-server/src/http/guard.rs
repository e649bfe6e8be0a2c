//! Which requests are taken at all: for our own host, not from pages of other sites, with one kind of credential.

use std::sync::Arc;

use axum::extract::Request;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_listen::TlsPeer;

use crate::error::{ApiError, RefusalReason};
use crate::fleet_identity::Credential;

/// The names that clients call the server by.
pub(super) struct Guard {
    hosts: Vec<String>,
}

impl Guard {
    pub(super) fn new(hosts: Vec<String>) -> Self {
        Self { hosts }
    }

    /// Refuses requests for other hosts and from pages of other sites.
    pub(super) fn check(&self, request: &Request) -> Result<(), ApiError> {
        let headers = request.headers();
        let authority = request.uri().authority().map(Authority::as_str);
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let host = host.or(authority).unwrap_or_default();
        if !self.is_ours(host) || headers.get_all(header::HOST).iter().count() > 1 {
            let message = "the request is for another host";
            let error = ApiError::new(
                StatusCode::MISDIRECTED_REQUEST,
                RefusalReason::BadRequest,
                message,
            );
            return Err(
                error.hint("start the server with --name for each name that clients call it by")
            );
        }
        if self.is_of_another_site(headers) {
            let message = "pages of other sites may not ask";
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                RefusalReason::Forbidden,
                message,
            ));
        }
        Ok(())
    }

    /// The port is left out of the comparison: names are what a foreign page could forge.
    fn is_ours(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_of_another_site(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_foreign = origins.any(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            !origin
                .strip_prefix("https://")
                .is_some_and(|host| self.is_ours(host))
        });
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        is_foreign || site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"))
    }
}

/// What a request proves its identity by. Neither a cookie nor the query counts.
pub(super) fn credential(request: &Request) -> Result<Credential, ApiError> {
    let certificate = peer_of(request).and_then(|peer| peer.certificate.as_ref());
    let token = bearer(request.headers())?;
    Ok(match (token, certificate) {
        (None, None) => Credential::Nothing,
        (Some(token), None) => Credential::Token(token),
        (None, Some(certificate)) => Credential::Certificate(certificate.to_vec()),
        (Some(_), Some(_)) => Credential::Both,
    })
}

/// The other end of the connection, over TLS.
pub(super) fn peer_of(request: &Request) -> Option<&TlsPeer> {
    let peer = request.extensions().get::<Arc<TlsPeer>>();
    peer.map(AsRef::as_ref)
}

/// The bearer token of a request. Two of them are none.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    let wrong = |message: &str| {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            RefusalReason::Unauthenticated,
            message,
        )
    };
    if given.next().is_some() {
        return Err(wrong("the request has several credentials"));
    }
    let text = first
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("Bearer "));
    text.map(|text| Some(text.trim().to_owned()))
        .ok_or_else(|| wrong("the credential must be a bearer token"))
}
