//! What changed between two answers, as events for a fleet server.
//!
//! The first answer is what later ones are compared with. An answer that could look at less than the ones before adds
//! findings and resolves none, because what it does not see may still be there. The changes of the last hour are part of the
//! snapshot, so that an exporter that was killed before it told them tells them when it starts again.

use std::collections::{BTreeMap, BTreeSet};

use portolan_audit::{Finding, Level, Report, Subject};
use portolan_client::{JobEvent, MAX_EVENT_AGE};
use portolan_object::Severity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most changes that are kept to be told again.
const MAX_KEPT: usize = 1_000;

/// What was found, and what changed lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingLedger {
    /// Findings that nobody accepted, by their ids.
    open: BTreeMap<String, OpenFinding>,
    /// What could not be looked at in the answer that findings were resolved by last.
    unseen: BTreeSet<String>,
    changes: Vec<FindingChange>,
}

/// A finding as it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenFinding {
    level: Level,
    subject: Subject,
    path: Option<String>,
    message: String,
    replacement: Option<String>,
    removed_in: Option<String>,
}

/// A finding that is new, or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingChange {
    id: String,
    /// In seconds since 1970.
    at: u64,
    is_resolved: bool,
    finding: OpenFinding,
}

impl FindingLedger {
    /// What the first answer found. Nothing of it is told, since nobody knows whether it is new.
    pub(crate) fn first(report: &Report, unseen: BTreeSet<String>) -> Self {
        Self {
            open: open_findings(report),
            unseen,
            changes: Vec::new(),
        }
    }

    /// The ledger after a further answer, and what is to be told of it.
    pub(crate) fn next(
        &self,
        report: &Report,
        unseen: BTreeSet<String>,
        at: u64,
    ) -> (Self, Vec<FindingChange>) {
        let mut open = open_findings(report);
        let sees_enough = unseen.is_subset(&self.unseen);
        let mut news: Vec<FindingChange> = Vec::new();
        for (id, finding) in &open {
            if !self.open.contains_key(id) {
                news.push(FindingChange::new(id, at, false, finding));
            }
        }
        for (id, finding) in &self.open {
            if open.contains_key(id) {
                continue;
            }
            if sees_enough {
                news.push(FindingChange::new(id, at, true, finding));
            } else {
                open.insert(id.clone(), finding.clone());
            }
        }
        let oldest = at.saturating_sub(MAX_EVENT_AGE.as_secs());
        let recent = self.changes.iter().filter(|change| change.at >= oldest);
        let mut changes: Vec<FindingChange> = recent.chain(&news).cloned().collect();
        changes.drain(..changes.len().saturating_sub(MAX_KEPT));
        let unseen = if sees_enough {
            unseen
        } else {
            self.unseen.clone()
        };
        let next = Self {
            open,
            unseen,
            changes,
        };
        (next, news)
    }

    /// What changed in the last hour.
    pub(crate) fn recent(&self, now: u64) -> impl Iterator<Item = &FindingChange> {
        let oldest = now.saturating_sub(MAX_EVENT_AGE.as_secs());
        self.changes
            .iter()
            .filter(move |change| change.at >= oldest)
    }
}

impl FindingChange {
    fn new(id: &str, at: u64, is_resolved: bool, finding: &OpenFinding) -> Self {
        Self {
            id: id.to_owned(),
            at,
            is_resolved,
            finding: finding.clone(),
        }
    }

