//! Adds counters up to the requests of an arm.

use std::collections::BTreeMap;

use portolan_judge::{Arm, Counts, PodCounts};

use crate::scrape::Scrapes;
use crate::series::Series;
use crate::window::{Increase, Window};

/// Adds up the requests of some counters: all of them, and those that are bad. `None` if one of them is not known, if none
/// was there, or if nothing was scraped up to the end of the window: a sum with a hole would be too small.
pub(crate) fn add_up<'a>(
    counters: impl IntoIterator<Item = &'a Series>,
    scrapes: &Scrapes,
    window: &Window,
    is_bad: impl Fn(&Series) -> bool,
) -> Option<Arm> {
    let mut all = Counts::default();
    let mut pods: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut is_there = false;
    let mut is_fresh = scrapes.are_fresh(window);
    for counter in counters {
        is_fresh |= window.is_fresh(counter);
        let requests = match window.increase(counter, scrapes) {
            Increase::By(requests) => requests,
            Increase::Absent => continue,
            Increase::Unknown => return None,
        };
        is_there = true;
        let bad = if is_bad(counter) { requests } else { 0 };
        let pod = pods.entry(counter.label("pod")).or_default();
        for counts in [&mut all, pod] {
            counts.total = counts.total.saturating_add(requests);
            counts.bad = counts.bad.saturating_add(bad);
        }
    }
    // Without names, pods cannot be told apart.
    let pods = if pods.contains_key("") {
        Vec::new()
    } else {
        pods.into_iter()
            .map(|(name, counts)| pod_counts(name, counts))
            .collect()
    };
    (is_there && is_fresh).then_some(Arm { counts: all, pods })
}

/// How old a pod is is known by whoever watches pods.
fn pod_counts(name: &str, counts: Counts) -> PodCounts {
    PodCounts {
        name: name.to_owned(),
        age_seconds: 0,
        counts,
    }
}
