//! The metrics of a server as `OpenMetrics` text: the listener's own numbers and those of the server behind it.

use std::sync::{Arc, PoisonError, RwLock};

use http::{Method, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::activity::Closed;

/// The content type of `/metrics`.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The last line of the text.
const END: &str = "# EOF\n";

/// From a quick answer to a slow one, in seconds.
const BUCKETS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// Gives text in `OpenMetrics` format, without its last line `# EOF`.
pub type MetricsText = Box<dyn Fn() -> String + Send + Sync>;

/// The metrics of a server; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    registry: RwLock<Registry>,
    texts: RwLock<Vec<MetricsText>>,
    connections: Gauge,
    refused: Counter,
    closed: Family<ClosedLabel, Counter>,
    requests: Family<RequestLabel, Counter>,
    seconds: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClosedLabel {
    reason: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    method: Word,
    status: Word,
}

/// A label's value, out of a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Word(&'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0, encoder)
    }
}

impl Metrics {
    /// The listener's own metrics, all zero.
    pub fn new() -> Self {
        let shared = Shared {
            registry: RwLock::new(Registry::with_prefix("portolan_listen")),
            texts: RwLock::default(),
            connections: Gauge::default(),
            refused: Counter::default(),
            closed: Family::default(),
            requests: Family::default(),
            seconds: Histogram::new(BUCKETS),
        };
        let metrics = Self(Arc::new(shared));
        metrics.register_own();
        metrics
    }

    fn register_own(&self) {
        let shared = &self.0;
        let mut registry = shared
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let connections = shared.connections.clone();
        registry.register("connections", "Open connections", connections);
        registry.register(
            "connections_refused",
            "Connections closed at once because all places were busy",
            shared.refused.clone(),
        );
        registry.register(
            "connections_closed",
            "Connections closed by the server, by reason",
            shared.closed.clone(),
        );
        let requests = shared.requests.clone();
        registry.register("requests", "Requests by method and status", requests);
        registry.register(
            "request_duration_seconds",
            "Time from a request's headers to the beginning of its answer",
            shared.seconds.clone(),
        );
    }

    /// Adds metrics of the server behind the listener, with full names.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        let mut registry = Registry::default();
        add(&mut registry);
        let text = move || without_end(encoded(&registry));
        self.add_text(Box::new(text));
    }

    /// Adds text that is asked for at every scrape.
    pub fn add_text(&self, text: MetricsText) {
        let mut texts = self.0.texts.write().unwrap_or_else(PoisonError::into_inner);
        texts.push(text);
    }

    /// The whole answer to a scrape.
    pub fn text(&self) -> String {
        let texts = self.0.texts.read().unwrap_or_else(PoisonError::into_inner);
        let mut text: String = texts.iter().map(|text| text()).collect();
        let registry = self
            .0
            .registry
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        text.push_str(&encoded(&registry));
        text
    }

    pub(crate) fn opened(&self) -> OpenConnection {
        self.0.connections.inc();
        OpenConnection(self.clone())
    }

    pub(crate) fn refused(&self) {
        self.0.refused.inc();
    }

    pub(crate) fn closed(&self, closed: Closed) {
        let reason = Word(closed.name());
        self.0.closed.get_or_create(&ClosedLabel { reason }).inc();
    }

    pub(crate) fn answered(&self, method: &Method, status: StatusCode, seconds: f64) {
        let label = RequestLabel {
            method: Word(method_name(method)),
            status: Word(status_class(status)),
        };
        self.0.requests.get_or_create(&label).inc();
        self.0.seconds.observe(seconds);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts as an open connection until it is dropped.
pub(crate) struct OpenConnection(Metrics);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.0.connections.dec();
    }
}

fn encoded(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, registry);
    text
}

fn without_end(mut text: String) -> String {
    if text.ends_with(END) {
        text.truncate(text.len() - END.len());
    }
    text
}

/// A client may call methods as it likes: labels come from a closed set.
fn method_name(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let name = known.into_iter().find(|name| *name == method.as_str());
    name.unwrap_or("other")
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
