//! What was measured of a running canary, for people.

use crate::history::MetricSummary;
use crate::status::Status;

impl Status {
    /// Returns what each metric of the running canary has shown; nothing if there is none.
    pub fn evidence(&self) -> Vec<MetricSummary> {
        let Some(canary) = self.canary.as_deref() else {
            return Vec::new();
        };
        let analysis = &canary.plan.analysis;
        let metrics = analysis.metrics_or_default().into_iter();
        let summaries = metrics.filter_map(|metric| {
            let noise = self.noise.get(&metric.name).copied().unwrap_or_default();
            let settings = analysis.settings(&metric, canary.attempt, noise.variance());
            let state = canary.metrics.get(&metric.name)?;
            Some(state.summary(&metric.name, &settings))
        });
        summaries.collect()
    }
}
