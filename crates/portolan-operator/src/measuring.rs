//! Windows of measurement: each begins where the one before ended, and none while the routes change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_rollout::{Canary, Measurement, Metric, Slot, Span, Status, Time};

use crate::measure::{Question, QuestionArm};
use crate::memory::lock;
use crate::observe::Look;

/// Proxies take a moment to learn of new routes; requests of that time are not counted.
const ROUTES_SPREAD: Span = Span::from_seconds(1);

/// The last scrapes take a moment to arrive.
const SCRAPES_ARRIVE: i64 = 1;

impl Look<'_> {
    /// Measures every metric whose interval is over, beside the look.
    pub(crate) fn start_measuring(&self, status: &Status, now: Time) {
        let Some(canary) = status.canary.as_deref().filter(|canary| canary.is_routed) else {
            return;
        };
        let due = self.due(canary, now);
        {
            let mut memo = lock(self.memo);
            let interval = Duration::from_secs(canary.plan.analysis.interval.seconds().max(1));
            // A server that refuses at once is not asked again at once.
            let is_too_soon = memo
                .measured_at
                .is_some_and(|at| at.elapsed() < interval / 2);
            if due.is_empty() || memo.is_measuring || is_too_soon {
                return;
            }
            memo.is_measuring = true;
        }
        let ctx = Arc::clone(self.shared);
        let key = self.rollout.key.clone();
        let memo = ctx.memory.of(&key);
        self.ctx.start(async move {
            for (metric, question) in due {
                let measurement = ctx.measure.measure(&metric, &question).await;
                let Some(measurement) = measurement else {
                    continue;
                };
                let mut memo = lock(&memo);
                if !matches!(
                    measurement,
                    Measurement::Counts { .. } | Measurement::Value { .. }
                ) {
                    // A window with a hole stays one, however often it is asked for.
                    memo.uncounted.insert(metric.name.clone(), question.to);
                }
                memo.measured.insert(metric.name, measurement);
            }
            {
                let mut memo = lock(&memo);
                memo.is_measuring = false;
                memo.measured_at = Some(Instant::now());
            }
            ctx.wake(&key);
        });
    }

    fn due(&self, canary: &Canary, now: Time) -> Vec<(Metric, Question)> {
        let interval = canary.plan.analysis.interval.seconds().max(1);
        let to = Time::from_unix(now.unix() - SCRAPES_ARRIVE);
        let metrics = canary.plan.analysis.metrics_or_default();
        let mut due = Vec::new();
        for metric in metrics {
            let state = canary.metrics.get(&metric.name);
            let counted = state.and_then(portolan_rollout::MetricState::counted_to);
            // After a step of the clock, a moment that is still to come does not bind.
            let counted = counted.filter(|counted| *counted <= now);
            let begun = canary.routes_changed_at.after(ROUTES_SPREAD);
            let uncounted = lock(self.memo).uncounted.get(&metric.name).copied();
            let uncounted = uncounted.filter(|uncounted| *uncounted <= now);
            let ends = [counted, uncounted].into_iter().flatten();
            let from = ends.fold(begun, Time::max);
            if to.since(from) >= interval {
                due.push((metric, self.question(canary, from, to)));
            }
        }
        due
    }

    fn question(&self, canary: &Canary, from: Time, to: Time) -> Question {
        let other = canary.slot.other();
        let planned = self
            .status
            .and_then(|status| status.slots.get(other).as_ref());
        let stable = planned.map_or("", |plan| plan.revision.as_str());
        Question {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            canary: self.arm(canary.slot, canary.revision.as_str(), from),
            stable: self.arm(other, stable, from),
            from,
            to,
            warm_up_seconds: canary.plan.analysis.warmup.seconds(),
        }
    }

    fn arm(&self, slot: Slot, revision: &str, from: Time) -> QuestionArm {
        QuestionArm {
            slot: self.app().slot_name(slot),
            revision: revision.to_owned(),
            pod_ages: self.pod_ages(slot, from.unix()),
        }
    }
}
