//! How much more likely an interval is under one odds ratio than under another.
//!
//! Of the `m` bad requests that both arms had together, the number that fell to the canary has Fisher's noncentral
//! hypergeometric distribution. Its only parameter is the odds ratio of the arms; the error rate of the interval is
//! conditioned away.
//!
//! The normalising sum runs over every possible number. Nearly all of it lies within a few standard deviations of the
//! most likely one, so each sum starts there and goes outward until what is left cannot matter.

use crate::counts::Interval;

/// Terms smaller than this share of the sum are left out: the rest of a series that falls faster than geometrically.
const NEGLIGIBLE: f64 = 1e-18;

/// Up to so many steps the weights of two numbers are compared by walking from one to the other, which is exact to the
/// last digits; beyond it by logarithms of factorials.
const WALK: u64 = 20_000;

/// The distribution of the canary's bad requests in one interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BadOfCanary {
    canary: u64,
    stable: u64,
    bad: u64,
    lowest: u64,
    highest: u64,
    seen: u64,
}

impl BadOfCanary {
    /// Returns the distribution; `None` when only one number is possible, which says nothing.
    pub(crate) fn new(interval: &Interval) -> Option<Self> {
        if !interval.is_evidence() {
            return None;
        }
        let (canary, stable) = (interval.canary.total, interval.stable.total);
        let bad = interval.canary.bad + interval.stable.bad;
        Some(Self {
            canary,
            stable,
            bad,
            lowest: bad.saturating_sub(stable),
            highest: canary.min(bad),
            seen: interval.canary.bad,
        })
    }

    /// Returns the natural logarithm of how much more likely the interval is under odds `odds` than under `reference`.
    pub(crate) fn ln_ratio(&self, odds: f64, reference: f64) -> f64 {
        let (mode, sum) = self.normaliser(odds);
        let (reference_mode, reference_sum) = self.normaliser(reference);
        let seen = self.seen as f64;
        // ln Z(ψ) = ln w(mode) + mode·ln ψ + ln sum, for each of the two; the weights are compared with each other.
        let difference = self.ln_weight_ratio(mode, reference_mode) + mode as f64 * odds.ln()
            - reference_mode as f64 * reference.ln()
            + (sum / reference_sum).ln();
        seen * (odds / reference).ln() - difference
    }

    /// Returns the most likely number under these odds, and the sum of all weights as a multiple of its weight.
    fn normaliser(&self, odds: f64) -> (u64, f64) {
        let mode = self.mode(odds);
        let mut sum = 1.0;
        let (mut term, mut at) = (1.0, mode);
        while at < self.highest {
            term *= self.weight_step(at) * odds;
            sum += term;
            at += 1;
            if term < sum * NEGLIGIBLE {
                break;
            }
        }
        (term, at) = (1.0, mode);
        while at > self.lowest {
            at -= 1;
            term /= self.weight_step(at) * odds;
            sum += term;
            if term < sum * NEGLIGIBLE {
                break;
            }
        }
        (mode, sum)
    }

    /// Returns the weight of `number + 1` as a multiple of that of `number`, without the odds.
    fn weight_step(&self, number: u64) -> f64 {
        let to_canary = (self.canary - number) as f64 * (self.bad - number) as f64;
        let good_of_stable = (self.stable + number + 1 - self.bad) as f64;
        to_canary / ((number + 1) as f64 * good_of_stable)
    }

    /// Returns the most likely number, or one beside it: where the weights stop growing.
    fn mode(&self, odds: f64) -> u64 {
        let (canary, stable, bad) = (self.canary as f64, self.stable as f64, self.bad as f64);
        let a = odds - 1.0;
        let b = bad - stable - (canary + bad + 2.0) * odds;
        let c = (canary + 1.0) * (bad + 1.0) * odds;
        // The form of the root that stays stable when the odds are near one.
        let root = -2.0 * c / (b - (b * b - 4.0 * a * c).max(0.0).sqrt());
        (root.max(0.0) as u64).clamp(self.lowest, self.highest)
    }

    /// Returns the logarithm of the weight of `number` as a multiple of that of `other`.
    fn ln_weight_ratio(&self, number: u64, other: u64) -> f64 {
        let (low, high) = (number.min(other), number.max(other));
        let upward: f64 = if high - low <= WALK {
            (low..high).map(|at| self.weight_step(at).ln()).sum()
        } else {
            self.ln_weight(high) - self.ln_weight(low)
        };
        if number >= other { upward } else { -upward }
    }

    fn ln_weight(&self, number: u64) -> f64 {
        ln_choose(self.canary, number) + ln_choose(self.stable, self.bad - number)
    }
}

fn ln_choose(all: u64, chosen: u64) -> f64 {
    let ln_factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
    ln_factorial(all) - ln_factorial(chosen) - ln_factorial(all - chosen)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counts::Counts;

    fn interval(canary: (u64, u64), stable: (u64, u64)) -> Interval {
        let counts = |(total, bad)| Counts { total, bad };
        Interval {
            canary: counts(canary),
            stable: counts(stable),
        }
    }

    /// The definition, term by term.
    fn by_definition(interval: &Interval, odds: f64, reference: f64) -> f64 {
        let all = BadOfCanary::new(interval).expect("evidence");
        let ln_probability = |odds: f64| {
            let ln_terms: Vec<f64> = (all.lowest..=all.highest)
                .map(|y| all.ln_weight(y) + y as f64 * odds.ln())
                .collect();
            let most = ln_terms.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = ln_terms.iter().map(|ln| (ln - most).exp()).sum();
            all.ln_weight(all.seen) + all.seen as f64 * odds.ln() - most - sum.ln()
        };
        ln_probability(odds) - ln_probability(reference)
    }

    #[test]
    fn two_coins_by_hand() {
        // One request each, one of the two is bad: it is the canary's with probability odds / (1 + odds).
        let canary_bad = BadOfCanary::new(&interval((1, 1), (1, 0))).expect("evidence");
        let expected = (3.0_f64 / 4.0 / 0.5).ln();
        assert!((canary_bad.ln_ratio(3.0, 1.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn intervals_without_a_difference_to_see_say_nothing() {
        for (canary, stable) in [
            ((0, 0), (9, 3)),
            ((9, 3), (0, 0)),
            ((9, 0), (9, 0)),
            ((9, 9), (9, 9)),
        ] {
            assert!(BadOfCanary::new(&interval(canary, stable)).is_none());
        }
    }

    #[test]
    fn the_largest_counts_are_answered() {
        let most = crate::counts::MOST;
        let all = BadOfCanary::new(&interval((most, most / 2), (most, most / 3)));
        let ratio = all.expect("evidence").ln_ratio(30.0, 1.25);
        assert!(ratio.is_finite());
    }

    proptest! {
        #[test]
        fn the_short_sum_is_the_whole_sum(
            canary in 1u64..400, stable in 1u64..2_000,
            canary_bad in 0.0..1.0f64, stable_bad in 0.0..1.0f64,
            odds in 0.1..40.0f64, reference in 0.1..40.0f64,
        ) {
            let bad = |total: u64, share: f64| (total as f64 * share * share * share) as u64;
            let interval = interval((canary, bad(canary, canary_bad)), (stable, bad(stable, stable_bad)));
            prop_assume!(interval.is_evidence());
            let all = BadOfCanary::new(&interval).expect("evidence");
            let (short, whole) = (all.ln_ratio(odds, reference), by_definition(&interval, odds, reference));
            prop_assert!((short - whole).abs() < 1e-8 * (1.0 + whole.abs()), "{short} {whole}");
        }
    }
}
