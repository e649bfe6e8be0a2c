//! The name that Helm makes up for a release.

use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;

/// The chart's name and the time in seconds, as `--generate-name` has it.
pub(super) fn generated_name(chart: &str, now: SystemTime) -> String {
    let base = Utf8Path::new(chart).file_name().unwrap_or("chart");
    let base = base.split('.').next().filter(|base| !base.is_empty());
    let now = now.duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    format!("{}-{seconds}", base.unwrap_or("chart"))
}
