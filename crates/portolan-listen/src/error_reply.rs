//! Errors as JSON, the same for every server.

use axum::body::Body;
use http::{Response, StatusCode, header};

/// An answer that says what is wrong: `{"apiVersion": …, "kind": "Error", "status": 404, "error": "…"}`.
pub fn error_reply(status: StatusCode, error: &str) -> Response<Body> {
    let body = serde_json::json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "Error",
        "status": status.as_u16(),
        "error": error,
    });
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
