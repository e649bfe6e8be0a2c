//! How much a counter grew between two moments.

use crate::scrape::Scrapes;
use crate::series::{Sample, Series};

/// The time between two moments, in milliseconds since the start of 1970. Windows that follow each other count every
/// request once: a window begins with the last sample at or before its start, which ended the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub from: i64,
    /// The second moment.
    pub to: i64,
    /// A sample that is older than this at a moment says nothing about it: scrapes were missed, or the target is gone.
    pub stale_after: i64,
}

/// How much a counter grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Increase {
    /// By so much.
    By(u64),
    /// It was not there at all.
    Absent,
    /// It is not known: scrapes were missed at the start, or the series is new and may have counted before.
    Unknown,
}

impl Window {
    /// Returns how much a counter grew. A counter that falls was started again from zero.
    ///
    /// A counter that appears in the window counts from zero only if its target was scraped without it before; otherwise
    /// it may be old.
    pub fn increase(&self, counter: &Series, scrapes: &Scrapes) -> Increase {
        let upto = |moment: i64| {
            let samples = counter.samples.iter();
            samples.take_while(move |sample| sample.at <= moment)
        };
        let inside: Vec<Sample> = upto(self.to)
            .filter(|sample| sample.at > self.from)
            .copied()
            .collect();
        let before = upto(self.from).last().copied();
        let base = match (before, inside.first()) {
            (None, None) => return Increase::Absent,
            // Nothing new: the target is gone, or nobody called and the last value still holds.
            (Some(_), None) => return Increase::By(0),
            (Some(before), Some(_)) if self.from - before.at <= self.stale_after => before.value,
            (None, Some(first)) if self.was_scraped_before(counter, *first, scrapes) => 0.0,
            (_, Some(_)) => return Increase::Unknown,
        };
        let mut grown = 0.0;
        let mut last = base;
        for sample in inside {
            if !sample.value.is_finite() || sample.value < 0.0 {
                return Increase::Unknown;
            }
            grown += if sample.value >= last {
                sample.value - last
            } else {
                sample.value
            };
            last = sample.value;
        }
        Increase::By(grown.round() as u64)
    }

    /// Returns whether the counter's target was scraped shortly before its first sample.
    fn was_scraped_before(&self, counter: &Series, first: Sample, scrapes: &Scrapes) -> bool {
        let since = first.at.saturating_sub(self.stale_after).saturating_sub(1);
        scrapes.has_between(counter, since, first.at)
    }

    /// Returns whether a series has a sample up to the end of the window.
    pub(crate) fn has_sample(&self, series: &Series) -> bool {
        series.samples.iter().any(|sample| sample.at <= self.to)
    }

    /// Returns whether a series has a sample that still holds at the end of the window.
    pub fn is_fresh(&self, series: &Series) -> bool {
        let last = series.samples.iter().rfind(|sample| sample.at <= self.to);
        last.is_some_and(|last| self.to - last.at <= self.stale_after)
    }
}
