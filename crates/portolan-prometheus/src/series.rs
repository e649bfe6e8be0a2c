//! Series of samples, as Prometheus keeps them.

use std::collections::BTreeMap;

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Milliseconds since the start of 1970.
    pub at: i64,
    /// The value.
    pub value: f64,
}

/// The samples of one set of labels, in order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// The labels, `__name__` included.
    pub labels: BTreeMap<String, String>,
    /// The samples, the oldest first.
    pub samples: Vec<Sample>,
}

/// The labels that name what was scraped.
const TARGET: [&str; 4] = ["job", "instance", "namespace", "pod"];

/// What was scraped: its `job`, `instance`, `namespace` and `pod`.
pub(crate) type Target = [String; 4];

impl Series {
    /// Returns the value of a label; empty if there is none, as in Prometheus.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Returns what the series was scraped from.
    pub(crate) fn target(&self) -> Target {
        TARGET.map(|label| self.label(label).to_owned())
    }
}

/// Keeps one of the series that differ only in labels that name a replica of Prometheus: the one with the most samples.
/// Both of a pair see the same requests; adding them up would count each twice.
pub fn one_per_replica(series: Vec<Series>, replica_labels: &[&str]) -> Vec<Series> {
    let mut kept: BTreeMap<BTreeMap<String, String>, Series> = BTreeMap::new();
    for mut candidate in series {
        candidate
            .labels
            .retain(|name, _| !replica_labels.contains(&name.as_str()));
        let known = kept.entry(candidate.labels.clone()).or_default();
        if candidate.samples.len() > known.samples.len() || known.labels.is_empty() {
            *known = candidate;
        }
    }
    kept.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(labels: &[(&str, &str)], samples: usize) -> Series {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Series {
            labels: labels.collect(),
            samples: vec![Sample { at: 0, value: 1.0 }; samples],
        }
    }

    #[test]
    fn replicas_count_once() {
        let all = vec![
            series(&[("pod", "a"), ("replica", "0")], 2),
            series(&[("pod", "a"), ("replica", "1")], 3),
            series(&[("pod", "b"), ("replica", "1")], 1),
        ];
        let kept = one_per_replica(all, &["replica"]);
        let kept: Vec<_> = kept
            .iter()
            .map(|series| (series.label("pod"), series.samples.len()))
            .collect();
        assert_eq!(kept, [("a", 3), ("b", 1)]);
    }

    #[test]
    fn a_series_without_labels_is_kept() {
        assert_eq!(one_per_replica(vec![series(&[], 2)], &["replica"]).len(), 1);
    }
}
