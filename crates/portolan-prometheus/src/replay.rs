//! A past release judged again, by what a server has kept of it.

use portolan_judge::{Corrections, Counts, Judgement, RowsError, Settings, judge_rows};
use portolan_rollout::{Analysis, Measurement, Metric, Span, Time};

use crate::{Arms, Prometheus, Question, measure};

/// The most intervals that one replay reads.
pub const MAX_REPLAYED_INTERVALS: u64 = 10_000;

/// What one metric says of a past release.
#[derive(Debug)]
pub struct Replayed {
    /// The metric.
    pub metric: String,
    /// What would have been decided.
    pub judgement: Judgement,
    /// How many intervals could not be read: the judgement knows nothing of them.
    pub unread: usize,
}

/// Why nothing can be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The last moment does not come after the first.
    #[error("the last moment does not come after the first")]
    NoTime,
    /// Too much time lies between the two moments.
    #[error(
        "{intervals} intervals lie between the two moments; the most is {MAX_REPLAYED_INTERVALS}"
    )]
    TooLong {
        /// How many.
        intervals: u64,
    },
    /// The settings of the analysis cannot be judged by.
    #[error(transparent)]
    Rows(#[from] RowsError),
}

/// Reads every metric that counts requests interval by interval, and judges it as a release of its own.
///
/// Metrics that are plain numbers are left out: they have no counts to be judged by.
pub async fn replay(
    prometheus: &Prometheus,
    analysis: &Analysis,
    arms: &Arms,
    (from, to): (Time, Time),
) -> Result<Vec<Replayed>, ReplayError> {
    if to <= from {
        return Err(ReplayError::NoTime);
    }
    let interval = analysis.interval.seconds().max(1);
    let intervals = to.since(from) / interval;
    if intervals > MAX_REPLAYED_INTERVALS {
        return Err(ReplayError::TooLong { intervals });
    }
    let mut replayed = Vec::new();
    for metric in analysis.metrics_or_default() {
        if metric.threshold().is_some() {
            continue;
        }
        let (rows, unread) = rows(prometheus, &metric, arms, (from, to), interval).await;
        replayed.push(Replayed {
            judgement: judge_rows(&rows, &settings(analysis, &metric))?,
            metric: metric.name,
            unread,
        });
    }
    Ok(replayed)
}

/// The counts of every interval as a table, and how many intervals could not be read.
async fn rows(
    prometheus: &Prometheus,
    metric: &Metric,
    arms: &Arms,
    (from, to): (Time, Time),
    interval: u64,
) -> (String, usize) {
    let mut rows = "time,canary_total,canary_bad,stable_total,stable_bad\n".to_owned();
    let (mut unread, mut begin, mut end) = (0, from, from);
    while end < to {
        end = end.after(Span::from_seconds(interval)).min(to);
        let question = Question {
            arms,
            from: begin,
            to: end,
            warm_up_seconds: 0,
        };
        let measured = measure(prometheus, metric, question).await;
        match &measured.measurement {
            Some(Measurement::Counts { canary, stable, .. }) => {
                rows.push_str(&row(end, canary.counts, stable.counts));
            }
            // Too few scrapes so far: the next interval has them all.
            None => {}
            Some(_) => unread += 1,
        }
        begin = measured.next_from;
    }
    (rows, unread)
}

fn row(end: Time, canary: Counts, stable: Counts) -> String {
    let (end, canary_total, stable_total) = (end.unix(), canary.total, stable.total);
    let (canary_bad, stable_bad) = (canary.bad, stable.bad);
    format!("{end},{canary_total},{canary_bad},{stable_total},{stable_bad}\n")
}

fn settings(analysis: &Analysis, metric: &Metric) -> Settings {
    let settings = analysis.settings(metric, 1, Corrections::default().noise);
    Settings {
        attempt: None,
        ..settings
    }
}
