//! What each proxy has counted, as text for Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The edges of Istio's histogram of durations, in milliseconds.
const EDGES: [u32; 19] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
    1_800_000, 3_600_000, 7_200_000,
];

/// Counters of every target.
#[derive(Debug, Default)]
pub(super) struct Counters(BTreeMap<String, Target>);

#[derive(Debug, Default)]
struct Target {
    namespace: String,
    /// Requests by labels and duration.
    requests: BTreeMap<String, BTreeMap<u32, u64>>,
}

/// One request that a target counts.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    /// Which proxy counts it.
    pub(super) target: String,
    /// The labels of its series.
    pub(super) labels: String,
    /// How long it took, in milliseconds.
    pub(super) milliseconds: u32,
}

impl Counters {
    /// Knows these targets, by name and namespace, and no others. Counters of those that stay are kept.
    pub(super) fn set_targets(&mut self, targets: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = targets.keys().collect();
        self.0.retain(|name, _| names.contains(name));
        for (name, namespace) in targets {
            self.0
                .entry(name.clone())
                .or_default()
                .namespace
                .clone_from(namespace);
        }
    }

    /// Counts a request, if the target is still there.
    pub(super) fn count(&mut self, counted: &Counted) {
        if let Some(target) = self.0.get_mut(&counted.target) {
            let durations = target.requests.entry(counted.labels.clone()).or_default();
            *durations.entry(counted.milliseconds).or_default() += 1;
        }
    }

    pub(super) fn restart(&mut self, target: &str) {
        if let Some(target) = self.0.get_mut(target) {
            target.requests.clear();
        }
    }

    /// Names and namespaces of all targets.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&str, &str)> {
        let targets = self.0.iter();
        targets.map(|(name, target)| (name.as_str(), target.namespace.as_str()))
    }

    /// What a target answers a scrape with.
    pub(super) fn text(&self, target: &str) -> Option<String> {
        let target = self.0.get(target)?;
        let mut text = "# TYPE istio_requests_total counter\n".to_owned();
        for (labels, durations) in &target.requests {
            let total: u64 = durations.values().sum();
            let _ = writeln!(text, "istio_requests_total{{{labels}}} {total}");
        }
        text.push_str("# TYPE istio_request_duration_milliseconds histogram\n");
        for (labels, durations) in &target.requests {
            write_histogram(&mut text, labels, durations);
        }
        Some(text)
    }
}

fn write_histogram(text: &mut String, labels: &str, durations: &BTreeMap<u32, u64>) {
    const NAME: &str = "istio_request_duration_milliseconds";
    for edge in EDGES {
        let upto: u64 = durations.range(..=edge).map(|(_, count)| count).sum();
        let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"{edge}\"}} {upto}");
    }
    let total: u64 = durations.values().sum();
    let sum: u64 = durations
        .iter()
        .map(|(took, count)| u64::from(*took) * count)
        .sum();
    let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {total}");
    let _ = writeln!(text, "{NAME}_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "{NAME}_count{{{labels}}} {total}");
}
