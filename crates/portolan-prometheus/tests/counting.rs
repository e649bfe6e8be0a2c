//! What is counted, case by case.

use portolan_judge::Counts;
use portolan_prometheus::{
    Increase, Reporter, Sample, Scrapes, Series, Window, count_requests, count_slow, see_nearly_all,
};
use proptest::prelude::*;

fn series(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> Series {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let samples = samples.iter().map(|(at, value)| Sample {
        at: *at,
        value: *value,
    });
    Series {
        labels: labels.collect(),
        samples: samples.collect(),
    }
}

fn none() -> Scrapes {
    Scrapes::default()
}

fn window(from: i64, to: i64) -> Window {
    Window {
        from,
        to,
        stale_after: 30,
    }
}

#[track_caller]
fn check(samples: &[(i64, f64)], expected: Increase) {
    assert_eq!(
        window(100, 200).increase(&series(&[], samples), &none()),
        expected
    );
}

#[test]
fn a_counter_is_counted_between_the_samples_at_both_ends() {
    check(
        &[(90, 5.0), (110, 8.0), (190, 11.0), (210, 99.0)],
        Increase::By(6),
    );
    check(&[(100, 5.0), (200, 7.0)], Increase::By(2));
}

#[test]
fn a_counter_that_falls_was_started_again() {
    check(
        &[(90, 50.0), (120, 55.0), (150, 3.0), (180, 4.0)],
        Increase::By(9),
    );
}

#[test]
fn a_counter_that_does_not_move_or_is_gone_adds_nothing() {
    check(&[(90, 5.0), (190, 5.0)], Increase::By(0));
    check(&[(90, 5.0)], Increase::By(0));
    check(&[], Increase::Absent);
    check(&[(300, 5.0)], Increase::Absent);
}

#[test]
fn a_gap_before_the_window_makes_it_unknown() {
    check(&[(60, 5.0), (110, 8.0)], Increase::Unknown);
}

#[test]
fn values_that_no_counter_has_make_it_unknown() {
    check(&[(90, 5.0), (110, f64::NAN)], Increase::Unknown);
    check(&[(90, 5.0), (110, -1.0)], Increase::Unknown);
}

/// The first error of a fresh pod is the first sample of its series. It counts if the pod was scraped without it before.
#[test]
fn a_new_counter_counts_from_zero_only_if_its_target_was_seen_before() {
    let counter = series(&[("pod", "a")], &[(150, 3.0), (180, 4.0)]);
    let up = |samples: &[(i64, f64)]| Scrapes::of([&series(&[("pod", "a")], samples)]);
    let increase = |scrapes: &Scrapes| window(100, 200).increase(&counter, scrapes);
    assert_eq!(increase(&none()), Increase::Unknown);
    assert_eq!(increase(&up(&[(150, 1.0)])), Increase::Unknown);
    assert_eq!(
        increase(&up(&[(110, 1.0), (150, 1.0)])),
        Increase::Unknown,
        "too long before"
    );
    assert_eq!(increase(&up(&[(130, 1.0), (150, 1.0)])), Increase::By(4));
    let of_other = Scrapes::of([&series(&[("pod", "b")], &[(130, 1.0)])]);
    assert_eq!(increase(&of_other), Increase::Unknown);
}

#[test]
fn freshness_is_that_of_the_last_sample() {
    let window = window(100, 200);
    assert!(window.is_fresh(&series(&[], &[(170, 1.0)])));
    assert!(!window.is_fresh(&series(&[], &[(169, 1.0), (201, 1.0)])));
}

fn counter(pod: &str, reporter: &str, code: &str, grpc: &str, grown: f64) -> Series {
    let labels = [
        ("pod", pod),
        ("reporter", reporter),
        ("response_code", code),
        ("grpc_response_status", grpc),
    ];
    series(&labels, &[(90, 10.0), (190, 10.0 + grown)])
}

#[test]
fn failures_are_those_of_the_server() {
    let all = [
        counter("a", "source", "200", "", 100.0),
        counter("a", "source", "404", "", 10.0),
        counter("a", "source", "503", "", 3.0),
        counter("a", "source", "0", "", 2.0),
        counter("a", "source", "200", "14", 1.0),
        counter("a", "source", "200", "5", 5.0),
        counter("a", "destination", "200", "", 90.0),
    ];
    let arm = count_requests(&all, &none(), Reporter::Source, &window(100, 200)).expect("counts");
    assert_eq!(arm.counts, Counts { total: 121, bad: 6 });
    let arm =
        count_requests(&all, &none(), Reporter::Destination, &window(100, 200)).expect("counts");
    assert_eq!(arm.counts, Counts { total: 90, bad: 0 });
}

#[test]
fn pods_are_told_apart_where_they_have_names() {
    let named = [
        counter("a", "destination", "200", "", 5.0),
        counter("b", "destination", "500", "", 2.0),
    ];
    let count = |all: &[Series], reporter| {
        count_requests(all, &none(), reporter, &window(100, 200)).expect("counts")
    };
    let arm = count(&named, Reporter::Destination);
    let pods: Vec<_> = arm
        .pods
        .iter()
        .map(|pod| (pod.name.as_str(), pod.counts.bad))
        .collect();
    assert_eq!(pods, [("a", 0), ("b", 2)]);
    let unnamed = [counter("", "destination", "200", "", 5.0)];
    assert!(count(&unnamed, Reporter::Destination).pods.is_empty());
    let of_callers = [counter("caller", "source", "200", "", 5.0)];
    assert!(
        count(&of_callers, Reporter::Source).pods.is_empty(),
        "the label names the pod that called"
    );
}

#[test]
fn a_sum_with_a_hole_is_not_known() {
    let with_hole = [
        counter("a", "source", "200", "", 5.0),
        series(
            &[("reporter", "source"), ("pod", "b")],
            &[(60, 1.0), (190, 3.0)],
        ),
    ];
    assert_eq!(
        count_requests(&with_hole, &none(), Reporter::Source, &window(100, 200)),
        None
    );
    let unscraped = [series(&[("reporter", "source")], &[(90, 1.0), (95, 3.0)])];
    assert_eq!(
        count_requests(&unscraped, &none(), Reporter::Source, &window(100, 200)),
        None,
        "nobody scraped in the window"
    );
    assert_eq!(
        count_requests(&[], &none(), Reporter::Source, &window(100, 200)),
        None
    );
}

#[test]
fn sources_are_believed_if_they_see_nearly_everything() {
    assert!(see_nearly_all(90, 100));
    assert!(!see_nearly_all(89, 100));
    assert!(see_nearly_all(0, 0));
    assert!(see_nearly_all(u64::MAX, u64::MAX));
}

fn bucket(edge: &str, grown: f64) -> Series {
    series(
        &[("pod", "a"), ("le", edge)],
        &[(90, 7.0), (190, 7.0 + grown)],
    )
}

#[test]
fn slow_requests_are_those_beyond_an_edge() {
    let buckets = [
        bucket("100", 60.0),
        bucket("500", 90.0),
        bucket("1000", 95.0),
        bucket("+Inf", 100.0),
    ];
    let (arm, edge) = count_slow(&buckets, &none(), 500.0, &window(100, 200)).expect("counts");
    assert_eq!(
        arm.counts,
        Counts {
            total: 100,
            bad: 10
        }
    );
    assert_eq!(
        arm.pods[0].counts,
        Counts {
            total: 100,
            bad: 10
        }
    );
    assert!(edge.is_exact);
    let (arm, edge) = count_slow(&buckets, &none(), 600.0, &window(100, 200)).expect("counts");
    assert_eq!(
        (arm.counts.bad, edge.at, edge.is_exact),
        (5, 1_000.0, false)
    );
    assert_eq!(
        count_slow(&buckets, &none(), 2_000.0, &window(100, 200)),
        None
    );
    assert_eq!(
        count_slow(&buckets[..3], &none(), 500.0, &window(100, 200)),
        None
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Windows that follow each other count every request exactly once, whatever restarts there are and wherever the
    /// windows end.
    #[test]
    fn windows_that_follow_each_other_count_everything_once(steps in prop::collection::vec((0_u64..50, prop::bool::weighted(0.1)), 2..40), cuts in prop::collection::btree_set(0_i64..400, 0..6)) {
        let (mut value, mut expected, mut samples) = (1_000_u64, 0, Vec::new());
        for (at, (grown, restarts)) in (0_i64..).zip(&steps) {
            if at > 0 {
                // A restart shows only if the counter is then below what it was.
                if *restarts && *grown < value {
                    value = *grown;
                } else {
                    value += *grown;
                }
                expected += *grown;
            }
            samples.push((at * 10, value as f64));
        }
        let counter = series(&[], &samples);
        let end = i64::try_from(steps.len()).expect("few") * 10;
        let inner = cuts.into_iter().filter(|cut| *cut > 0 && *cut < end);
        let cuts: Vec<i64> = std::iter::once(0).chain(inner).chain([end]).collect();
        let mut sum = 0;
        for pair in cuts.windows(2) {
            match window(pair[0], pair[1]).increase(&counter, &none()) {
                Increase::By(grown) => sum += grown,
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert_eq!(sum, expected);
    }
}
