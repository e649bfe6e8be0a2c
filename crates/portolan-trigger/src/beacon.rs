//! When a check that is repeated on a node tells something: on every change, every so often, and only when it was seen
//! in n of the last m checks.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::span::{WrittenSpan, later};

/// When a beacon tells something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EdgeSpec {
    /// Tells it again after this time although nothing changed; on change only without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<WrittenSpan>,
    /// In how many of the last `of` checks a condition must be seen before it counts.
    pub seen: u32,
    /// How many of the last checks are looked at.
    pub of: u32,
}

/// What a check saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeaconReading {
    /// The condition, such as `running`, `failed` or the digest of a file; `unknown` if the check could not tell.
    pub condition: String,
    /// Whether it is as it should be.
    pub is_normal: bool,
}

/// What a beacon remembers; stored with the event that it makes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeaconState {
    /// The conditions of the last checks, the oldest first.
    recent: VecDeque<String>,
    /// The condition that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<String>,
    /// When it was told last.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<Timestamp>,
}

/// What a beacon tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeaconEdge {
    /// The condition that counted before.
    pub before: Option<String>,
    /// The condition that counts now.
    pub now: String,
    /// Whether it is another one than before.
    pub is_change: bool,
}

/// The longest condition that is remembered whole.
const MAX_CONDITION: usize = 128;

impl Default for EdgeSpec {
    fn default() -> Self {
        Self {
            every: None,
            seen: 1,
            of: 1,
        }
    }
}

impl EdgeSpec {
    /// What is wrong with it.
    pub fn fault(&self) -> Option<&'static str> {
        if self.of == 0 || self.of > 100 {
            return Some("`of` must be from 1 to 100");
        }
        // With half of the checks or fewer, two conditions could count at once.
        if self.seen > self.of || self.seen * 2 <= self.of {
            return Some("`seen` must be more than half of `of`, and not more than `of`");
        }
        let is_short = |every: WrittenSpan| every.0 < Duration::from_secs(1);
        let is_short = self.every.is_some_and(is_short);
        is_short.then_some("`every` must be at least 1s")
    }
}

impl BeaconState {
    /// Takes note of a check, and says what is to be told.
    ///
    /// The first condition that counts is told if it is not as it should be; after that, every other one.
    ///
    /// ```
    /// use portolan_trigger::{BeaconReading, BeaconState, EdgeSpec};
    ///
    /// let rule = EdgeSpec { seen: 2, of: 3, ..EdgeSpec::default() };
    /// let mut beacon = BeaconState::default();
    /// let mut check = |condition: &str| {
    ///     let reading = BeaconReading { condition: condition.into(), is_normal: condition == "up" };
    ///     beacon.read(&rule, &reading, "2026-11-18T09:00:00Z".parse().ok()?)
    /// };
    /// assert!(check("up").is_none());
    /// assert!(check("up").is_none());
    /// assert!(check("down").is_none(), "once is an accident");
    /// assert_eq!(check("down").map(|edge| edge.now).as_deref(), Some("down"));
    /// ```
    pub fn read(
        &mut self,
        rule: &EdgeSpec,
        reading: &BeaconReading,
        now: Timestamp,
    ) -> Option<BeaconEdge> {
        let condition = bounded(&reading.condition);
        self.recent.push_back(condition.clone());
        while self.recent.len() > rule.of.max(1) as usize {
            self.recent.pop_front();
        }
        let seen = self.recent.iter().filter(|one| **one == condition).count();
        let is_new = self.settled.as_ref() != Some(&condition);
        if is_new && seen >= rule.seen as usize {
            let before = self.settled.replace(condition.clone());
            if before.is_none() && reading.is_normal {
                self.told = Some(now);
                return None;
            }
            return Some(self.tell(before, condition, true, now));
        }
        let settled = self.settled.clone()?;
        self.is_due(rule, now)
            .then(|| self.tell(Some(settled.clone()), settled, false, now))
    }

    /// The condition that counts; `None` before any was seen often enough.
    pub fn settled(&self) -> Option<&str> {
        self.settled.as_deref()
    }

    /// Whether what a check saw is the condition that counts.
    pub fn has_settled_on(&self, reading: &BeaconReading) -> bool {
        self.settled == Some(bounded(&reading.condition))
    }

    fn is_due(&mut self, rule: &EdgeSpec, now: Timestamp) -> bool {
        let Some(every) = rule.every else {
            return false;
        };
        // A clock that went back does not make it wait longer.
        self.told = self.told.map(|told| told.min(now));
        self.told.is_none_or(|told| later(told, every.0) <= now)
    }

    fn tell(
        &mut self,
        before: Option<String>,
        condition: String,
        is_change: bool,
        now: Timestamp,
    ) -> BeaconEdge {
        self.told = Some(now);
        BeaconEdge {
            before,
            now: condition,
            is_change,
        }
    }
}

/// A condition of bounded length: a long one is known by its digest.
fn bounded(condition: &str) -> String {
    if condition.len() <= MAX_CONDITION {
        return condition.to_owned();
    }
    portolan_digest::Digest::of(condition.as_bytes()).to_string()
}
