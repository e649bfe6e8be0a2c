//! What one metric has said about a canary so far.

use portolan_judge::{
    Counts, Evidence, Interval, Pods, Settings, SloEvidence, ThresholdState, Verdict, WarmUp,
};
use serde::{Deserialize, Serialize};

use crate::history::MetricSummary;
use crate::observed::Measurement;
use crate::spec::Metric;
use crate::time::Time;

/// The state of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricState {
    /// What requests of both arms have shown.
    evidence: Evidence,
    /// What requests of the new revision have shown about its promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slo: Option<SloEvidence>,
    /// Values in and out of range, for a metric that is a number.
    #[serde(default)]
    threshold: ThresholdState,
    /// What the last number says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_says: Option<Verdict>,
    /// The moment up to which requests were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted_to: Option<Time>,
    /// Who counted them last, as the label `reporter` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted_by: Option<String>,
    /// Seconds since the metric last answered.
    silent_seconds: u64,
    /// Whether it ever answered.
    has_answered: bool,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Pods of the new revision that warm up.
    #[serde(default)]
    warm_up: WarmUp,
    /// Pods of the old revision that warm up.
    #[serde(default)]
    stable_warm_up: WarmUp,
    /// The evidence without each pod.
    #[serde(default)]
    pods: Pods,
}

/// What one metric says now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricVerdict {
    /// The new revision is worse.
    Bad,
    /// It cannot be read.
    Blind,
    /// Something speaks against the new revision, not yet enough.
    Doubtful,
    /// Nothing is shown yet.
    Open,
    /// The new revision is proven not to be harmful.
    Good,
}

/// How counts are to be taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counting {
    /// Counts that begin before this moment are of another split.
    pub(crate) not_before: Time,
    /// Counts that end after this moment cannot be.
    pub(crate) now: Time,
    /// For how long requests of fresh pods do not count.
    pub(crate) warm_up_seconds: u64,
    /// Whether the old revision gets requests of the same kind.
    pub(crate) is_compared: bool,
}

/// From so much evidence for a rollback on, of all intervals or of the newest alone, the weight does not rise.
const DOUBT: f64 = 4.0;

/// A metric that says nothing for so many intervals cannot be read.
const SILENT_INTERVALS: u64 = 3;

impl MetricState {
    /// Returns the state of a metric that said nothing yet.
    pub(crate) fn new(metric: &Metric, settings: &Settings) -> Self {
        Self {
            evidence: Evidence::new(settings),
            slo: metric.slo.and_then(SloEvidence::new),
            threshold: ThresholdState::default(),
            value_says: None,
            counted_to: None,
            counted_by: None,
            silent_seconds: 0,
            has_answered: false,
            error: None,
            warm_up: WarmUp::default(),
            stable_warm_up: WarmUp::default(),
            pods: Pods::default(),
        }
    }

    /// Takes an answer into account and returns the requests of the new revision that it tells of. Requests that were
    /// counted before, or while the routes changed, are dropped.
    pub(crate) fn take(
        &mut self,
        metric: &Metric,
        settings: &Settings,
        measurement: &Measurement,
        counting: Counting,
    ) -> Option<Interval> {
        match measurement {
            Measurement::Counts {
                from,
                to,
                canary,
                stable,
                counted_by,
                ..
            } => {
                // After a step of the clock, what was counted up to a moment that is still to come does not bind.
                let counted_to = self.counted_to.filter(|counted| *counted <= counting.now);
                if counted_to.is_some_and(|counted| *from < counted) || to <= from {
                    return None;
                }
                self.answered();
                self.counted_to = Some(*to);
                self.counted_by.clone_from(counted_by);
                if *from < counting.not_before {
                    return None;
                }
                let warm_up = counting.warm_up_seconds;
                let mut interval = Interval {
                    canary: valid(self.warm_up.admit(canary, warm_up))?,
                    stable: valid(self.stable_warm_up.admit(stable, warm_up))?,
                };
                if !counting.is_compared {
                    interval.stable = Counts::default();
                }
                self.evidence.observe(settings, &interval);
                self.pods.observe(settings, &interval, &canary.pods);
                if let Some(slo) = &mut self.slo {
                    slo.observe(interval.canary);
                }
                Some(interval)
            }
            Measurement::Value { at, value } => {
                let counted_to = self.counted_to.filter(|counted| *counted <= counting.now);
                if counted_to.is_some_and(|counted| *at <= counted) {
                    return None;
                }
                self.answered();
                self.counted_to = Some(*at);
                if *at >= counting.not_before {
                    let threshold = metric.threshold()?;
                    let says = self.threshold.observe(&threshold, Some(*value));
                    self.value_says = Some(says);
                }
                None
            }
            Measurement::Nothing | Measurement::NotANumber => {
                self.answered();
                None
            }
            Measurement::Slow => self.failed("no answer in time"),
            Measurement::Down(message) => self.failed(message),
        }
    }

