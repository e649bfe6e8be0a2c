//! What the evidence says about the new revision.

use portolan_judge::Settings;

use super::{Cause, Pass};
use crate::history::{Actor, MetricSummary};
use crate::metric_state::{MetricState, MetricVerdict};
use crate::phase::Phase;
use crate::spec::Metric;
use crate::status::Canary;

/// A policy that promotes what nothing speaks against needs so many requests for that to mean anything.
const ENOUGH_FOR_POLICY: u64 = 500;

impl Pass<'_> {
    /// Returns the worst that any metric says.
    pub(super) fn verdict(&self) -> MetricVerdict {
        let verdicts = self.judged().map(|judged| judged.verdict());
        verdicts.min().unwrap_or(MetricVerdict::Blind)
    }

    /// Returns why the new revision is worse, with numbers, if it is.
    pub(super) fn bad_metric(&self) -> Option<String> {
        let bad = self
            .judged()
            .find(|judged| judged.verdict() == MetricVerdict::Bad)?;
        let name = &bad.metric.name;
        if bad.metric.threshold().is_some() {
            return Some(format!("{name} was out of its range too often in a row"));
        }
        let summary = bad.state.summary(name, &bad.settings);
        let (canary, stable) = (summary.canary, summary.stable);
        Some(format!(
            "{name}: {} of {} requests were bad, {} of {} of the old revision; evidence {:.0}",
            canary.bad,
            canary.total,
            stable.bad,
            stable.total,
            summary.ln_rollback.min(20.0).exp(),
        ))
    }

    /// Gives the new revision a second chance if all that speaks against it comes from one pod: back to the first step,
    /// with that pod replaced and no evidence. Once only.
    pub(super) fn replaces_pod(&mut self) -> bool {
        if !self.status.phase.is_stepping() {
            return false;
        }
        let Some(pod) = self.culprit() else {
            return false;
        };
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return false;
        };
        if canary.replaced_pod.is_some() {
            return false;
        }
        canary.replaced_pod = Some(pod.clone());
        canary.step = 0;
        for metric in canary.plan.analysis.metrics_or_default() {
            let settings = canary.plan.analysis.settings(&metric, canary.attempt, 0.0);
            let fresh = MetricState::new(&metric, &settings);
            canary.metrics.insert(metric.name, fresh);
        }
        self.begin_step();
        self.enter(
            Phase::Shifting,
            None,
            Cause {
                reason: "OnePod",
                message: format!(
                    "only pod {pod} speaks against it; it is replaced, and judging starts again"
                ),
                actor: Actor::Operator,
            },
        );
        true
    }

    /// Returns the pod without which no metric would speak against the new revision.
    fn culprit(&self) -> Option<String> {
        let mut bad = self
            .judged()
            .filter(|judged| judged.verdict() == MetricVerdict::Bad);
        bad.find_map(|judged| judged.state.culprit().map(str::to_owned))
    }

    /// Returns whether nothing at all speaks against the new revision, after enough requests.
    pub(super) fn nothing_speaks_against_it(&self) -> bool {
        let is_seen = self.fewest_requests() >= ENOUGH_FOR_POLICY;
        is_seen
            && self
                .judged()
                .all(|judged| judged.state.is_not_worse(&judged.settings))
    }

    /// Returns the requests of the metric that saw the fewest; the most possible if no metric counts any.
    pub(super) fn fewest_requests(&self) -> u64 {
        let counting = self
            .judged()
            .filter(|judged| judged.metric.threshold().is_none());
        let requests = counting.map(|judged| judged.state.requests());
        requests.min().unwrap_or(u64::MAX)
    }

    /// Returns whether any metric counts requests.
    pub(super) fn counts_requests(&self) -> bool {
        self.judged()
            .any(|judged| judged.metric.threshold().is_none())
    }

    /// Says which metrics do not answer.
    pub(super) fn silence(&self) -> String {
        let silent = self
            .judged()
            .filter(|judged| judged.verdict() == MetricVerdict::Blind);
        let silent: Vec<String> = silent
            .map(|judged| match judged.state.error() {
                Some(error) => format!("{}: {error}", judged.metric.name),
                None => format!("{}: no answer", judged.metric.name),
            })
            .collect();
        format!("metrics cannot be read ({})", silent.join("; "))
    }

    /// Says which odds are excluded, to be put behind a sentence.
    pub(super) fn excluded(&self) -> String {
        let excluded = self
            .judged()
            .map(|judged| judged.state.summary("", &judged.settings).excluded_odds);
        let largest = excluded
            .reduce(|one, other| Some(one?.max(other?)))
            .flatten();
        match largest {
            Some(odds) => format!("; odds of {odds} and more are excluded"),
            None => "; not even odds of 30 are excluded".to_owned(),
        }
    }

    /// Returns what was measured so far.
    pub(super) fn evidence(&self) -> Vec<MetricSummary> {
        let counting = self
            .judged()
            .filter(|judged| judged.metric.threshold().is_none());
        counting
            .map(|judged| judged.state.summary(&judged.metric.name, &judged.settings))
            .collect()
    }

    /// Every metric of the running canary.
    fn judged(&self) -> impl Iterator<Item = Judged<'_>> {
        let canary = self.status.canary.as_deref();
        canary.into_iter().flat_map(|canary| {
            let metrics = canary.plan.analysis.metrics_or_default().into_iter();
            metrics.filter_map(|metric| self.judge(canary, metric))
        })
    }

    fn judge<'b>(&self, canary: &'b Canary, metric: Metric) -> Option<Judged<'b>> {
        let noise = self.status.noise.get(&metric.name);
        let noise = noise.copied().unwrap_or_default().variance();
        let settings = canary
            .plan
            .analysis
            .settings(&metric, canary.attempt, noise);
        Some(Judged {
            state: canary.metrics.get(&metric.name)?,
            interval_seconds: canary.plan.analysis.interval.seconds(),
            metric,
            settings,
        })
    }
}

/// A metric with its state.
struct Judged<'a> {
    metric: Metric,
    state: &'a MetricState,
    settings: Settings,
    interval_seconds: u64,
}

impl Judged<'_> {
    fn verdict(&self) -> MetricVerdict {
        self.state
            .verdict(&self.metric, &self.settings, self.interval_seconds)
    }
}
