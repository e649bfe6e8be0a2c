//! What the spec of a `CronJob` says about its schedule.

use serde::{Deserialize, Serialize};

use crate::span::WrittenSpan;

/// When a `CronJob` starts runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleSpec {
    /// A cron expression of five fields, or a nickname such as `@daily`.
    pub schedule: String,
    /// The name of a time zone; UTC without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What becomes of slots that could not start in time.
    #[serde(default)]
    pub missed: MissedPolicy,
    /// What a slot does while an earlier run of the same job is active.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// How late a slot may start at most; without it, a slot that is made up for may start at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<WrittenSpan>,
}

/// What becomes of slots that could not start in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissedPolicy {
    /// They never start.
    #[default]
    Skip,
    /// The last of them starts as soon as it can, for all of them.
    Once,
}

/// What a slot does while an earlier run of the same job is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// It does not start; whether it starts later is for the policy of missed slots.
    #[default]
    Forbid,
    /// It starts beside the earlier run.
    Allow,
    /// The earlier run is cancelled, and it starts.
    Replace,
}
