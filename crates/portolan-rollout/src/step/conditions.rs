//! What other programs are told.

use super::Pass;
use crate::condition::{Finding, replace};
use crate::metric_state::MetricVerdict;
use crate::phase::Phase;

impl Pass<'_> {
    pub(super) fn write_conditions(&mut self) {
        let mut found = vec![self.ready_condition()];
        let phase = self.status.phase;
        let is_moving = phase.is_running() || phase == Phase::Initializing;
        // kstatus reads these two only while they are true.
        if is_moving && self.problem().is_none() {
            let message = self.hold_message().unwrap_or_else(|| phase.to_string());
            found.push(finding(
                "Reconciling",
                Some(true),
                &phase.to_string(),
                message,
            ));
        }
        if let Some((reason, message)) = self.stall() {
            found.push(finding("Stalled", Some(true), &reason, message));
        }
        let is_paused = self.spec.paused
            || self
                .status
                .canary
                .as_ref()
                .is_some_and(|canary| canary.is_paused);
        if is_paused {
            let message = "nothing goes forward until it is resumed".to_owned();
            found.push(finding("Paused", Some(true), "Paused", message));
        }
        found.extend(self.canary_conditions());
        if !self.observed.bypasses.is_empty() {
            let message = self.observed.bypasses.join("; ");
            found.push(finding("RoutesBypassed", Some(true), "OtherWays", message));
        }
        found.extend(self.refused_condition());
        replace(
            &mut self.status.conditions,
            found,
            self.observed.generation,
            self.now,
        );
    }

    fn ready_condition(&self) -> Finding {
        let phase = self.status.phase;
        if let Some((reason, message)) = self.problem() {
            return finding("Ready", Some(false), &reason, message);
        }
        match phase {
            Phase::Stable if self.wanted_replicas() > 0 && self.stable_is_away() => {
                let message = "no pod of the revision that serves is ready".to_owned();
                finding("Ready", Some(false), "NotAvailable", message)
            }
            Phase::Stable => {
                let message = "the revision that the spec asks for serves all traffic";
                finding("Ready", Some(true), "Stable", message.to_owned())
            }
            Phase::RolledBack => {
                let (reason, message) = self.stall().unwrap_or_default();
                finding("Ready", Some(false), &reason, message)
            }
            _ => {
                let message = self.hold_message().unwrap_or_else(|| phase.to_string());
                finding("Ready", None, &phase.to_string(), message)
            }
        }
    }

    /// What a person has to put right.
    fn problem(&self) -> Option<(String, String)> {
        if let Some(message) = &self.invalid {
            return Some(("InvalidSpec".to_owned(), message.clone()));
        }
        let problem = self.observed.problems.first()?;
        Some((problem.reason.clone(), problem.message.clone()))
    }

    /// Why nothing happens until the spec changes.
    fn stall(&self) -> Option<(String, String)> {
        if let Some(problem) = self.problem() {
            return Some(problem);
        }
        if self.status.phase != Phase::RolledBack {
            return None;
        }
        let target = self.status.target.as_ref();
        let why = target.and_then(|target| self.status.refused(target));
        let why = why.unwrap_or("the new revision was rolled back");
        Some((
            "RolledBack".to_owned(),
            format!("{why}; change the spec or retry by a token"),
        ))
    }

    fn canary_conditions(&self) -> Vec<Finding> {
        let Some(canary) = self.status.canary.as_deref() else {
            return Vec::new();
        };
        let verdict = self.verdict();
        let is_conclusive = matches!(verdict, MetricVerdict::Good | MetricVerdict::Bad);
        let mut found = vec![finding(
            "AnalysisConclusive",
            Some(is_conclusive),
            &format!("{verdict:?}"),
            self.excluded().trim_start_matches("; ").to_owned(),
        )];
        if let Some(is_verified) = canary.is_verified {
            let (reason, message) = if is_verified {
                ("AsRouted", "requests are split as the routes say")
            } else {
                ("NotAsRouted", "requests are not split as the routes say")
            };
            found.push(finding(
                "TrafficVerified",
                Some(is_verified),
                reason,
                message.to_owned(),
            ));
        }
        found
    }

    /// A refused token stays visible until the next one is obeyed.
    fn refused_condition(&self) -> Option<Finding> {
        let known = self.status.conditions.iter();
        let known = known.into_iter().find(|known| known.kind == "TokenRefused");
        let known = known.filter(|_| self.spec.paused);
        let message = self
            .refused
            .clone()
            .or_else(|| known.map(|known| known.message.clone()))?;
        Some(finding("TokenRefused", Some(true), "Paused", message))
    }

    fn hold_message(&self) -> Option<String> {
        self.status.hold.as_ref().map(|hold| hold.message.clone())
    }
}

fn finding(kind: &'static str, status: Option<bool>, reason: &str, message: String) -> Finding {
    Finding {
        kind,
        status,
        reason: reason.to_owned(),
        message,
    }
}