    /// The event of a change. A finding that comes again is another event, because it comes at another time.
    pub(crate) fn event(&self) -> JobEvent {
        let finding = &self.finding;
        let Subject {
            api_version,
            kind,
            namespace,
            name,
        } = &finding.subject;
        let object = match namespace.as_str() {
            "" => format!("{kind} {name}"),
            namespace => format!("{kind} {namespace}/{name}"),
        };
        let (event_type, summary) = if self.is_resolved {
            (
                "audit.resolved",
                format!("{object}: no longer {}", finding.level.name()),
            )
        } else {
            ("audit.finding", format!("{object}: {}", finding.message))
        };
        let second = i64::try_from(self.at).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
        let id = format!("{}/{}", self.id, self.at);
        let data = json!({
            "id": self.id, "level": finding.level.name(), "apiVersion": api_version, "kind": kind, "namespace": namespace,
            "name": name, "path": finding.path, "message": finding.message, "replacement": finding.replacement,
            "removedIn": finding.removed_in,
        });
        let event = JobEvent::new(event_type, &id, time, summary)
            .about(kind, name)
            .data(without_nulls(&data));
        match finding.level.rule().severity {
            _ if self.is_resolved => event,
            Severity::Error => event.error(),
            Severity::Warning => event.warning(),
            Severity::Note => event,
        }
    }
}

/// The findings that nobody accepted.
fn open_findings(report: &Report) -> BTreeMap<String, OpenFinding> {
    let findings = report.findings.iter().filter(|one| one.accepted.is_none());
    findings
        .map(|finding: &Finding| {
            let open = OpenFinding {
                level: finding.level,
                subject: finding.subject.clone(),
                path: finding.path.clone(),
                message: finding.message.clone(),
                replacement: finding.replacement.clone(),
                removed_in: finding.removed_in.as_ref().map(ToString::to_string),
            };
            (finding.id.clone(), open)
        })
        .collect()
}

fn without_nulls(data: &Value) -> Map<String, Value> {
    let fields = data.as_object().cloned().unwrap_or_default().into_iter();
    fields.filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(names: &[&str]) -> Report {
        let findings = names.iter().map(|name| {
            json!({
                "id": name, "level": "removed", "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
                "namespace": "shop", "name": name, "component": "k8s", "message": "it was removed",
            })
        });
        let report = json!({
            "findings": findings.collect::<Value>(), "checked": {"objects": 1, "files": 0, "charts": 0, "releases": 0},
            "target": "1.36", "newestKnown": "1.36",
        });
        serde_json::from_value(report).expect("a report")
    }

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn told(news: &[FindingChange]) -> Vec<(&str, bool)> {
        let news = news.iter();
        news.map(|one| (one.id.as_str(), one.is_resolved)).collect()
    }

    #[test]
    fn findings_are_told_when_they_come_and_when_they_go() {
        let first = FindingLedger::first(&report(&["a"]), none());
        let (second, news) = first.next(&report(&["a", "b"]), none(), 100);
        assert_eq!(told(&news), [("b", false)]);
        let (third, news) = second.next(&report(&["b"]), none(), 200);
        assert_eq!(told(&news), [("a", true)]);
        let (_, news) = third.next(&report(&["b"]), none(), 300);
        assert!(news.is_empty());
        // What was told is repeated by whoever starts from this ledger, for an hour.
        assert_eq!(third.recent(300).count(), 2);
        assert_eq!(third.recent(100 + 3_601).count(), 1);
    }

    #[test]
    fn an_answer_that_sees_less_resolves_nothing() {
        let first = FindingLedger::first(&report(&["a"]), none());
        let blind = BTreeSet::from(["pods cannot be listed".to_owned()]);
        let (second, news) = first.next(&report(&[]), blind.clone(), 100);
        assert!(news.is_empty());
        let (third, news) = second.next(&report(&[]), blind, 200);
        assert!(news.is_empty());
        let (_, news) = third.next(&report(&[]), none(), 300);
        assert_eq!(told(&news), [("a", true)]);
    }

    #[test]
    fn a_finding_that_comes_again_is_another_event() {
        let first = FindingLedger::first(&report(&[]), none());
        let (_, once) = first.next(&report(&["a"]), none(), 100);
        let (_, again) = first.next(&report(&["a"]), none(), 200);
        assert_ne!(once[0].event(), again[0].event());
        assert_eq!(once[0].event().kind(), "audit.finding");
    }
}
