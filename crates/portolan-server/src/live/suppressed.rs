//! Events that counted for a trigger and started nothing, counted and told together: one that comes a thousand times a minute
//! would otherwise make a thousand more.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_kinds::KindObject;
use portolan_trigger::Refusal;
use serde_json::json;
use tokio::time::Instant;

use crate::events::{EventSink, NewEvent};

/// How often one reason of one trigger is told.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What was suppressed and is not told yet, by trigger and reason.
#[derive(Debug, Default)]
pub(super) struct Suppressed {
    entries: BTreeMap<(String, &'static str), SuppressedEntry>,
}

#[derive(Debug)]
struct SuppressedEntry {
    count: u64,
    /// The last reason, in words.
    why: String,
    told: Option<Instant>,
}

impl Suppressed {
    /// Counts an event that a trigger refused. The same event again is nothing that anybody has to know.
    pub(super) fn add(&mut self, trigger: &str, refusal: &Refusal) {
        if matches!(refusal, Refusal::Duplicate) {
            return;
        }
        let key = (trigger.to_owned(), refusal.code());
        let entry = self.entries.entry(key).or_insert(SuppressedEntry {
            count: 0,
            why: String::new(),
            told: None,
        });
        entry.count += 1;
        entry.why = refusal.to_string();
    }

    /// Tells what was not told for a while.
    pub(super) fn tell<'t>(
        &mut self,
        sink: &EventSink,
        trigger: impl Fn(&str) -> Option<&'t KindObject>,
    ) {
        let now = Instant::now();
        self.entries.retain(|(uuid, code), entry| {
            let is_early = entry
                .told
                .is_some_and(|told| now.duration_since(told) < TELL_EVERY);
            if is_early {
                return true;
            }
            let Some(trigger) = trigger(uuid).filter(|_| entry.count > 0) else {
                return false;
            };
            let summary = format!(
                "trigger {} started no run for {} events: {}",
                trigger.name(),
                entry.count,
                entry.why
            );
            let event = NewEvent::new("trigger.suppressed", summary)
                .about(trigger)
                .data(json!({"reason": code, "count": entry.count}));
            sink.tell(event);
            entry.count = 0;
            entry.told = Some(now);
            true
        });
    }
}
