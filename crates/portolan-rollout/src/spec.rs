//! What the user writes: the spec of an `IstioCanaryDeployment`.
//!
//! Everything but `service` and one of `template` and `workloadRef` has a default, so that a Deployment and its port are
//! enough to begin with. The operator reads the spec and never writes it.

mod analysis;
mod strategy;

pub use analysis::{
    Analysis, AnalysisRef, Builtin, CounterQueries, HttpMetric, HttpSource, Metric, MetricSource,
    Policy, Query, Tolerance,
};
pub use strategy::{
    Capacity, CookieMatch, RequestMatch, Step, StepEnd, StickySessions, Strategy, StrategyType,
    TextMatch,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Span;
use crate::tokens::Tokens;

/// The group of the kind.
pub const GROUP: &str = "portolan.dev";
/// The group and version of the kind.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";
/// The kind.
pub const KIND: &str = "IstioCanaryDeployment";

/// What an `IstioCanaryDeployment` asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods serve the application. Not with `autoscaling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The pod template, as in a Deployment. It is passed on as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// A Deployment whose pod template is used instead. It is held at zero replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<WorkloadRef>,
    /// How clients reach the application.
    pub service: Service,
    /// Which objects split the traffic.
    #[serde(default, skip_serializing_if = "is_default")]
    pub routing: Routing,
    /// A `VirtualService` of which every route to the application becomes a weighted pair and all else stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_service: Option<Value>,
    /// An existing `VirtualService` whose routes are changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_service_ref: Option<VirtualServiceRef>,
    /// How traffic moves to a new revision.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strategy: Strategy,
    /// How a new revision is judged.
    #[serde(default, skip_serializing_if = "is_default")]
    pub analysis: Analysis,
    /// Webhooks that must agree before the rollout goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Who is told about what happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
    /// Autoscalers of the slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Whether a change of a `ConfigMap` or Secret that the pods use starts a rollout. Yes unless this is `false`.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub track_config: bool,
    /// Whether objects that exist already and belong to nobody may be taken over.
    #[serde(default, skip_serializing_if = "is_default")]
    pub adopt: bool,
    /// While true nothing goes forward; rollbacks still happen.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paused: bool,
    /// One-shot commands; each is acted on once when its text changes.
    #[serde(flatten)]
    pub tokens: Tokens,
}

/// A Deployment that the pod template is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// Always `Deployment`; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name, in the same namespace.
    pub name: String,
}

/// The Services of an application, and who may call it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// The port of the Service.
    pub port: u16,
    /// The port of the pods, by number or name; the same as `port` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Value>,
    /// The name of the port, from which Istio learns the protocol; `http` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_name: Option<String>,
    /// Hosts besides the Service's own name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Istio gateways that serve the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Whether the `VirtualService` is for another one to delegate to: it has neither hosts nor gateways.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delegate: bool,
    /// Istio's traffic policy for both slots, in a `DestinationRule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<Value>,
    /// A time limit for requests, as Istio writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Istio's retries of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Value>,
}

/// Which objects split the traffic.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// Istio's `VirtualService` or Gateway API's `HTTPRoute`.
    #[serde(default)]
    pub provider: Provider,
    /// The Gateways or Services an `HTTPRoute` belongs to; the application's own Service if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<Value>,
}

/// A kind of object that splits traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Provider {
    /// A `VirtualService`.
    #[default]
    #[serde(rename = "istio")]
    Istio,
    /// An `HTTPRoute`.
    #[serde(rename = "gatewayAPI")]
    GatewayApi,
}

/// A `VirtualService` of the user, and which of its routes are split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceRef {
    /// Its name, in the same namespace.
    pub name: String,
    /// Names of its HTTP routes; all that lead to the application if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<String>,
}

/// A webhook that must agree before the rollout goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// What it is asked about.
    pub before: GateMoment,
    /// The webhook: it agrees by an answer from 200 to 299.
    pub webhook: Webhook,
}

/// When a gate is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GateMoment {
    /// Before the new revision gets its first traffic.
    Start,
    /// Before each later step.
    Step,
    /// Before the new revision becomes the stable one.
    Promote,
    /// Before the old revision is let go, after the promotion.
    End,
}

/// An address to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The address, with `http` or `https`.
    pub url: String,
    /// How long an answer may take; ten seconds if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// The form of the message.
    #[serde(rename = "type")]
    pub form: NotificationForm,
    /// The address; or `urlFrom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The key of a Secret that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_from: Option<SecretKey>,
    /// The phases whose beginning is told; all of them if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<crate::phase::Phase>,
}

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotificationForm {
    /// Slack's incoming webhook.
    Slack,
    /// Microsoft Teams' incoming webhook.
    Teams,
    /// The history record as JSON.
    Webhook,
}

/// A key of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKey {
    /// The Secret's name.
    pub name: String,
    /// The key.
    pub key: String,
}

/// Autoscalers, one for each slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// The least pods of the stable slot; 1 if left out.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// The most pods of a slot.
    pub max_replicas: u32,
    /// `metrics` of a `HorizontalPodAutoscaler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Value>,
    /// `behavior` of a `HorizontalPodAutoscaler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Value>,
    /// `triggers` of a KEDA `ScaledObject`, which is then made instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Value>,
}

impl Spec {
    /// Returns how many pods the stable slot is asked to have; the least number if it is scaled automatically.
    pub fn wanted_replicas(&self) -> u32 {
        let autoscaled = self
            .autoscaling
            .as_ref()
            .map(|scaling| scaling.min_replicas);
        autoscaled.or(self.replicas).unwrap_or(1)
    }
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(value: &bool) -> bool {
    *value
}

fn one() -> u32 {
    1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
