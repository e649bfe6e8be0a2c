//! What the spec of a trigger says about when it fires.

use serde::{Deserialize, Serialize};

use crate::span::WrittenSpan;
use crate::time_window::TimeWindowSpec;

/// When a trigger fires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerSpec {
    /// Which events count.
    #[serde(rename = "match")]
    pub matches: MatchSpec,
    /// Fields whose values make groups that are counted apart: `node`, `labels.disk`, `data.path`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<String>,
    /// How many events it takes.
    #[serde(default = "one")]
    pub count: u32,
    /// The span in which they must happen; needed from two on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<WrittenSpan>,
    /// Waits for further events before it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_more: Option<WaitForMoreSpec>,
    /// How long a group does not fire after it fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<WrittenSpan>,
    /// How many of its runs may be active at once.
    #[serde(default = "one")]
    pub max_active: u32,
    /// How often it may fire in any hour; what is more is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
    /// When it is switched off because it fires too often.
    #[serde(default)]
    pub trip: TripSpec,
    /// Times in which it may fire; always without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<TimeWindowSpec>,
    /// What becomes of a firing that cannot start now.
    #[serde(default)]
    pub when_blocked: BlockedPolicy,
    /// How many runs that triggers started may stand behind a run, with itself.
    #[serde(default = "max_depth")]
    pub max_depth: u32,
    /// Whether events that this trigger itself led to count.
    #[serde(default)]
    pub allow_repeat: bool,
    /// How many groups are remembered at once.
    #[serde(default = "max_groups")]
    pub max_groups: u32,
}

/// Which events count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchSpec {
    /// Their types: `beacon.drift`, everything below `run.*`, or `*`.
    pub types: Vec<String>,
    /// Their namespaces. A trigger sees the events of its own namespace; one of `system` may name others, or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// A condition on `event`, in CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// Waits for further events before a firing, so that a burst makes one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForMoreSpec {
    /// How long no further event may come.
    pub quiet: WrittenSpan,
    /// How long it waits at most.
    pub max: WrittenSpan,
}

/// When a trigger is switched off because it fires too often: tokens, and how they come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TripSpec {
    /// How many firings at once are not too many.
    pub burst: u32,
    /// The span in which as many may come again.
    pub per: WrittenSpan,
    /// After how long it is switched on again; only by hand without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<WrittenSpan>,
}

/// What becomes of a firing that cannot start now: its runs are active, its times are closed, or too many runs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockedPolicy {
    /// It starts as soon as it can, once for everything that comes in the meantime.
    #[default]
    Hold,
    /// It is refused.
    Drop,
}

impl Default for TripSpec {
    /// A loop between a beacon and its own run fires a few times a minute; people and deployments do not.
    fn default() -> Self {
        Self {
            burst: 20,
            per: WrittenSpan::seconds(600),
            reset: None,
        }
    }
}

fn one() -> u32 {
    1
}

fn max_depth() -> u32 {
    crate::event::MAX_DEPTH as u32
}

fn max_groups() -> u32 {
    1_000
}
