//! One pretended release, look by look.

use rand::Rng;
use rand_distr::{Binomial, Distribution, Normal, Poisson};

use super::rule::Rule;
use super::scenario::Scenario;
use crate::counts::{Counts, Interval};
use crate::verdict::Verdict;

/// How a release ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ending {
    pub(super) verdict: Verdict,
    /// The second of the decision; the last one for a release that is held.
    pub(super) seconds: u32,
    /// Bad requests of the canary beyond those that the stable arm would have had.
    pub(super) excess_bad: f64,
}

const FIRST_PERCENT: u32 = 5;
const PERCENT_STEP: u32 = 5;
const LAST_PERCENT: u32 = 50;
const LIMIT_MINUTES: u32 = 60;
const MINUTE: u32 = 60;

/// How far the error rates of one minute are off.
struct Noise {
    shared: f64,
    canary: f64,
    stable: f64,
}

pub(super) fn run(scenario: &Scenario, rule: &Rule, random: &mut impl Rng) -> Ending {
    let mut judge = rule.judge();
    let seconds = rule.interval_seconds();
    let (mut percent, mut is_new_weight) = (FIRST_PERCENT, true);
    let mut excess_bad = 0.0;
    for minute in 0..LIMIT_MINUTES {
        let noise = Noise::draw(scenario, random);
        let mut may_advance = true;
        for look in 0..MINUTE / seconds {
            let begins = minute * MINUTE + look * seconds;
            let interval = requests(scenario, begins, seconds, percent, &noise, random);
            excess_bad += excess(&interval);
            let look = judge.look(&interval, begins, is_new_weight);
            is_new_weight = false;
            may_advance &= look.advances;
            let steps_over = percent == LAST_PERCENT && begins + seconds == (minute + 1) * MINUTE;
            let ends = match look.verdict {
                Verdict::Rollback => true,
                Verdict::Promote => steps_over && may_advance,
                Verdict::Hold => false,
            };
            if ends {
                return Ending {
                    verdict: look.verdict,
                    seconds: begins + seconds,
                    excess_bad,
                };
            }
        }
        if may_advance && percent < LAST_PERCENT {
            percent += PERCENT_STEP;
            is_new_weight = true;
        }
    }
    Ending {
        verdict: Verdict::Hold,
        seconds: LIMIT_MINUTES * MINUTE,
        excess_bad,
    }
}

/// Bad requests of the canary beyond what the stable arm's share of the same interval explains.
fn excess(interval: &Interval) -> f64 {
    let share = interval.stable.bad_share().unwrap_or_default();
    interval.canary.bad as f64 - interval.canary.total as f64 * share
}

/// The requests of an interval at a weight of the canary.
fn requests(
    scenario: &Scenario,
    begins: u32,
    seconds: u32,
    percent: u32,
    noise: &Noise,
    random: &mut impl Rng,
) -> Interval {
    let (begins, seconds) = (f64::from(begins), f64::from(seconds));
    let is_regressed = begins >= f64::from(scenario.canary_bad_from * MINUTE);
    let own = if is_regressed {
        scenario.canary_bad
    } else {
        scenario.stable_bad
    };
    let canary = with_incident(scenario, own, begins + scenario.skew_seconds, seconds);
    let stable = with_incident(scenario, scenario.stable_bad, begins, seconds);
    let requests = scenario.requests_per_second * seconds;
    let weight = f64::from(percent) / 100.0;
    Interval {
        canary: counts(
            requests * weight,
            canary * noise.shared * noise.canary,
            random,
        ),
        stable: counts(
            requests * (1.0 - weight),
            stable * noise.shared * noise.stable,
            random,
        ),
    }
}

/// A share of bad requests, with the part of the window that an incident covers.
fn with_incident(scenario: &Scenario, own: f64, begins: f64, seconds: f64) -> f64 {
    let Some(incident) = scenario.incident else {
        return own;
    };
    let minute = f64::from(MINUTE);
    let from = incident.from * minute;
    let ends = (begins + seconds).min(from + incident.minutes * minute);
    let covered = ((ends - begins.max(from)) / seconds).clamp(0.0, 1.0);
    own * (1.0 - covered) + incident.bad * covered
}

impl Noise {
    fn draw(scenario: &Scenario, random: &mut impl Rng) -> Self {
        Self {
            shared: factor(scenario.shared_noise, random),
            canary: factor(scenario.arm_noise, random),
            stable: factor(scenario.arm_noise, random),
        }
    }
}

/// A factor around one; never negative.
fn factor(noise: f64, random: &mut impl Rng) -> f64 {
    let normal = Normal::new(1.0, noise);
    normal.map_or(1.0, |normal| normal.sample(random).max(0.0))
}

fn counts(expected: f64, bad_share: f64, random: &mut impl Rng) -> Counts {
    let total = Poisson::new(expected).map_or(0.0, |poisson| poisson.sample(random));
    let total = total as u64;
    let bad = Binomial::new(total, bad_share.clamp(0.0, 1.0));
    let bad = bad.map_or(0, |binomial| binomial.sample(random));
    Counts { total, bad }
}
