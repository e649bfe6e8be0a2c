//! Time, counted only while somebody watched.
//!
//! How long a step lasted, or pods were not ready, is a sum of short times between two looks. A long gap, because the
//! operator was away or the clock was set, counts as a short one: nobody saw what happened in it. A clock that goes back
//! takes nothing away.

use super::Pass;
use crate::phase::{HoldReason, Phase};

/// The longest time between two looks that counts whole.
const LONGEST_GAP: u64 = 60;

/// The same, in intervals of the analysis.
const LONGEST_GAP_INTERVALS: u64 = 6;

/// The evidence begins a new part after so many seconds.
const PART: u64 = 600;

impl Pass<'_> {
    /// Counts the time since the last look, at most once in an interval, so that looks in between write nothing.
    pub(super) fn count_time(&mut self) {
        self.forget_moments_to_come();
        let is_ready = self.is_ready_for_phase();
        let is_waiting_for_people = self.status.hold.as_ref().is_some_and(|hold| {
            matches!(
                hold.reason,
                HoldReason::Paused | HoldReason::Manual | HoldReason::Gate
            )
        });
        let phase = self.status.phase;
        let now = self.now;
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        let interval = canary.plan.analysis.interval.seconds().max(1);
        let gap = now.since(canary.ticked_at);
        if gap < interval {
            return;
        }
        let passed = gap.min(LONGEST_GAP.max(interval.saturating_mul(LONGEST_GAP_INTERVALS)));
        canary.ticked_at = now;
        canary.step_seconds += passed;
        canary.part_seconds += passed;
        canary.unready_seconds = if is_ready {
            0
        } else {
            canary.unready_seconds + passed
        };
        if canary.is_routed && !is_waiting_for_people && phase != Phase::Soaking {
            canary.run_seconds += passed;
        }
        for state in canary.metrics.values_mut() {
            state.wait(passed);
        }
        if canary.part_seconds >= PART {
            canary.begin_part();
        }
    }

    /// A moment that was written down cannot be later than now, and none that is waited for later than it was set to.
    /// After the clock went back, some would be.
    fn forget_moments_to_come(&mut self) {
        let now = self.now;
        let window = self.spec.strategy.rollback_window;
        if let Some(until) = &mut self.status.keep_previous_until {
            *until = (*until).min(now.after(window));
        }
        let drain = self.drain();
        for until in [&mut self.status.busy_until.a, &mut self.status.busy_until.b] {
            *until = until.map(|until| until.min(now.after(drain)));
        }
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.ticked_at = canary.ticked_at.min(now);
            canary.routes_changed_at = canary.routes_changed_at.min(now);
        }
    }
}
