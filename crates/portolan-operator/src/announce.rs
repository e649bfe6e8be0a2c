//! What a fleet server is told of rollouts: the records of their histories, as events that triggers can match.
//!
//! Each record is one event by the uid of its rollout and its number. An operator that starts, or gets the lease, publishes
//! the records of the last hour again; the server knows those that it has.

use jiff::Timestamp;
use portolan_client::{JobEvent, MAX_EVENT_AGE};
use portolan_rollout::{HoldReason, KIND, Outcome, Phase, Record, Status, Time};
use serde_json::{Map, Value, json};

use crate::memory::lock;
use crate::observe::{Look, now};
use crate::rollout::Rollout;

/// The most metrics whose numbers an event has.
const MAX_METRICS: usize = 10;

impl Look<'_> {
    /// Publishes the records that this process has not published yet.
    pub(crate) fn announce(&self, status: &Status) {
        let publisher = &self.ctx.publisher;
        if !publisher.is_on() {
            return;
        }
        let mut memo = lock(self.memo);
        let oldest = MAX_EVENT_AGE.as_secs();
        let now = now();
        for record in &status.history {
            let is_recent = now.since(record.at) <= oldest;
            if record.number > memo.announced
                && is_recent
                && let Some(event) = event_of(self.rollout, record)
            {
                publisher.publish(event);
            }
            memo.announced = memo.announced.max(record.number);
        }
    }
}

/// The event of a record; `None` for those that tell only how a canary goes on.
fn event_of(rollout: &Rollout, record: &Record) -> Option<JobEvent> {
    let (kind, severity) = type_of(record)?;
    let (namespace, name) = (&rollout.key.namespace, &rollout.key.name);
    let id = format!("{}/{}/{}", rollout.uid, record.number, record.at.unix());
    let summary = format!("{namespace}/{name}: {}", record.message);
    let event = JobEvent::new(kind, &id, moment(record.at), summary)
        .about(KIND, name)
        .data(data_of(rollout, record));
    Some(match severity {
        Severity::Info => event,
        Severity::Warning => event.warning(),
        Severity::Error => event.error(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Info,
    Warning,
    Error,
}

fn type_of(record: &Record) -> Option<(&'static str, Severity)> {
    Some(match (record.outcome, record.to) {
        (Some(Outcome::Promoted), _) => ("rollout.promoted", Severity::Info),
        (Some(Outcome::PromotedUnproven), _) => ("rollout.promoted", Severity::Warning),
        (Some(Outcome::RolledBack), _) => ("rollout.rolled-back", Severity::Error),
        (Some(Outcome::Aborted), _) => ("rollout.aborted", Severity::Warning),
        (Some(Outcome::Undone), _) => ("rollout.undone", Severity::Warning),
        (Some(Outcome::Reverted), _) => ("rollout.reverted", Severity::Info),
        (Some(Outcome::Superseded), _) => ("rollout.superseded", Severity::Info),
        (None, Phase::Preparing) if record.from != Phase::Preparing => {
            ("rollout.started", Severity::Info)
        }
        (None, Phase::RollingBack) if record.from != Phase::RollingBack => {
            ("rollout.rolling-back", Severity::Warning)
        }
        (None, Phase::Holding) if record.reason == HoldReason::Problem.name() => {
            ("rollout.held", Severity::Warning)
        }
        (None, Phase::Holding) if record.from != Phase::Holding => ("rollout.held", Severity::Info),
        _ => return None,
    })
}

fn data_of(rollout: &Rollout, record: &Record) -> Map<String, Value> {
    let metrics = record.evidence.iter().take(MAX_METRICS).map(|metric| {
        json!({
            "name": metric.name, "canary": metric.canary, "stable": metric.stable, "lnRollback": metric.ln_rollback,
            "lnPromote": metric.ln_promote, "excess": metric.excess,
        })
    });
    let data = json!({
        "namespace": rollout.key.namespace, "name": rollout.key.name, "record": record.number, "from": record.from,
        "phase": record.to, "revision": record.revision, "weight": record.weight, "outcome": record.outcome,
        "reason": record.reason, "message": record.message, "actor": record.actor,
        "metrics": metrics.collect::<Value>(),
    });
    let fields = data.as_object().cloned().unwrap_or_default().into_iter();
    fields.filter(|(_, value)| !value.is_null()).collect()
}

fn moment(time: Time) -> Timestamp {
    Timestamp::from_second(time.unix()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(from: &str, to: &str, outcome: Option<&str>, reason: &str) -> Record {
        let record = json!({
            "number": 7, "at": "2026-01-31T12:00:00Z", "from": from, "to": to, "revision": "v1-new", "weight": 0,
            "outcome": outcome, "reason": reason, "message": "errors: 30 of 100 requests were bad", "actor": "operator",
            "evidence": [{
                "name": "errors", "canary": {"total": 100, "bad": 30}, "stable": {"total": 900, "bad": 1},
                "lnRollback": 9.0, "lnPromote": -9.0, "excess": 29.0,
            }],
        });
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn ends_and_turns_of_a_canary_are_events_and_its_steps_are_not() {
        let check = |from: &str, to: &str, outcome: Option<&str>, expected: Option<&str>| {
            let found = type_of(&record(from, to, outcome, "Any"));
            assert_eq!(found.map(|(kind, _)| kind), expected, "{from} {to}");
        };
        check(
            "RollingBack",
            "RolledBack",
            Some("RolledBack"),
            Some("rollout.rolled-back"),
        );
        check(
            "RollingBack",
            "RolledBack",
            Some("Aborted"),
            Some("rollout.aborted"),
        );
        check(
            "Soaking",
            "Stable",
            Some("Promoted"),
            Some("rollout.promoted"),
        );
        check(
            "Shifting",
            "RollingBack",
            None,
            Some("rollout.rolling-back"),
        );
        check("Stable", "Preparing", None, Some("rollout.started"));
        check("Shifting", "Holding", None, Some("rollout.held"));
        check("Holding", "Holding", None, None);
        check("Shifting", "Shifting", None, None);
        let unproven = type_of(&record(
            "Promoting",
            "Stable",
            Some("PromotedUnproven"),
            "Any",
        ));
        assert_eq!(unproven, Some(("rollout.promoted", Severity::Warning)));
        let problem = type_of(&record("Holding", "Holding", None, "Problem"));
        assert_eq!(problem, Some(("rollout.held", Severity::Warning)));
    }
}
