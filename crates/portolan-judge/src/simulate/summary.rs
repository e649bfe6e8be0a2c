//! What a rule made of many releases.

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;

use super::rule::Rule;
use super::run::{Ending, run};
use super::scenario::Scenario;
use crate::verdict::Verdict;

/// How the runs of one scenario ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// How many releases were pretended.
    pub runs: u32,
    /// How many were rolled back.
    pub rolled_back: u32,
    /// How many were promoted.
    pub promoted: u32,
    /// How many were held until the end.
    pub held: u32,
    /// The median number of minutes of the rollbacks; absent without one.
    pub minutes_to_rollback: Option<f64>,
    /// The median number of minutes to the promotions; absent without one.
    pub minutes_to_promote: Option<f64>,
    /// The mean number of bad requests that the stable arm would not have had.
    pub mean_excess_bad: f64,
}

/// Pretends so many releases. Each has a source of chance of its own, so that more runs only add to fewer.
pub fn simulate(scenario: &Scenario, rule: &Rule, runs: u32, seed: u64) -> Summary {
    let endings: Vec<Ending> = (0..runs)
        .map(|number| {
            let mut random = StdRng::seed_from_u64(seed ^ (u64::from(number) << 32));
            run(scenario, rule, &mut random)
        })
        .collect();
    let of = |verdict: Verdict| {
        endings
            .iter()
            .filter(move |ending| ending.verdict == verdict)
    };
    let count = |verdict| of(verdict).count() as u32;
    let excess: f64 = endings.iter().map(|ending| ending.excess_bad).sum();
    Summary {
        runs,
        rolled_back: count(Verdict::Rollback),
        promoted: count(Verdict::Promote),
        held: count(Verdict::Hold),
        minutes_to_rollback: median_minutes(of(Verdict::Rollback)),
        minutes_to_promote: median_minutes(of(Verdict::Promote)),
        mean_excess_bad: excess / f64::from(runs.max(1)),
    }
}

fn median_minutes<'a>(endings: impl Iterator<Item = &'a Ending>) -> Option<f64> {
    let mut seconds: Vec<u32> = endings.map(|ending| ending.seconds).collect();
    seconds.sort_unstable();
    let median = seconds.get(seconds.len() / 2);
    median.map(|seconds| f64::from(*seconds) / 60.0)
}
