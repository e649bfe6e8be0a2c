//! What an agent tells of its beacons, as Events and as the status of its Node.

use std::time::Duration;

use futures_util::future::join_all;
use portolan_agent::BeaconNotice;
use portolan_agent::wire::{BeaconEvent, BeaconEvents, BeaconSight, CronSight};
use portolan_digest::hex;
use portolan_kinds::{KindObject, find_kind};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::RefusalReason;
use crate::events::Events;
use crate::keys::ObjectKey;
use crate::node_access::{NodeIdentity, NodeScope};
use crate::objects::Author;

/// What events can be about.
const SUBJECTS: [&str; 9] = [
    "file",
    "service",
    "disk",
    "port",
    "command",
    "drift",
    "lost",
    SHARE_KEY,
    SHARE_KEY_REFUSED,
];

/// What events of schedules that nodes keep are about, and their types.
const CRON_SUBJECTS: [(&str, &str); 3] = [
    ("cron-ended", "cron.ended"),
    ("cron-failed", "cron.failed"),
    ("cron-skipped", "cron.skipped"),
];

/// The subject of an event about a key for shares that has changed.
const SHARE_KEY: &str = "share-key";

/// The subject of an event about a key for shares that its node has not signed.
const SHARE_KEY_REFUSED: &str = "share-key-refused";

/// How far the clock of a node may be wrong before the time of its events is corrected.
const MAX_SKEW: Duration = Duration::from_mins(5);

/// The most bytes of what an agent tells of an event.
const MAX_CONTENT: usize = 8 << 10;

/// The most events of a message.
const MAX_EVENTS: usize = 2_000;

/// The most states of a node.
const MAX_STATES: usize = 200;

/// The longest condition.
const MAX_CONDITION: usize = 128;

/// The longest reason of a slot that failed.
const MAX_ERROR: usize = 500;

/// The namespace of what agents tell by themselves.
const SYSTEM: &str = "system";

/// Writes events, and returns up to which number the agent can forget them.
pub(super) async fn write_events(
    events: &Events,
    author: &Author,
    node: &NodeIdentity,
    scope: &NodeScope,
    told: &BeaconEvents,
) -> Option<u64> {
    let now = events.objects.time.now();
    let told_events = told.events.iter().take(MAX_EVENTS);
    let written = told_events.map(|event| async move {
        let read = read_event(&events.cache, (node, scope), &told.spool, event, now);
        let Some(object) = read else {
            return true;
        };
        match events.create(object, author).await {
            Ok(_) => true,
            Err(error) if error.reason == RefusalReason::AlreadyExists => true,
            // It will not be better the next time, and must not hold up the others.
            Err(error) if error.status.is_client_error() => {
                tracing::warn!(%error, node = node.name, "an event of a beacon was refused");
                true
            }
            Err(error) => {
                tracing::warn!(%error, node = node.name, "an event of a beacon cannot be written yet");
                false
            }
        }
    });
    let written = join_all(written).await;
    let done = told.events.iter().zip(written);
    let done = done.take_while(|(_, is_written)| *is_written);
    done.last().map(|(event, _)| event.number)
}

