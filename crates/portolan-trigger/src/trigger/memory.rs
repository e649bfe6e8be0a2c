//! What a trigger remembers: its groups, how often it fired, whether it is switched off.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Trigger;
use super::refusal::Refusal;
use super::window::WindowState;
use crate::rate::{RecentTimes, TokenBucket};
use crate::span::later;

/// What a trigger remembers. Nothing of it is lost if each [`Checkpoint`] is stored with its run: what came since can be
/// observed again, and names of firings are the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TriggerMemory {
    pub(super) ledger: TriggerLedger,
    pub(super) groups: BTreeMap<String, WindowState>,
    /// Groups are looked through for idle ones once a second at most.
    swept: Option<Timestamp>,
}

/// What a trigger remembers beside its groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerLedger {
    pub(super) bucket: TokenBucket,
    pub(super) recent: RecentTimes,
    /// Why it is switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trip: Option<Trip>,
    /// Events of groups for which there was no room.
    pub(super) overflow: u64,
    /// Firings so far.
    pub(super) fired: u64,
}

/// A trigger that is switched off because it fired too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// Since when.
    pub since: Timestamp,
    /// Firings that were refused since.
    pub refused: u64,
}

/// What is stored in one transaction with the run of a firing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What the trigger remembers beside its groups.
    pub ledger: TriggerLedger,
    /// The name of the group.
    pub group: String,
    /// What it remembers about the group.
    pub window: WindowState,
}

impl TriggerMemory {
    /// What a trigger remembered when checkpoints were stored.
    pub fn restore(
        ledger: TriggerLedger,
        groups: impl IntoIterator<Item = (String, WindowState)>,
    ) -> Self {
        Self {
            ledger,
            groups: groups.into_iter().collect(),
            swept: None,
        }
    }

    /// What it remembers beside its groups.
    pub fn ledger(&self) -> &TriggerLedger {
        &self.ledger
    }

    /// How many groups it remembers.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The names of groups whose firing waits.
    pub(crate) fn waiting_groups(&self) -> impl Iterator<Item = String> + use<'_> {
        let waiting = self.groups.iter().filter(|(_, window)| window.is_waiting());
        waiting.map(|(name, _)| name.clone())
    }

    /// Switches it on again.
    pub fn reset(&mut self) {
        self.ledger.trip = None;
        self.ledger.bucket = TokenBucket::default();
    }

    /// A copy that knows one group only, to try something on.
    pub(super) fn copy_for(&self, group: &str) -> Self {
        let known = self.groups.get_key_value(group);
        Self {
            ledger: self.ledger.clone(),
            groups: known
                .map(|(name, window)| (name.clone(), window.clone()))
                .into_iter()
                .collect(),
            swept: self.swept,
        }
    }

    /// The group of this name, made if there is room for it.
    pub(super) fn group(
        &mut self,
        trigger: &Trigger,
        name: &str,
        now: Timestamp,
    ) -> Result<&mut WindowState, Refusal> {
        if !self.groups.contains_key(name) && self.groups.len() >= trigger.max_groups {
            self.sweep(trigger, now);
            if self.groups.len() >= trigger.max_groups {
                self.ledger.overflow += 1;
                return Err(Refusal::TooManyGroups(self.groups.len()));
            }
        }
        Ok(self.groups.entry(name.to_owned()).or_default())
    }

    fn sweep(&mut self, trigger: &Trigger, now: Timestamp) {
        let is_early =
            |swept: Timestamp| swept <= now && now < later(swept, Duration::from_secs(1));
        if self.swept.is_some_and(is_early) {
            return;
        }
        self.swept = Some(now);
        let cooldown = trigger.cooldown.unwrap_or_default();
        self.groups
            .retain(|_, window| !window.is_idle(cooldown, trigger.within, now));
    }

    /// What is to be stored about a group; `None` if nothing is remembered about it.
    pub(crate) fn remembered(&self, group: &str) -> Option<Checkpoint> {
        let is_known = self.groups.contains_key(group);
        is_known.then(|| self.checkpoint(group))
    }

    /// The names of all groups.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    pub(super) fn checkpoint(&self, group: &str) -> Checkpoint {
        Checkpoint {
            ledger: self.ledger.clone(),
            group: group.to_owned(),
            window: self.groups.get(group).cloned().unwrap_or_default(),
        }
    }
}

impl TriggerLedger {
    /// Why it is switched off; `None` if it is not.
    pub fn trip(&self) -> Option<&Trip> {
        self.trip.as_ref()
    }

    /// Events of groups for which there was no room.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Firings so far.
    pub fn fired(&self) -> u64 {
        self.fired
    }
}
