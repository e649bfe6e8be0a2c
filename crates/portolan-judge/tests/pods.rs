//! What single pods do to a comparison.

use portolan_judge::{
    Arm, Counts, Evidence, Interval, NoiseEstimate, PodCounts, Pods, Settings, SloEvidence,
    ThresholdState, Verdict, WarmUp,
};
use proptest::prelude::*;

fn pod(name: &str, age_seconds: u64, total: u64, bad: u64) -> PodCounts {
    PodCounts {
        name: name.to_owned(),
        age_seconds,
        counts: Counts { total, bad },
    }
}

fn arm(pods: Vec<PodCounts>) -> Arm {
    let sum = |count: fn(&Counts) -> u64| pods.iter().map(|pod| count(&pod.counts)).sum();
    let counts = Counts {
        total: sum(|counts| counts.total),
        bad: sum(|counts| counts.bad),
    };
    Arm { counts, pods }
}

#[test]
fn requests_of_a_pod_that_warms_up_do_not_count() {
    let mut warm_up = WarmUp::default();
    let counted = warm_up.admit(
        &arm(vec![pod("old", 60, 100, 1), pod("new", 59, 100, 40)]),
        60,
    );
    assert_eq!(counted, Counts { total: 100, bad: 1 });
}

#[test]
fn a_pod_that_fails_from_the_start_counts_at_once() {
    let mut warm_up = WarmUp::default();
    let counted = warm_up.admit(&arm(vec![pod("new", 0, 100, 51)]), 60);
    assert_eq!(
        counted,
        Counts {
            total: 100,
            bad: 51
        }
    );
}

/// A single failed request of a fresh pod is no failure from the start: its good ones would not count either.
#[test]
fn a_few_failures_of_a_fresh_pod_do_not_count() {
    let mut warm_up = WarmUp::default();
    for age in [0, 10, 20] {
        let counted = warm_up.admit(&arm(vec![pod("new", age, 3, 3)]), 60);
        assert_eq!(counted, Counts::default());
    }
    let counted = warm_up.admit(&arm(vec![pod("new", 30, 3, 3)]), 60);
    assert_eq!(counted, Counts { total: 3, bad: 3 });
}

/// Callers also see requests that never arrived; those are of no pod and count.
#[test]
fn requests_that_no_pod_knows_of_count_while_pods_warm_up() {
    let arm = Arm {
        counts: Counts { total: 60, bad: 50 },
        pods: vec![pod("new", 0, 10, 0)],
    };
    let counted = WarmUp::default().admit(&arm, 60);
    assert_eq!(counted, Counts { total: 50, bad: 50 });
}

#[test]
fn an_arm_without_pods_counts_whole() {
    let whole = Counts { total: 7, bad: 2 };
    let arm = Arm {
        counts: whole,
        pods: Vec::new(),
    };
    assert_eq!(WarmUp::default().admit(&arm, 60), whole);
}

/// Observes ten intervals with these bad requests of each pod, of 100 each, beside a healthy stable arm.
fn after(bad: &[u64]) -> (Evidence, Pods) {
    let settings = Settings::default();
    let (mut evidence, mut pods) = (Evidence::new(&settings), Pods::default());
    for _ in 0..10 {
        let counts = bad.iter().enumerate();
        let canary = arm(counts
            .map(|(i, bad)| pod(&format!("pod-{i}"), 600, 100, *bad))
            .collect());
        let interval = Interval {
            canary: canary.counts,
            stable: Counts {
                total: 5_000,
                bad: 5,
            },
        };
        evidence.observe(&settings, &interval);
        pods.observe(&settings, &interval, &canary.pods);
    }
    assert_eq!(evidence.verdict(&settings), Verdict::Rollback);
    (evidence, pods)
}

#[test]
fn one_bad_pod_among_three_is_named() {
    assert_eq!(after(&[0, 30, 0]).1.culprit(), Some("pod-1"));
}

#[test]
fn no_pod_is_named_when_all_are_bad() {
    assert_eq!(after(&[10, 30, 10]).1.culprit(), None);
}

#[test]
fn one_of_two_pods_is_not_named() {
    assert_eq!(after(&[0, 30]).1.culprit(), None);
}