/// The event that an agent tells; `None` if it may not, or it is not written as it should be.
fn read_event(
    cache: &Cache,
    (node, scope): (&NodeIdentity, &NodeScope),
    spool: &str,
    event: &BeaconEvent,
    now: Duration,
) -> Option<KindObject> {
    let refuse = |why: &str| {
        tracing::warn!(node = node.name, why, "an event of a beacon was refused");
    };
    if event.content.len() > MAX_CONTENT {
        refuse("it is too large");
        return None;
    }
    let Ok(notice) = serde_json::from_slice::<BeaconNotice>(&event.content) else {
        refuse("it cannot be read");
        return None;
    };
    let mut cron_subjects = CRON_SUBJECTS.iter();
    let cron = cron_subjects.find(|(subject, _)| *subject == notice.subject);
    if cron.is_none() && !SUBJECTS.contains(&notice.subject.as_str()) {
        refuse("nobody knows what it is about");
        return None;
    }
    let (namespace, source) = if notice.beacon.is_empty() {
        (
            SYSTEM,
            json!({"kind": "Node", "name": node.name, "node": node.name}),
        )
    } else {
        let kind = if cron.is_some() { "CronJob" } else { "Beacon" };
        let source = json!({"kind": kind, "name": notice.beacon, "node": node.name});
        (notice.namespace.as_str(), source)
    };
    if !scope.may_report_in(namespace) {
        refuse("its namespace may not target the node");
        return None;
    }
    let mut data: Map<String, Value> = notice.data;
    data.insert("observed".to_owned(), notice.time.to_string().into());
    let summary: String = notice.summary.chars().take(1_000).collect();
    let kind = match (cron, notice.subject.as_str()) {
        (Some((_, kind)), _) => (*kind).to_owned(),
        (None, SHARE_KEY) => "share.key-changed".to_owned(),
        (None, SHARE_KEY_REFUSED) => "share.key-refused".to_owned(),
        (None, subject) => format!("beacon.{subject}"),
    };
    let causes = blame_runs(
        (cache, scope),
        (notice.run.as_deref(), notice.during.as_deref()),
        namespace,
        &mut data,
    );
    let mut spec = json!({
        "type": kind,
        "severity": notice.severity.as_str(),
        "summary": summary,
        "source": source,
        "time": clamped(notice.time, now),
        "occurrences": 1,
        "data": data,
    });
    if !causes.is_null() {
        spec["causes"] = causes;
    }
    let name = match &notice.id {
        Some(id) => known_name(node, &notice.subject, id),
        None => event_name(node, spool, event),
    };
    Some(KindObject::new(
        find_kind("Event")?,
        &name,
        Some(namespace),
        spec,
    ))
}

/// Says which run changed what was seen, or was at work meanwhile. Gives the triggers that led to a run that changed it:
/// they do not fire for what they led to themselves.
fn blame_runs(
    (cache, scope): (&Cache, &NodeScope),
    (run, during): (Option<&str>, Option<&str>),
    namespace: &str,
    data: &mut Map<String, Value>,
) -> Value {
    let mut causes = Value::Null;
    for (key, uuid) in [("run", run), ("duringRun", during)] {
        let Some(uuid) = uuid else { continue };
        let runs = find_kind("Run").map_or_else(Vec::new, |kind| cache.objects(kind, None));
        let mut runs = runs.iter();
        let found = runs.find(|run| run.metadata.uuid() == uuid);
        let found = found.filter(|run| scope.may_report_in(run.namespace().unwrap_or_default()));
        let shown: String = match found {
            Some(run) if run.namespace() == Some(namespace) => run.name().to_owned(),
            _ => uuid.chars().take(MAX_CONDITION).collect(),
        };
        data.insert(key.to_owned(), shown.into());
        if let Some(run) = found.filter(|_| key == "run") {
            causes = run.spec.get("causes").cloned().unwrap_or_default();
        }
    }
    causes
}

/// The time of an event: that of the node, unless its clock cannot be right.
fn clamped(time: jiff::Timestamp, now: Duration) -> String {
    let seconds = u64::try_from(time.as_second()).unwrap_or(0);
    let time = Duration::from_secs(seconds);
    rfc3339(time.clamp(now.saturating_sub(MAX_SKEW), now + MAX_SKEW))
}

/// The same event has the same name, and no other event has it: not one of another node, of a spool that was made anew, or
/// of a spool that was restored and counts the same numbers again.
fn event_name(node: &NodeIdentity, spool: &str, event: &BeaconEvent) -> String {
    let mut hasher = Sha256::new();
    for part in [node.uid.as_bytes(), spool.as_bytes(), &event.content] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.update(event.number.to_be_bytes());
    format!("beacon-{}", hex(&hasher.finalize()[..16]))
}

