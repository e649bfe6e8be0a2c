//! Slow requests, from the buckets of a histogram.
//!
//! A request is slow if it took longer than a bucket's edge. That is a count. A quantile would be a guess about where in
//! a bucket requests lie.

use portolan_judge::{Arm, Counts};

use crate::arm::add_up;
use crate::scrape::Scrapes;
use crate::series::Series;
use crate::window::Window;

/// The edge that stands for a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// The upper edge of a bucket.
    pub at: f64,
    /// Whether it is the limit itself. If not, requests between the limit and this edge count as fast.
    pub is_exact: bool,
}

/// Returns the requests of a window that took longer than a limit, and the edge that they were counted by: the limit, or
/// the next edge above. `None` if no bucket is there, none lies above the limit but the last, or a count is not known.
pub fn count_slow(
    buckets: &[Series],
    scrapes: &Scrapes,
    limit: f64,
    window: &Window,
) -> Option<(Arm, Edge)> {
    let at = next_edge(buckets, limit)?;
    let with_edge = |wanted: f64| {
        buckets
            .iter()
            .filter(move |bucket| edge_of(bucket) == Some(wanted))
    };
    let all = add_up(with_edge(f64::INFINITY), scrapes, window, |_| false)?;
    let fast = add_up(with_edge(at), scrapes, window, |_| false)?;
    let edge = Edge {
        at,
        is_exact: at == limit,
    };
    Some((slow(all, &fast), edge))
}

/// Returns the least edge at or above a limit; `None` if there is none but the last.
pub(crate) fn next_edge<'a>(
    buckets: impl IntoIterator<Item = &'a Series>,
    limit: f64,
) -> Option<f64> {
    let edges = buckets.into_iter().filter_map(edge_of);
    edges
        .filter(|edge| edge.is_finite() && *edge >= limit)
        .reduce(f64::min)
}

pub(crate) fn edge_of(bucket: &Series) -> Option<f64> {
    match bucket.label("le") {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        text => text.parse().ok().filter(|edge: &f64| edge.is_finite()),
    }
}

/// All requests, with those that are not fast as bad ones.
fn slow(mut all: Arm, fast: &Arm) -> Arm {
    // The buckets of one scrape belong together, but a new bucket may appear between two.
    let without = |all: Counts, fast: u64| Counts {
        bad: all.total.saturating_sub(fast),
        ..all
    };
    all.counts = without(all.counts, fast.counts.total);
    for pod in &mut all.pods {
        let same = fast.pods.iter().find(|fast| fast.name == pod.name);
        pod.counts = without(pod.counts, same.map_or(0, |fast| fast.counts.total));
    }
    all
}
