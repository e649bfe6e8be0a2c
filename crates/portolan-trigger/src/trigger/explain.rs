//! Why a trigger fires for an event or does not, rule by rule, without changing what it remembers.

use std::fmt;

use super::react::{Reaction, Surroundings};
use super::refusal::{Mismatch, Refusal};
use super::{Trigger, TriggerMemory};
use crate::event::EventView;
use crate::rate::RunBudget;

/// What a trigger would do about an event, and which rules decide that.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerExplanation {
    /// The rules in the order in which they are asked; those after the one that decides are not asked.
    pub rules: Vec<CheckedRule>,
    /// What the trigger would do.
    pub reaction: Reaction,
}

/// A rule and what it says about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRule {
    /// Its name, a field of the spec.
    pub name: &'static str,
    /// Whether it lets the event pass.
    pub passed: bool,
    /// What it says, in words.
    pub detail: String,
}

impl Trigger {
    /// Says what the trigger would do about an event, and why.
    ///
    /// ```
    /// use portolan_trigger::{
    ///     EventView, FleetEvent, Reaction, RunBudget, Surroundings, Trigger, TriggerMemory,
    /// };
    ///
    /// let spec = serde_json::from_str(r#"{"match": {"types": ["run.*"], "when": "event.node == 'web-1'"}}"#)?;
    /// let trigger = Trigger::new("uid", "shop", &spec).map_err(|faults| faults[0].to_string())?;
    /// let event: FleetEvent = serde_json::from_str(r#"{
    ///     "uid": "1", "type": "run.failed", "namespace": "shop", "node": "web-2",
    ///     "time": "2026-11-18T09:00:00Z", "received": "2026-11-18T09:00:01Z"
    /// }"#)?;
    /// let mut budget = RunBudget::per_minute(60);
    /// let around = Surroundings { now: event.received, active: 0, budget: &mut budget };
    /// let explained = trigger.explain(&TriggerMemory::default(), &EventView::new(&event), &around);
    /// assert_eq!(explained.to_string(), "✓ match.namespaces: shop\n\
    ///     ✓ match.types: run.failed\n\
    ///     ✗ match.when: `when` is false\n\
    ///     it does not fire: `when` is false\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(
        &self,
        memory: &TriggerMemory,
        view: &EventView<'_>,
        around: &Surroundings<'_>,
    ) -> TriggerExplanation {
        let event = view.event();
        let group = self.group_name(event);
        let mut budget: RunBudget = around.budget.clone();
        let mut trial = Surroundings {
            now: around.now,
            active: around.active,
            budget: &mut budget,
        };
        let is_known = memory.groups.contains_key(&group);
        let reaction = if !is_known && !self.has_room(memory, around) && self.counts(view) {
            Reaction::Refused(Refusal::TooManyGroups(memory.groups.len()))
        } else {
            let mut copy = memory.copy_for(&group);
            self.observe(&mut copy, view, &mut trial)
        };
        let mut rules = self.matched_rules(view);
        if rules.iter().all(|rule| rule.passed) {
            rules.extend(self.further_rules(&reaction, &group, event.causes.depth()));
        }
        TriggerExplanation { rules, reaction }
    }

    fn counts(&self, view: &EventView<'_>) -> bool {
        self.matching(view).is_ok() && self.loops(view.event()).is_ok()
    }

    fn has_room(&self, memory: &TriggerMemory, around: &Surroundings<'_>) -> bool {
        let cooldown = self.cooldown.unwrap_or_default();
        let mut windows = memory.groups.values();
        memory.groups.len() < self.max_groups
            || windows.any(|window| window.is_idle(cooldown, self.within, around.now))
    }

    fn matched_rules(&self, view: &EventView<'_>) -> Vec<CheckedRule> {
        let event = view.event();
        let mismatch = self.matching(view).err();
        let mut rules = Vec::new();
        let mut ask = |name, passed: String, failed: Option<&Mismatch>| {
            let detail = failed.map_or(passed, ToString::to_string);
            let passed = failed.is_none();
            rules.push(CheckedRule {
                name,
                passed,
                detail,
            });
            passed
        };
        let found = mismatch.as_ref();
        let of = |is: fn(&Mismatch) -> bool| found.filter(|mismatch| is(mismatch));
        let namespace = of(|mismatch| matches!(mismatch, Mismatch::Namespace(_)));
        let kind = of(|mismatch| matches!(mismatch, Mismatch::Type(_)));
        let when = of(|mismatch| matches!(mismatch, Mismatch::When | Mismatch::Condition(_)));
        let passes = ask("match.namespaces", event.namespace.clone(), namespace)
            && ask("match.types", event.kind.clone(), kind);
        if passes && self.when.is_some() {
            ask("match.when", "true for this event".to_owned(), when);
        }
        rules
    }

    /// The rules behind the match; the first one that stops the event is the last one that is listed.
    fn further_rules(&self, reaction: &Reaction, group: &str, depth: usize) -> Vec<CheckedRule> {
        let all = [
            (
                "maxDepth",
                format!(
                    "{depth} runs of triggers behind it, of at most {}",
                    self.max_depth
                ),
            ),
            ("groupBy", format!("group {group}")),
            ("uid", "not seen before".to_owned()),
            ("cooldown", "its group does not cool down".to_owned()),
            ("count", format!("{} within its time", self.count)),
            ("waitForMore", "it does not wait".to_owned()),
            ("trip", "it is not switched off".to_owned()),
            ("perHour", "it may fire".to_owned()),
            ("windows", "it may fire now".to_owned()),
            ("maxActive", "its runs are fewer".to_owned()),
            ("budget", "triggers may start more runs".to_owned()),
        ];
        let stop = stopping_rule(reaction);
        let mut rules = Vec::new();
        for (name, detail) in all {
            let Some((at, why)) = stop.as_ref().filter(|(at, _)| *at == name) else {
                rules.push(CheckedRule {
                    name,
                    passed: true,
                    detail,
                });
                continue;
            };
            rules.push(CheckedRule {
                name: at,
                passed: false,
                detail: why.clone(),
            });
            break;
        }
        rules
    }
}

