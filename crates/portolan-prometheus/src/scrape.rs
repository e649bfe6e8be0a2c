//! What samples tell about the scrapes that made them.

use std::collections::{BTreeMap, BTreeSet};

use crate::series::{Series, Target};
use crate::window::{Increase, Window};

/// When each target was scraped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scrapes(BTreeMap<Target, BTreeSet<i64>>);

/// A sample holds for so many halves of the time between two scrapes: one scrape may be late, two are missed.
const HALVES: i64 = 5;

impl Scrapes {
    /// Returns when the targets of some series were scraped.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Self {
        let mut scrapes = Self::default();
        for series in series {
            let moments = series.samples.iter().map(|sample| sample.at);
            scrapes.add(series, moments);
        }
        scrapes
    }

    /// Adds scrapes that `up` tells of. A scrape that failed tells nothing.
    pub fn add_up(&mut self, up: &[Series]) {
        for series in up {
            let good = series.samples.iter().filter(|sample| sample.value == 1.0);
            self.add(series, good.map(|sample| sample.at));
        }
    }

    fn add(&mut self, series: &Series, moments: impl Iterator<Item = i64>) {
        self.0.entry(series.target()).or_default().extend(moments);
    }

    /// Returns whether the target of a series was scraped after the first moment and before the second.
    pub(crate) fn has_between(&self, series: &Series, after: i64, before: i64) -> bool {
        let moments = self.0.get(&series.target());
        after < before
            && moments.is_some_and(|moments| moments.range(after + 1..before).next().is_some())
    }

    /// Returns whether anything was scraped shortly before the end of a window.
    pub(crate) fn are_fresh(&self, window: &Window) -> bool {
        let since = window.to.saturating_sub(window.stale_after);
        let mut all = self.0.values();
        since <= window.to && all.any(|moments| moments.range(since..=window.to).next().is_some())
    }
}

/// Returns the time between two scrapes, in milliseconds; `None` if no series has two samples.
pub fn scrape_interval<'a>(series: impl IntoIterator<Item = &'a Series>) -> Option<i64> {
    let mut gaps: Vec<i64> = Vec::new();
    for series in series {
        let pairs = series.samples.windows(2);
        gaps.extend(pairs.map(|pair| pair[1].at - pair[0].at));
    }
    if gaps.is_empty() {
        return None;
    }
    let middle = gaps.len() / 2;
    Some(*gaps.select_nth_unstable(middle).1)
}

/// Returns how long a sample holds, for this time between two scrapes.
pub(crate) fn stale_after(scrape_interval: i64) -> i64 {
    scrape_interval.saturating_mul(HALVES) / 2
}

/// Returns the targets that cannot be counted in a window: they are new and may have counted before, or their scrapes
/// were missed.
pub(crate) fn unknown_targets<'a>(
    counters: impl IntoIterator<Item = &'a Series>,
    scrapes: &Scrapes,
    window: &Window,
) -> BTreeSet<Target> {
    let unknown = counters
        .into_iter()
        .filter(|counter| window.increase(counter, scrapes) == Increase::Unknown);
    unknown.map(Series::target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Sample;

    fn series(samples: &[(i64, f64)]) -> Series {
        let samples = samples.iter().map(|(at, value)| Sample {
            at: *at,
            value: *value,
        });
        Series {
            samples: samples.collect(),
            ..Series::default()
        }
    }

    #[test]
    fn the_time_between_scrapes_is_that_between_most_samples() {
        let many = [(0, 0.0), (15_000, 0.0), (30_000, 0.0), (75_000, 0.0)];
        let all = [series(&many), series(&[(7, 0.0)])];
        assert_eq!(scrape_interval(&all), Some(15_000));
        assert_eq!(scrape_interval(&all[1..]), None);
    }

    #[test]
    fn a_failed_scrape_tells_nothing() {
        let mut scrapes = Scrapes::default();
        let up = series(&[(10, 1.0), (20, 0.0)]);
        scrapes.add_up(std::slice::from_ref(&up));
        assert!(scrapes.has_between(&up, 5, 15));
        assert!(!scrapes.has_between(&up, 10, 30));
    }
}
