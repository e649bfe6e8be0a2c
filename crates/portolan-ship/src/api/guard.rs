//! Who may ask. The API runs commands' machines: a page in a browser, another user of the machine and a name that was made
//! to point here must not reach it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use portolan_listen::error_reply;

/// What a request must carry.
pub(super) struct Guard {
    /// The names that this server has, with its port.
    hosts: Vec<String>,
    /// None where the operating system says who asks, and where Skaffold's clients do, which know none.
    token: Option<String>,
    /// Whether a request that changes something must be JSON, which no form of a page can send.
    wants_json: bool,
}

/// The names of this machine for itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Guard {
    /// Of an address, where everybody who has the token may ask.
    pub(super) fn with_token(address: SocketAddr, token: String) -> Self {
        Self {
            hosts: hosts(address),
            token: Some(token),
            wants_json: true,
        }
    }

    /// Of a socket, which only its owner's programs can open.
    pub(super) fn for_socket() -> Self {
        Self {
            hosts: LOCAL.map(str::to_owned).to_vec(),
            token: None,
            wants_json: true,
        }
    }

    /// Of the API that Skaffold's clients use: they know no token, and send what they like.
    pub(super) fn for_skaffold(address: SocketAddr) -> Self {
        Self {
            hosts: hosts(address),
            token: None,
            wants_json: false,
        }
    }

    /// Why a request is refused, if it is.
    fn refusal(&self, request: &Request) -> Option<(StatusCode, &'static str)> {
        let headers = request.headers();
        let text =
            |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let authority = request.uri().authority().map(Authority::as_str);
        // A name that somebody made to point to this machine is not ours.
        let host = text(header::HOST).or(authority).unwrap_or_default();
        if !self.is_ours(host) || headers.get_all(header::HOST).iter().count() > 1 {
            return Some((
                StatusCode::MISDIRECTED_REQUEST,
                "the request is for another host",
            ));
        }
        if is_of_another_site(headers, |origin| self.is_ours(origin)) {
            return Some((StatusCode::FORBIDDEN, "pages of other sites may not ask"));
        }
        let given = text(header::AUTHORIZATION).and_then(|given| given.strip_prefix("Bearer "));
        let is_right =
            |token: &String| given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes()));
        if !self.token.as_ref().is_none_or(is_right) {
            let message =
                "the token of the run is missing: it is in the file `session.json` of the run";
            return Some((StatusCode::UNAUTHORIZED, message));
        }
        let changes = self.wants_json && !matches!(*request.method(), Method::GET | Method::HEAD);
        let kind = text(header::CONTENT_TYPE).and_then(|kind| kind.split(';').next());
        if changes && kind.map(str::trim) != Some("application/json") {
            let message =
                "a request that changes something must be `content-type: application/json`";
            return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        None
    }

    fn is_ours(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }
}

/// The names that a server at an address has.
fn hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut hosts = vec![address.to_string()];
    for name in LOCAL {
        hosts.push(format!("{name}:{port}"));
        // The port of the scheme is left out of names.
        if port == 80 {
            hosts.push(name.to_owned());
        }
    }
    hosts
}

/// Whether a browser says that a page of another site asks.
fn is_of_another_site(headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_foreign = origins.any(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        !origin.strip_prefix("http://").is_some_and(&is_ours)
    });
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    is_foreign || site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"))
}

/// Compares without telling by its time how much is right.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |found, (a, b)| found | (a ^ b));
    a.len() == b.len() && differences == 0
}

pub(super) async fn check(
    Shared(guard): Shared<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.refusal(&request) {
        Some((status, message)) => error_reply(status, message),
        None => next.run(request).await,
    }
}
