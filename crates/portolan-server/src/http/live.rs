//! The routes of events that start something: what an event would do, and requests of webhooks.

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::WebhookRequest;
use serde_json::Value;

use super::reply::json_reply;
use super::route::{checked_target, find};
use super::{Http, address_of, allow, read_json};
use crate::error::{ApiError, RefusalReason};
use crate::live::Delivery;
use crate::server::{Caller, Target};

/// What a path of this sort is about.
#[derive(Debug)]
pub(super) enum LiveRoute {
    /// What triggers would do about an event.
    TestTriggers,
    /// A request of a webhook. Its sender has a key and no identity.
    Deliver(Target),
    /// The variables of a node in runs of a namespace.
    Variables { namespace: String, node: String },
}

impl LiveRoute {
    /// The route of a path; `None` if it is about something else.
    pub(super) fn parse(parts: &[&str]) -> Option<Result<Self, ApiError>> {
        match parts {
            ["trigger-tests"] => Some(Ok(Self::TestTriggers)),
            ["namespaces", namespace, "webhooks", name, "deliver"] => {
                let target = find("webhooks")
                    .and_then(|kind| checked_target(kind, Some(namespace), Some(name)));
                Some(target.map(Self::Deliver))
            }
            ["namespaces", namespace, "nodes", node, "variables"] => Some(Ok(Self::Variables {
                namespace: (*namespace).to_owned(),
                node: (*node).to_owned(),
            })),
            _ => None,
        }
    }
}

impl Http {
    pub(super) async fn live(
        &self,
        caller: &Caller,
        route: LiveRoute,
        request: Request,
    ) -> Result<Response, ApiError> {
        match route {
            LiveRoute::TestTriggers => {
                allow(&request, &[Method::POST])?;
                let event = self
                    .event_to_test(caller, &read_json(request).await?)
                    .await?;
                let tests = self.server.test_triggers(caller, &event).await?;
                Ok(json_reply(StatusCode::OK, &tests))
            }
            LiveRoute::Deliver(target) => self.deliver(&target, request).await,
            LiveRoute::Variables { namespace, node } => {
                allow(&request, &[Method::GET])?;
                let server = &self.server;
                let variables = server.node_variables(caller, &namespace, &node).await?;
                Ok(json_reply(StatusCode::OK, &variables))
            }
        }
    }

    /// A request of a webhook; it is checked by its own key, so nobody is asked who they are.
    pub(super) async fn deliver(
        &self,
        target: &Target,
        request: Request,
    ) -> Result<Response, ApiError> {
        allow(&request, &[Method::POST])?;
        let address = address_of(&request);
        self.server.take_rate(&format!("webhook {address}"))?;
        let most = self.server.webhook_limit(target);
        let (head, body) = request.into_parts();
        let limited = http_body_util::Limited::new(body, most);
        let collected = http_body_util::BodyExt::collect(limited).await;
        let Ok(body) = collected else {
            let error = ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                RefusalReason::BadRequest,
                "the body is larger than the webhook takes, or ended early",
            );
            let path = head.uri.path();
            self.server.record_stranger(&address, path, &error).await;
            return Err(error);
        };
        let body = body.to_bytes();
        let delivery = Delivery {
            request: WebhookRequest {
                timestamp: text(&head.headers, "x-portolan-timestamp"),
                signature: text(&head.headers, "x-portolan-signature"),
                authorization: text(&head.headers, "authorization"),
                body: &body,
            },
            address,
        };
        let delivered = self.server.deliver(target, delivery).await?;
        Ok(json_reply(StatusCode::OK, &delivered))
    }

    /// The event of a request: an Event as it would be written, or the name of one that is stored.
    async fn event_to_test(&self, caller: &Caller, body: &Value) -> Result<KindObject, ApiError> {
        let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let (Some(namespace), Some(name)) = (text("namespace"), text("name")) else {
            let event = KindObject::read_text(&body.to_string())
                .map_err(|faults| ApiError::invalid(&faults))?;
            if event.kind != kind {
                return Err(ApiError::bad_request("the body must be an Event"));
            }
            return Ok(event);
        };
        let target = checked_target(kind, Some(namespace), Some(name))?;
        self.server.authorise(caller, "get", &target).await?;
        self.server.get(caller, &target, false).await
    }
}

/// A header that stands there once, as text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}
