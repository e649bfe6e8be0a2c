//! Events that come from outside over HTTP: who sent them, whether they were sent before, and what they mean.

mod alertmanager;
mod mapping;
mod signature;

pub use alertmanager::alertmanager_events;
pub use mapping::{MappedEvents, MappingProblem, WebhookMapping, WebhookMappingSpec};
pub use signature::{
    ReplayMemory, VerifiedDelivery, WebhookKey, WebhookRefusal, WebhookRequest, WebhookVerifier,
};

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

/// The most events of one request.
const MAX_EVENTS: usize = 1_000;

/// The most bytes of what an event says about itself, as JSON.
const MAX_DATA: usize = 8 << 10;

/// The most labels of an event.
const MAX_LABELS: usize = 64;

/// The most bytes of a label.
const MAX_LABEL: usize = 1 << 10;

/// Where events of a request belong to.
#[derive(Debug, Clone, Copy)]
pub struct WebhookOrigin<'a> {
    /// The uid of the webhook.
    pub uid: &'a str,
    /// The namespace of the webhook, which is that of its events: no sender can choose it.
    pub namespace: &'a str,
    /// The name of the request; the same request has the same.
    pub delivery: &'a str,
    /// When it was received.
    pub received: jiff::Timestamp,
}

/// What is said about an event, or how much it was if it is too much.
fn bounded_data(data: Map<String, Json>) -> Map<String, Json> {
    let bytes = Json::Object(data.clone()).to_string().len();
    if bytes <= MAX_DATA {
        return data;
    }
    let left_out = json!(bytes);
    Map::from_iter([("leftOutBytes".to_owned(), left_out)])
}

/// Labels of bounded number and length; the others are left out.
fn bounded_labels(labels: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_short = |(name, value): &(String, String)| {
        !name.is_empty() && name.len() <= MAX_LABEL && value.len() <= MAX_LABEL
    };
    labels
        .into_iter()
        .filter(is_short)
        .take(MAX_LABELS)
        .collect()
}

/// A name of a node: what comes from outside is no more than a name.
fn bounded_node(name: &str) -> Option<String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= 253 && name.bytes().all(is_letter);
    is_name.then(|| name.to_owned())
}