/// The rule that stops an event, with what it says.
fn stopping_rule(reaction: &Reaction) -> Option<(&'static str, String)> {
    use super::refusal::Blocked;
    let blocked = |blocked: &Blocked| match blocked {
        Blocked::Closed => "windows",
        Blocked::Active(_) => "maxActive",
        Blocked::Budget(_) => "budget",
    };
    let name = match reaction {
        Reaction::NoMatch(_) | Reaction::Fired(_) => return None,
        Reaction::Counted { .. } => "count",
        Reaction::Waiting { .. } => "waitForMore",
        Reaction::Held(why) | Reaction::Refused(Refusal::Blocked(why)) => blocked(why),
        Reaction::Tripped(_) | Reaction::Refused(Refusal::Tripped { .. }) => "trip",
        Reaction::Refused(refusal) => match refusal {
            Refusal::SameTrigger | Refusal::TooDeep { .. } => "maxDepth",
            Refusal::TooManyGroups(_) => "groupBy",
            Refusal::Duplicate => "uid",
            Refusal::Cooldown(_) => "cooldown",
            Refusal::PerHour { .. } => "perHour",
            _ => "count",
        },
    };
    Some((name, reaction.to_string()))
}

impl fmt::Display for Reaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch(mismatch) => mismatch.fmt(out),
            Self::Refused(refusal) => refusal.fmt(out),
            Self::Counted { have, need } => write!(out, "{have} of {need} events so far"),
            Self::Waiting { until } => write!(out, "it waits for more events until {until}"),
            Self::Held(blocked) => write!(out, "{blocked}; it starts when it can"),
            Self::Tripped(alert) => alert.fmt(out),
            Self::Fired(firing) => write!(out, "it starts the run {}", firing.id),
        }
    }
}

impl fmt::Display for TriggerExplanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            let sign = if rule.passed { '✓' } else { '✗' };
            writeln!(out, "{sign} {}: {}", rule.name, rule.detail)?;
        }
        match &self.reaction {
            Reaction::Fired(firing) => writeln!(out, "it fires: run {}", firing.id),
            other => writeln!(out, "it does not fire: {other}"),
        }
    }
}