#[test]
fn one_bad_pod_is_named_when_no_other_request_is_bad() {
    let settings = Settings::default();
    let mut pods = Pods::default();
    for _ in 0..10 {
        let canary = arm(vec![
            pod("a", 600, 100, 0),
            pod("b", 600, 100, 40),
            pod("c", 600, 100, 0),
        ]);
        let interval = Interval {
            canary: canary.counts,
            stable: Counts {
                total: 5_000,
                bad: 0,
            },
        };
        pods.observe(&settings, &interval, &canary.pods);
    }
    assert_eq!(pods.culprit(), Some("b"));
}

/// A pod that comes late is left out of what came before it, too.
#[test]
fn a_pod_that_replaces_another_is_told_from_it() {
    let settings = Settings::default();
    let mut pods = Pods::default();
    for (name, bad) in [("late", 30), ("early", 0)].repeat(5) {
        let canary = arm(vec![
            pod("a", 600, 100, 0),
            pod("b", 600, 100, 0),
            pod(name, 600, 100, bad),
        ]);
        let interval = Interval {
            canary: canary.counts,
            stable: Counts {
                total: 5_000,
                bad: 5,
            },
        };
        pods.observe(&settings, &interval, &canary.pods);
    }
    assert_eq!(pods.culprit(), Some("late"));
}

fn written_and_read<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("JSON");
    serde_json::from_str(&text).expect("the same type")
}

proptest! {
    /// A controller that restarts goes on from what it wrote into a status: every later number is the same, up to the
    /// last digit of a decimal.
    #[test]
    fn state_survives_being_written_down(counts in prop::collection::vec((0_u64..2_000, 0_u64..2_000, 1_u64..9_000, 0_u64..90), 1..40)) {
        let settings = Settings::default();
        let (mut kept, mut read) = (Evidence::new(&settings), Evidence::new(&settings));
        let (mut kept_pods, mut read_pods) = (Pods::default(), Pods::default());
        for (at, (total, bad, stable, stable_bad)) in counts.into_iter().enumerate() {
            let canary = arm(vec![pod("a", 0, total, bad.min(total)), pod("b", 0, total, 0), pod("c", 0, 9, 0)]);
            let interval = Interval {
                canary: canary.counts,
                stable: Counts { total: stable, bad: stable_bad.min(stable) },
            };
            for (evidence, pods) in [(&mut kept, &mut kept_pods), (&mut read, &mut read_pods)] {
                if at % 7 == 6 {
                    evidence.begin_part();
                }
                evidence.observe(&settings, &interval);
                pods.observe(&settings, &interval, &canary.pods);
            }
            (read, read_pods) = (written_and_read(&read), written_and_read(&read_pods));
        }
        let (kept, read) = (kept.explain(&settings), read.explain(&settings));
        prop_assert!((kept.ln_rollback - read.ln_rollback).abs() <= 1e-9 * kept.ln_rollback.abs().max(1.0));
        prop_assert!((kept.ln_promote - read.ln_promote).abs() <= 1e-9 * kept.ln_promote.abs().max(1.0));
        prop_assert_eq!(kept_pods.culprit(), read_pods.culprit());
    }
}

#[test]
fn all_other_state_survives_being_written_down() {
    let mut slo = SloEvidence::new(0.01).expect("a share");
    slo.observe(Counts { total: 100, bad: 3 });
    assert_eq!(written_and_read(&slo), slo);
    let mut noise = NoiseEstimate::default();
    noise.observe(&Interval {
        canary: Counts { total: 10, bad: 1 },
        stable: Counts { total: 10, bad: 3 },
    });
    assert_eq!(written_and_read(&noise), noise);
    assert_eq!(
        written_and_read(&ThresholdState::default()),
        ThresholdState::default()
    );
    let mut warm_up = WarmUp::default();
    warm_up.admit(&arm(vec![pod("new", 0, 100, 51)]), 60);
    assert_eq!(written_and_read(&warm_up), warm_up);
}

#[test]
fn odds_are_excluded_from_the_largest_down() {
    let settings = Settings::default();
    let mut evidence = Evidence::new(&settings);
    assert_eq!(evidence.excluded_odds(&settings), None);
    let mut seen = Vec::new();
    for _ in 0..400 {
        evidence.observe(
            &settings,
            &Interval {
                canary: Counts { total: 100, bad: 1 },
                stable: Counts { total: 900, bad: 9 },
            },
        );
        seen.extend(evidence.excluded_odds(&settings));
    }
    assert!(seen.is_sorted_by(|one, next| one >= next));
    assert_eq!(seen.last(), Some(&2.0));
}
