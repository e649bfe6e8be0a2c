//! Requests of both arms in one window, by one reporter.
//!
//! ```text
//! series of callers and called ──targets that cannot be counted left out──▶ counts by reporter and arm ──▶ one reporter
//! ```
//!
//! A target whose scrapes were missed is left out for both arms, so that what remains is still a fair comparison. Counts
//! of two reporters are never added: both count the same requests.

use std::collections::{BTreeMap, BTreeSet};

use portolan_judge::{Arm, Counts, Interval, PodCounts};

use crate::arms::{ArmLabels, Arms};
use crate::requests::{Reporter, see_nearly_all};
use crate::scrape::{Scrapes, scrape_interval, stale_after, unknown_targets};
use crate::series::Series;
use crate::window::Window;

/// Requests of both arms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Requests of the new revision.
    pub canary: Arm,
    /// Requests of the old revision.
    pub stable: Arm,
    /// Who counted them.
    pub reporter: Reporter,
    /// Targets that were left out, because scrapes of them were missed or they are new.
    pub left_out: usize,
}

/// Why both arms cannot be compared in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCompared {
    /// Nobody counted any request.
    Nothing,
    /// Fewer than two scrapes lie in the window.
    TooSoon,
    /// Requests were counted, but not in this window without a gap.
    Gap(String),
}

/// Series of Istio, by who reports them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Series of callers, gateways and waypoints, by the Service that was called.
    pub(crate) callers: Vec<Series>,
    /// Series of those that were called, by their workload.
    pub(crate) called: Vec<Series>,
}

/// The new revision or the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Canary,
    Stable,
}

type Groups = BTreeMap<(Reporter, Role), Vec<Series>>;

impl Found {
    fn all(&self) -> impl Iterator<Item = &Series> {
        self.callers.iter().chain(&self.called)
    }

    /// Returns the window from one moment to the other with what the scrapes tell about it.
    pub(crate) fn window(&self, from: i64, to: i64) -> Result<Window, NotCompared> {
        if self.all().next().is_none() {
            return Err(NotCompared::Nothing);
        }
        let interval = scrape_interval(self.all()).ok_or(NotCompared::TooSoon)?;
        if to - from < interval.saturating_mul(2) {
            return Err(NotCompared::TooSoon);
        }
        Ok(Window {
            from,
            to,
            stale_after: stale_after(interval),
        })
    }

    /// Returns the scrapes that the series themselves tell of.
    pub(crate) fn scrapes(&self) -> Scrapes {
        Scrapes::of(self.all())
    }

    /// Returns the `instance` of targets that cannot be counted unless `up` tells that they were scraped before.
    pub(crate) fn doubtful_instances(
        &self,
        scrapes: &Scrapes,
        window: &Window,
    ) -> BTreeSet<String> {
        let doubtful = self
            .all()
            .filter(|series| unknown_targets([*series], scrapes, window).len() == 1);
        doubtful
            .map(|series| series.label("instance").to_owned())
            .filter(|instance| !instance.is_empty())
            .collect()
    }
}

/// Counts the requests of both arms. `count` counts those of some series of one reporter; `None` from it means that
/// they cannot be counted.
pub(crate) fn compare(
    found: Found,
    scrapes: &Scrapes,
    arms: &Arms,
    window: &Window,
    count: impl Fn(&[Series], Reporter) -> Option<Arm>,
) -> Result<Compared, NotCompared> {
    let unknown = unknown_targets(found.all(), scrapes, window);
    let groups = grouped(found, arms, |series| !unknown.contains(&series.target()));
    let counted: BTreeMap<Reporter, [Arm; 2]> = Reporter::ALL
        .into_iter()
        .filter_map(|reporter| Some((reporter, count_both(&groups, reporter, window, &count)?)))
        .collect();
    let reporter = chosen(&counted).ok_or_else(|| gap(unknown.len()))?;
    let [mut canary, mut stable] = counted
        .get(&reporter)
        .cloned()
        .ok_or_else(|| gap(unknown.len()))?;
    // Only those that are called know which of their pods it was.
    if let Some([of_canary, of_stable]) = counted.get(&Reporter::Destination) {
        canary.pods = with_ages(&of_canary.pods, &arms.canary);
        stable.pods = with_ages(&of_stable.pods, &arms.stable);
    }
    Ok(Compared {
        canary,
        stable,
        reporter,
        left_out: unknown.len(),
    })
}

fn gap(left_out: usize) -> NotCompared {
    NotCompared::Gap(match left_out {
        0 => "no target was scraped up to the end of the interval".to_owned(),
        1 => "the only target that was scraped is new, or scrapes of it were missed".to_owned(),
        _ => format!("all {left_out} targets are new, or scrapes of them were missed"),
    })
}

