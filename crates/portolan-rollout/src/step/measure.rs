//! Takes what metrics answered into the evidence.

use portolan_judge::Interval;

use super::Pass;
use crate::metric_state::Counting;
use crate::observed::Measurement;
use crate::phase::Phase;
use crate::plan::Plan;
use crate::spec::StrategyType;
use crate::status::Comparison;

/// From so many requests on, it can be told whether they are split as the routes say.
const ENOUGH_TO_VERIFY: u64 = 200;

impl Pass<'_> {
    pub(super) fn measure(&mut self) {
        let phase = self.status.phase;
        let is_judged = phase.is_stepping() || matches!(phase, Phase::Promoting | Phase::Soaking);
        let is_compared = self.is_compared();
        self.status.comparison = self.status.canary.as_ref().map(|_| {
            if is_compared {
                Comparison::OldRevision
            } else {
                Comparison::None
            }
        });
        if !is_judged {
            return;
        }
        self.wait_for_routes();
        let weight = self.intended_weight();
        let now = self.now;
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        let counting = Counting {
            not_before: canary.routes_changed_at,
            now,
            warm_up_seconds: canary.plan.analysis.warmup.seconds(),
            is_compared,
        };
        let mut requests: Option<u64> = None;
        for metric in canary.plan.analysis.metrics_or_default() {
            let Some(measurement) = self.observed.metrics.get(&metric.name) else {
                continue;
            };
            let noise = self.status.noise.entry(metric.name.clone()).or_default();
            let analysis = &canary.plan.analysis;
            let settings = analysis.settings(&metric, canary.attempt, noise.variance());
            let Some(state) = canary.metrics.get_mut(&metric.name) else {
                continue;
            };
            let Some(interval) = state.take(&metric, &settings, measurement, counting) else {
                continue;
            };
            if let Measurement::Counts {
                same_revision: Some(same),
                ..
            } = measurement
            {
                noise.observe(same);
            }
            let seen = interval.canary.total;
            requests = Some(requests.map_or(seen, |fewest| fewest.min(seen)));
            // Also requests to fresh pods are split by the routes, though they do not count for anything else.
            let split = match measurement {
                Measurement::Counts { canary, stable, .. } => Interval {
                    canary: canary.counts,
                    stable: stable.counts,
                },
                _ => interval,
            };
            if let Some(is_split) = is_split_as(weight, &split, &canary.plan) {
                canary.is_verified = Some(is_split);
            }
        }
        canary.step_requests = canary.step_requests.saturating_add(requests.unwrap_or(0));
    }

    /// While the routes differ from what they are to say, requests are counted for nothing.
    fn wait_for_routes(&mut self) {
        let is_in_force =
            self.observed.traffic == self.status.traffic && self.observed.routes_accepted;
        let now = self.now;
        if let Some(canary) = self.status.canary.as_deref_mut().filter(|_| !is_in_force) {
            canary.routes_changed_at = now;
        }
    }

    /// Returns whether both revisions get requests of the same kind.
    pub(super) fn is_compared(&self) -> bool {
        let Some(canary) = self.status.canary.as_deref() else {
            return false;
        };
        let Some(traffic) = self.status.traffic else {
            return false;
        };
        let is_mirrored = traffic
            .mirror
            .is_some_and(|mirror| mirror.slot == canary.slot);
        let is_split = traffic.shares.a > 0 && traffic.shares.b > 0;
        is_mirrored || (is_split && canary.plan.strategy.strategy_type == StrategyType::Canary)
    }
}

/// Returns whether requests are split as the routes say; `None` if that cannot be told.
fn is_split_as(weight: u8, interval: &Interval, plan: &Plan) -> Option<bool> {
    let strategy = &plan.strategy;
    let total = interval.canary.total + interval.stable.total;
    let is_by_weight =
        weight > 0 && strategy.matches.is_empty() && strategy.sticky_sessions.is_none();
    if !is_by_weight || total < ENOUGH_TO_VERIFY {
        return None;
    }
    let share = 100.0 * interval.canary.total as f64 / total as f64;
    let weight = f64::from(weight);
    // Half of the weight and a few percent: proxies balance roughly, and retries count twice.
    Some((share - weight).abs() <= weight.min(100.0 - weight) / 2.0 + 4.0)
}
