//! How traffic moves to a new revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::time::Span;

/// How traffic moves to a new revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// By weight, by what requests say of themselves, or all at once.
    #[serde(rename = "type", skip_serializing_if = "is_default")]
    pub strategy_type: StrategyType,
    /// Shares of the traffic in percent, one after the other. The short form of `steps`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u8>,
    /// How long each of the `weights` lasts at least.
    pub step_interval: Span,
    /// Shares of the traffic, each with its own length.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The share of requests in percent that a first step copies to the new revision, whose answers nobody sees.
    #[serde(skip_serializing_if = "is_default")]
    pub mirror: u8,
    /// Requests that always go to the new revision.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<RequestMatch>,
    /// Keeps a client on the new revision once it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky_sessions: Option<StickySessions>,
    /// How many requests the new revision must have seen before a step ends.
    pub min_requests: u64,
    /// After this much time `onInconclusive`, `onNoTraffic` or `onMetricsDown` decides.
    pub max_duration: Span,
    /// How long pods may take to become ready.
    pub progress_deadline: Span,
    /// How long the new revision is watched after its promotion.
    pub soak: Span,
    /// The share of traffic in percent that the old revision keeps during that time, to compare with.
    pub holdback: u8,
    /// How long the old pods are kept after that, so that `undo` is a matter of seconds.
    pub rollback_window: Span,
    /// How long a slot is left alone after its last traffic.
    pub drain: Span,
    /// Whether the stable slot keeps its size while the new revision grows.
    #[serde(skip_serializing_if = "is_default")]
    pub capacity: Capacity,
}

/// A kind of strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StrategyType {
    /// A growing share of the traffic.
    #[default]
    Canary,
    /// Requests that match, and no others.
    AbTest,
    /// Nothing, then everything.
    BlueGreen,
}

/// A share of the traffic and how long it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The share of the traffic in percent.
    pub weight: u8,
    /// How long it lasts.
    #[serde(flatten)]
    pub end: StepEnd,
    /// How many pods the new revision has; enough for its share if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
}

/// When a step is over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepEnd {
    /// After this time at the earliest; `stepInterval` if left out.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// `manual`: when somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
}

/// What a request must have; all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestMatch {
    /// Headers by their lower-case names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, TextMatch>,
    /// A cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<CookieMatch>,
}

/// How a text is compared: by exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TextMatch {
    /// It is this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// It starts with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// All of it matches this expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A cookie with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CookieMatch {
    /// The cookie's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A cookie that keeps a client where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StickySessions {
    /// The cookie's name; its value is the revision.
    pub cookie_name: String,
    /// How long the client keeps it.
    #[serde(default = "one_day")]
    pub max_age: Span,
}

/// What becomes of the stable slot while the new revision grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Capacity {
    /// It keeps its size; for a while there are twice as many pods.
    #[default]
    Keep,
    /// It has as many pods as its share of the traffic needs. A rollback then has to wait for pods.
    ShrinkStable,
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            strategy_type: StrategyType::default(),
            weights: Vec::new(),
            step_interval: Span::from_seconds(60),
            steps: Vec::new(),
            mirror: 0,
            matches: Vec::new(),
            sticky_sessions: None,
            min_requests: 50,
            max_duration: Span::from_seconds(3_600),
            progress_deadline: Span::from_seconds(600),
            soak: Span::from_seconds(300),
            holdback: 5,
            rollback_window: Span::from_seconds(900),
            drain: Span::from_seconds(30),
            capacity: Capacity::default(),
        }
    }
}

fn one_day() -> Span {
    Span::from_seconds(24 * 3_600)
}