fn grouped(found: Found, arms: &Arms, is_counted: impl Fn(&Series) -> bool) -> Groups {
    let mut groups = Groups::new();
    let by_service = found
        .callers
        .into_iter()
        .map(|series| (series.label("destination_service_name").to_owned(), series));
    let by_workload = found
        .called
        .into_iter()
        .map(|series| (series.label("destination_workload").to_owned(), series));
    for (slot, series) in by_service.chain(by_workload) {
        let reporter = Reporter::ALL
            .into_iter()
            .find(|reporter| reporter.label() == series.label("reporter"));
        let role = [(Role::Canary, &arms.canary), (Role::Stable, &arms.stable)]
            .into_iter()
            .find(|(_, arm)| arm.slot == slot && arm.has_revision(&series));
        if let (Some(reporter), Some((role, _)), true) = (reporter, role, is_counted(&series)) {
            groups.entry((reporter, role)).or_default().push(series);
        }
    }
    groups
}

/// Counts both arms by one reporter. An arm without series had no requests, if the other arm's were scraped.
fn count_both(
    groups: &Groups,
    reporter: Reporter,
    window: &Window,
    count: impl Fn(&[Series], Reporter) -> Option<Arm>,
) -> Option<[Arm; 2]> {
    let of = |role| groups.get(&(reporter, role)).map(Vec::as_slice);
    let both = [of(Role::Canary), of(Role::Stable)];
    let mut all = both.iter().copied().flatten().flatten();
    if !all.any(|series| window.is_fresh(series)) {
        return None;
    }
    let counted = both.map(|series| match series {
        Some(series) if series.iter().any(|series| window.has_sample(series)) => {
            count(series, reporter)
        }
        _ => Some(Arm::default()),
    });
    let [canary, stable] = counted;
    Some([canary?, stable?])
}

/// Returns whose counts are used: the callers' if they see nearly all requests of each arm that the called see.
fn chosen(counted: &BTreeMap<Reporter, [Arm; 2]>) -> Option<Reporter> {
    let requests = |reporter: &Reporter| {
        let arms = counted.get(reporter)?;
        Some([arms[0].counts.total, arms[1].counts.total])
    };
    let callers = [Reporter::Source, Reporter::Waypoint]
        .into_iter()
        .filter(|reporter| counted.contains_key(reporter))
        .max_by_key(|reporter| {
            let sum = requests(reporter).map_or(0, |[canary, stable]| canary + stable);
            (sum, *reporter == Reporter::Source)
        });
    let Some(called) = requests(&Reporter::Destination) else {
        return callers;
    };
    let is_enough = |callers: &Reporter| {
        let seen = requests(callers).unwrap_or_default();
        seen.into_iter()
            .zip(called)
            .all(|(seen, called)| see_nearly_all(seen, called))
    };
    callers.filter(is_enough).or(Some(Reporter::Destination))
}

fn with_ages(pods: &[PodCounts], arm: &ArmLabels) -> Vec<PodCounts> {
    let aged = pods.iter().map(|pod| PodCounts {
        age_seconds: arm.pod_ages.get(&pod.name).copied().unwrap_or(u64::MAX),
        ..pod.clone()
    });
    aged.collect()
}

/// Returns an arm without the requests of pods that have all just started, where it is not known which pod had which. Those
/// of an arm that fails more than half of them count.
pub(crate) fn without_cold_start(
    arm: Arm,
    pod_ages: &BTreeMap<String, u64>,
    warm_up_seconds: u64,
) -> Arm {
    let is_cold = arm.pods.is_empty()
        && !pod_ages.is_empty()
        && pod_ages.values().all(|age| *age < warm_up_seconds);
    let fails = arm.counts.bad > arm.counts.total / 2;
    if is_cold && !fails {
        return Arm::default();
    }
    arm
}

/// Returns the requests of as many pods of the old revision as the new one has, beside those of the others: two arms of
/// the same revision, to learn how much arms differ by themselves. `None` if there are not enough pods. Pods younger
/// than the warm-up do not count.
pub fn same_revision(stable: &Arm, canary_pods: usize, warm_up_seconds: u64) -> Option<Interval> {
    let old: Vec<&PodCounts> = stable
        .pods
        .iter()
        .filter(|pod| pod.age_seconds >= warm_up_seconds)
        .collect();
    if canary_pods == 0 || old.len() <= canary_pods {
        return None;
    }
    let (one, other) = old.split_at(canary_pods);
    let sum = |pods: &[&PodCounts]| {
        pods.iter().fold(Counts::default(), |sum, pod| Counts {
            total: sum.total.saturating_add(pod.counts.total),
            bad: sum.bad.saturating_add(pod.counts.bad),
        })
    };
    Some(Interval {
        canary: sum(one),
        stable: sum(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_an_arm_that_has_just_started_count_if_most_of_them_fail() {
        let arm = |bad| Arm {
            counts: Counts { total: 100, bad },
            pods: Vec::new(),
        };
        let ages = |ages: &[u64]| {
            let ages = ages.iter().enumerate();
            ages.map(|(at, age)| (at.to_string(), *age)).collect()
        };
        let counted = |bad, of: &[u64]| without_cold_start(arm(bad), &ages(of), 60).counts.total;
        assert_eq!(counted(10, &[5, 59]), 0);
        assert_eq!(counted(60, &[5, 59]), 100);
        assert_eq!(counted(10, &[5, 60]), 100, "one of them is warm");
        assert_eq!(counted(10, &[]), 100, "nobody knows");
    }
}
