//! What a canary goes through, fixed when it starts.
//!
//! Every strategy is a list of steps. A canary by weight has one for each weight, an A/B test one for the requests that
//! match, blue/green one in which nobody but mirrors and testers sees the new revision.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
use crate::spec::{Analysis, Capacity, Gate, Spec, Step, Strategy, StrategyType};
use crate::traffic::{Mirror, Traffic};

/// Strategy, analysis and gates of one canary. A change of the spec changes the next canary, not a running one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plan {
    /// How traffic moves.
    pub strategy: Strategy,
    /// How it is judged.
    pub analysis: Analysis,
    /// Who must agree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

/// Returns the most pods that a rollout of a spec has at once, both revisions together.
pub fn peak_replicas(spec: &Spec) -> u32 {
    let full = spec.wanted_replicas();
    if spec.strategy.capacity == Capacity::Keep {
        return full.saturating_mul(2);
    }
    let plan = Plan {
        strategy: spec.strategy.clone(),
        ..Plan::default()
    };
    // The stable slot is at its smallest when the new revision grows to full size.
    let rest = plan.steps().last().map_or(100, |last| 100 - last.weight);
    full.saturating_add(enough_for(rest, full))
}

/// Pods are asked for a fifth more traffic than a slot gets, because no split is exact.
const HEADROOM_PERCENT: u64 = 120;

/// A slot in use has two pods at least: one alone says as much about its node as about its revision.
const LEAST_PODS: u32 = 2;

/// Returns how many pods a slot needs for a share of the requests in percent, of the pods that all requests need.
pub(crate) fn enough_for(load: u8, full: u32) -> u32 {
    let share = u64::from(full) * u64::from(load) * HEADROOM_PERCENT;
    let enough = u32::try_from(share.div_ceil(100 * 100)).unwrap_or(u32::MAX);
    enough.max(LEAST_PODS).min(full)
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The share of the traffic in percent.
    pub weight: u8,
    /// The share of requests that are copied, in percent.
    pub mirror: u8,
    /// Whether requests that match go to the new revision.
    pub is_matched: bool,
    /// How many seconds it lasts at least.
    pub seconds: u64,
    /// Whether it ends only when a person says so.
    pub is_manual: bool,
    /// How many pods it needs, if the user said so.
    pub replicas: Option<u32>,
}

/// The weights of a canary whose strategy names none.
const DEFAULT_WEIGHTS: [u8; 3] = [5, 20, 50];

impl Plan {
    /// Returns the steps in order; there is always one.
    pub fn steps(&self) -> Vec<PlannedStep> {
        let strategy = &self.strategy;
        let mut steps = Vec::new();
        if strategy.mirror > 0 && strategy.strategy_type != StrategyType::BlueGreen {
            steps.push(PlannedStep {
                mirror: strategy.mirror,
                ..self.step(0)
            });
        }
        match strategy.strategy_type {
            StrategyType::Canary if !strategy.steps.is_empty() => {
                steps.extend(strategy.steps.iter().map(|step| self.written_step(step)));
            }
            StrategyType::Canary => {
                let weights = if strategy.weights.is_empty() {
                    &DEFAULT_WEIGHTS
                } else {
                    strategy.weights.as_slice()
                };
                steps.extend(weights.iter().map(|weight| self.step(*weight)));
            }
            StrategyType::AbTest => steps.push(self.step(0)),
            StrategyType::BlueGreen => steps.push(PlannedStep {
                mirror: strategy.mirror,
                ..self.step(0)
            }),
        }
        steps
    }

    /// Returns a step by its index; the last one if there are fewer.
    pub fn step_at(&self, index: usize) -> PlannedStep {
        let mut steps = self.steps();
        let last = steps.len().saturating_sub(1);
        steps.swap_remove(index.min(last))
    }

    fn step(&self, weight: u8) -> PlannedStep {
        PlannedStep {
            weight: weight.min(100),
            mirror: 0,
            is_matched: !self.strategy.matches.is_empty(),
            seconds: self.strategy.step_interval.seconds(),
            is_manual: false,
            replicas: None,
        }
    }

    fn written_step(&self, step: &Step) -> PlannedStep {
        let planned = self.step(step.weight);
        PlannedStep {
            seconds: step
                .end
                .lasts
                .map_or(planned.seconds, crate::time::Span::seconds),
            is_manual: step.end.pause.is_some(),
            replicas: step.replicas,
            ..planned
        }
    }

    /// Returns the share that the old revision keeps after a promotion, in percent. Zero if nothing is compared.
    pub fn holdback(&self) -> u8 {
        let is_compared = self.strategy.strategy_type == StrategyType::Canary;
        let is_watched = self.strategy.soak.seconds() > 0;
        if is_compared && is_watched {
            self.strategy.holdback.min(50)
        } else {
            0
        }
    }
}

impl PlannedStep {
    /// Returns the traffic of the step, for a canary in this slot.
    pub fn traffic(&self, slot: Slot, is_sticky: bool) -> Traffic {
        Traffic {
            mirror: (self.mirror > 0).then_some(Mirror {
                slot,
                percent: self.mirror,
            }),
            matched: self.is_matched.then_some(slot),
            sticky: (is_sticky && self.weight > 0).then_some(slot),
            ..Traffic::split(slot, self.weight)
        }
    }

    /// Returns the share of the requests that pods must be able to answer, in percent.
    pub fn load(&self) -> u8 {
        self.weight.max(self.mirror)
    }

    /// Returns whether any request can reach the new revision in this step.
    pub fn is_exposed(&self) -> bool {
        self.weight > 0 || self.mirror > 0 || self.is_matched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{RequestMatch, StepEnd};
    use crate::time::Span;

    fn weights(plan: &Plan) -> Vec<(u8, u8)> {
        let steps = plan.steps().into_iter();
        steps.map(|step| (step.weight, step.mirror)).collect()
    }

    #[test]
    fn a_canary_has_a_step_for_each_weight() {
        assert_eq!(weights(&Plan::default()), [(5, 0), (20, 0), (50, 0)]);
        let mut plan = Plan::default();
        plan.strategy.weights = vec![10, 90];
        plan.strategy.mirror = 30;
        assert_eq!(weights(&plan), [(0, 30), (10, 0), (90, 0)]);
    }

    #[test]
    fn written_steps_have_their_own_length() {
        let mut plan = Plan::default();
        let step = |weight, lasts, pause: Option<&str>| Step {
            weight,
            end: StepEnd {
                lasts,
                pause: pause.map(str::to_owned),
            },
            replicas: None,
        };
        plan.strategy.steps = vec![
            step(5, Some(Span::from_seconds(600)), None),
            step(10, None, Some("manual")),
        ];
        let steps = plan.steps();
        assert_eq!((steps[0].seconds, steps[0].is_manual), (600, false));
        assert_eq!((steps[1].seconds, steps[1].is_manual), (60, true));
    }

    #[test]
    fn tests_by_match_and_blue_green_move_no_weight() {
        for strategy_type in [StrategyType::AbTest, StrategyType::BlueGreen] {
            let mut plan = Plan::default();
            plan.strategy.strategy_type = strategy_type;
            plan.strategy.matches = vec![RequestMatch::default()];
            assert_eq!(weights(&plan), [(0, 0)]);
            assert!(plan.step_at(7).is_exposed());
            assert_eq!(plan.holdback(), 0);
        }
    }
}