    /// Returns the moment up to which requests were counted; the next window begins there.
    pub fn counted_to(&self) -> Option<Time> {
        self.counted_to
    }

    /// Lets time pass without an answer.
    pub(crate) fn wait(&mut self, seconds: u64) {
        self.silent_seconds = self.silent_seconds.saturating_add(seconds);
    }

    /// Begins a new part of the evidence, so that a later regression is found by itself.
    pub(crate) fn begin_part(&mut self) {
        self.evidence.begin_part();
    }

    fn answered(&mut self) {
        self.silent_seconds = 0;
        self.has_answered = true;
        self.error = None;
    }

    fn failed(&mut self, message: &str) -> Option<Interval> {
        self.error = Some(message.chars().take(LONGEST_ERROR).collect());
        None
    }

    /// Returns what the metric says now.
    pub(crate) fn verdict(
        &self,
        metric: &Metric,
        settings: &Settings,
        interval_seconds: u64,
    ) -> MetricVerdict {
        let is_blind = !self.has_answered
            || self.silent_seconds > interval_seconds.max(1).saturating_mul(SILENT_INTERVALS);
        if metric.threshold().is_some() {
            return match self.value_says {
                Some(Verdict::Rollback) => MetricVerdict::Bad,
                _ if is_blind => MetricVerdict::Blind,
                Some(Verdict::Promote) => MetricVerdict::Good,
                _ => MetricVerdict::Open,
            };
        }
        let explanation = self.evidence.explain(settings);
        let is_broken = self
            .slo
            .is_some_and(|slo| slo.is_broken(settings.false_rollback_rate));
        let is_material = explanation.excess >= explanation.least_excess;
        let is_doubtful = explanation.ln_rollback >= DOUBT.ln()
            || (is_material && self.evidence.ln_newest() >= DOUBT.ln());
        match explanation.verdict {
            Verdict::Rollback => MetricVerdict::Bad,
            _ if is_broken => MetricVerdict::Bad,
            _ if is_blind => MetricVerdict::Blind,
            // What was proven may have changed since; a difference that does no harm is no reason for doubt.
            Verdict::Promote if is_doubtful && is_material => MetricVerdict::Doubtful,
            Verdict::Promote => MetricVerdict::Good,
            Verdict::Hold if is_doubtful => MetricVerdict::Doubtful,
            Verdict::Hold => MetricVerdict::Open,
        }
    }

    /// Returns whether nothing at all speaks against the new revision.
    pub(crate) fn is_not_worse(&self, settings: &Settings) -> bool {
        let explanation = self.evidence.explain(settings);
        explanation.ln_rollback < 0.0_f64.max(f64::EPSILON)
            && explanation.excess < explanation.least_excess
    }

    /// Returns all requests of the new revision.
    pub(crate) fn requests(&self) -> u64 {
        self.evidence.canary().total
    }

    /// Returns the pod without which nothing would speak against the new revision.
    pub(crate) fn culprit(&self) -> Option<&str> {
        self.pods.culprit()
    }

    /// Returns why the metric does not answer.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns what was measured.
    pub(crate) fn summary(&self, name: &str, settings: &Settings) -> MetricSummary {
        MetricSummary {
            counted_by: self.counted_by.clone(),
            ..MetricSummary::new(
                name,
                self.evidence.canary(),
                self.evidence.stable(),
                &self.evidence.explain(settings),
                self.evidence.excluded_odds(settings),
            )
        }
    }
}

/// The longest text of an error that is kept.
const LONGEST_ERROR: usize = 256;

/// Returns counts that can be those of requests.
fn valid(counts: Counts) -> Option<Counts> {
    Counts::new(counts.total, counts.bad).ok()
}