/// The name of an event that the agent may tell again, with other words and another number.
fn known_name(node: &NodeIdentity, subject: &str, id: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [node.uid.as_str(), subject, id] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    format!("agent-{}", hex(&hasher.finalize()[..16]))
}

/// What the status of a node says of the schedules that it keeps. CronJobs that do not exist are left out.
pub(super) fn cron_jobs(cache: &Cache, scope: &NodeScope, kept: &[CronSight]) -> Value {
    let Some(kind) = find_kind("CronJob") else {
        return Value::Null;
    };
    let kept = kept.iter().take(MAX_STATES).filter(|one| {
        let key = ObjectKey::new(kind, Some(&one.namespace), &one.name);
        scope.may_report_in(&one.namespace) && cache.object(&key).is_some()
    });
    let is_time = |text: &&String| text.parse::<jiff::Timestamp>().is_ok();
    let jobs = kept.map(|one| {
        let mut job = json!({"namespace": one.namespace, "name": one.name});
        for (key, text) in [("lastSlot", &one.last_slot), ("nextSlot", &one.next_slot)] {
            if let Some(time) = Some(text).filter(is_time) {
                job[key] = json!(time);
            }
        }
        for (key, text, most) in [
            ("state", &one.state, MAX_CONDITION),
            ("error", &one.error, MAX_ERROR),
        ] {
            if !text.is_empty() {
                job[key] = text.chars().take(most).collect::<String>().into();
            }
        }
        job
    });
    Value::Array(jobs.collect())
}

/// What the status of a node says of its beacons. Beacons that do not exist are left out.
pub(super) fn states(cache: &Cache, scope: &NodeScope, seen: &[BeaconSight]) -> Value {
    let Some(kind) = find_kind("Beacon") else {
        return Value::Null;
    };
    let seen = seen.iter().take(MAX_STATES).filter(|one| {
        let key = ObjectKey::new(kind, Some(&one.namespace), &one.name);
        let is_time = one.last_seen.parse::<jiff::Timestamp>().is_ok();
        is_time && scope.may_report_in(&one.namespace) && cache.object(&key).is_some()
    });
    let states = seen.map(|one| {
        let condition: String = one.condition.chars().take(MAX_CONDITION).collect();
        json!({
            "namespace": one.namespace, "name": one.name, "condition": condition,
            "normal": one.is_normal, "lastSeen": one.last_seen,
        })
    });
    Value::Array(states.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(uid: &str) -> NodeIdentity {
        NodeIdentity {
            name: "a".to_owned(),
            uid: uid.to_owned(),
        }
    }

    fn event(number: u64, content: &str) -> BeaconEvent {
        BeaconEvent {
            number,
            content: content.as_bytes().to_vec().into(),
        }
    }

    #[test]
    fn the_same_event_has_the_same_name_and_no_other_has_it() {
        let name = event_name(&node("1"), "s", &event(1, "x"));
        assert_eq!(name, event_name(&node("1"), "s", &event(1, "x")));
        for other in [
            event_name(&node("2"), "s", &event(1, "x")),
            event_name(&node("1"), "t", &event(1, "x")),
            event_name(&node("1"), "s", &event(2, "x")),
            event_name(&node("1"), "s", &event(1, "y")),
            event_name(&node("1s"), "", &event(1, "x")),
        ] {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn a_wrong_clock_moves_an_event_by_five_minutes_at_most() {
        let now = Duration::from_secs(1_790_000_000);
        let check = |seconds: i64, expected: u64| {
            let time = jiff::Timestamp::from_second(seconds).expect("a time");
            assert_eq!(clamped(time, now), rfc3339(Duration::from_secs(expected)));
        };
        check(1_790_000_010, 1_790_000_010);
        check(1_780_000_000, 1_789_999_700);
        check(1_800_000_000, 1_790_000_300);
        check(-5, 1_789_999_700);
    }
}
