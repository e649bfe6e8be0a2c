//! Answers as JSON.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use crate::error::{ApiError, RefusalReason};

pub(super) fn json_reply(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(format!("{value}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    // Answers are about rights and secrets too: nobody in between keeps them.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
}

pub(super) fn refusal(error: &ApiError) -> Response {
    let mut response = json_reply(error.status, &error.to_json());
    let headers = response.headers_mut();
    match error.reason {
        RefusalReason::Unauthenticated => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        RefusalReason::TooManyRequests => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    if let Some(allow) = error.details.get("allow").and_then(Value::as_str)
        && let Ok(allow) = HeaderValue::from_str(allow)
    {
        headers.insert(header::ALLOW, allow);
    }
    response
}
