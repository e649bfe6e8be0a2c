//! Why a request was refused, for every protocol that requests come in.

use http::StatusCode;
use portolan_kinds::FieldFault;
use portolan_store::StoreError;
use serde_json::{Value, json};

/// A refused request: a status, a word for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The status in HTTP.
    pub status: StatusCode,
    /// The reason, for programs.
    pub reason: RefusalReason,
    /// The reason, for people.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// More about it, for programs; null without more.
    pub details: Value,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The request itself is wrong.
    BadRequest,
    /// Fields of the object are wrong.
    Invalid,
    /// Nobody knows who asks.
    Unauthenticated,
    /// Who asks has no right to it.
    Forbidden,
    /// There is no such object.
    NotFound,
    /// There is such an object already.
    AlreadyExists,
    /// The object was changed meanwhile.
    Conflict,
    /// The object comes from Git.
    Managed,
    /// The object, or its namespace, is being deleted.
    Terminating,
    /// The history that was asked for is gone.
    Expired,
    /// An update must say which version it replaces.
    VersionRequired,
    /// The store has no room.
    StorageFull,
    /// Too many requests.
    TooManyRequests,
    /// The server cannot answer now.
    Unavailable,
    /// Whether a write happened is not known.
    Unknown,
    /// Something is wrong with the server.
    Internal,
}

impl ApiError {
    /// An error without advice.
    pub(crate) fn new(
        status: StatusCode,
        reason: RefusalReason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            hint: None,
            details: Value::Null,
        }
    }

    /// The request itself is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, RefusalReason::BadRequest, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            RefusalReason::NotFound,
            format!("{what} does not exist"),
        )
    }

    pub(crate) fn conflict(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, reason, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            RefusalReason::Internal,
            message,
        )
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            RefusalReason::Unavailable,
            message,
        )
    }

    /// Fields of an object are wrong, all of them with their places.
    pub(crate) fn invalid(faults: &[FieldFault]) -> Self {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        let message = match faults.len() {
            0 | 1 => first,
            count => format!("{first} (and {} more)", count - 1),
        };
        let faults: Vec<Value> = faults
            .iter()
            .map(|fault| {
                json!({
                    "path": fault.path, "line": fault.at.line, "column": fault.at.column,
                    "message": fault.message, "hint": fault.hint,
                })
            })
            .collect();
        Self {
            details: json!({ "faults": faults }),
            ..Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                RefusalReason::Invalid,
                message,
            )
        }
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what programs need.
    #[must_use]
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The error as JSON.
    pub fn to_json(&self) -> Value {
        let mut body = json!({
            "apiVersion": portolan_kinds::VERSION,
            "kind": "Error",
            "status": self.status.as_u16(),
            "reason": format!("{:?}", self.reason),
            "error": self.message,
        });
        if let Some(hint) = &self.hint {
            body["hint"] = hint.as_str().into();
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        body
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let (status, reason) = match error {
            StoreError::Compacted { .. } | StoreError::Future { .. } => {
                (StatusCode::GONE, RefusalReason::Expired)
            }
            StoreError::Full { .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, RefusalReason::StorageFull)
            }
            StoreError::Unavailable { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, RefusalReason::Unavailable)
            }
            StoreError::Unknown { .. } => (StatusCode::GATEWAY_TIMEOUT, RefusalReason::Unknown),
            StoreError::Refused(_) => (StatusCode::PAYLOAD_TOO_LARGE, RefusalReason::BadRequest),
            StoreError::NoLease { .. }
            | StoreError::Denied { .. }
            | StoreError::Damaged { .. }
            | StoreError::Stopped { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, RefusalReason::Internal)
            }
        };
        let error = Self::new(status, reason, message);
        match reason {
            RefusalReason::Expired => {
                error.hint("list again, and go on from the revision of the list")
            }
            RefusalReason::StorageFull => error.hint(
                "delete what is not needed; its room is free when its history is gone: after ten minutes and ten thousand revisions, or by `portolan store compact`",
            ),
            _ => error,
        }
    }
}
