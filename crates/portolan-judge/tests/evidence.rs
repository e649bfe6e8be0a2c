//! What evidence does with single intervals.

use portolan_judge::{Corrections, Counts, Evidence, Interval, Settings, SettingsError, Verdict};
use proptest::prelude::*;

fn interval(canary: (u64, u64), stable: (u64, u64)) -> Interval {
    let counts = |(total, bad)| Counts::new(total, bad).expect("counts");
    Interval {
        canary: counts(canary),
        stable: counts(stable),
    }
}

#[test]
fn evidence_starts_at_one_and_stays_there_without_news() {
    for settings in [Settings::plain(), Settings::default()] {
        let mut evidence = Evidence::new(&settings);
        evidence.observe(&settings, &interval((0, 0), (1_000, 10)));
        assert!(evidence.ln_rollback(&settings).abs() < 1e-12);
        assert!(evidence.ln_promote(&settings).abs() < 1e-12);
        assert_eq!(evidence.verdict(&settings), Verdict::Hold);
    }
}

/// One bad request among two, by hand: odds ψ give the canary's ψ/(1+ψ).
#[test]
fn the_plain_test_is_the_mean_of_the_ratios() {
    let settings = Settings::plain();
    let mut evidence = Evidence::new(&settings);
    evidence.observe(&settings, &interval((1, 1), (1, 0)));
    let likely = |odds: f64| odds / (1.0 + odds);
    let mean = |odds: &[f64], reference: f64| {
        let sum: f64 = odds
            .iter()
            .map(|odds| likely(*odds) / likely(reference))
            .sum();
        (sum / odds.len() as f64).ln()
    };
    let rollback = mean(&[2.0, 3.0, 5.0, 10.0, 30.0], 1.25);
    let promote = mean(&[1.25, 1.0, 0.7], 2.0);
    assert!((evidence.ln_rollback(&settings) - rollback).abs() < 1e-12);
    assert!((evidence.ln_promote(&settings) - promote).abs() < 1e-12);
}

#[test]
fn tolerated_odds_leave_the_mean() {
    let settings = Settings {
        tolerated_odds: 3.0,
        harmful_odds: 6.0,
        ..Settings::plain()
    };
    let mut evidence = Evidence::new(&settings);
    evidence.observe(&settings, &interval((1, 1), (1, 0)));
    let likely = |odds: f64| odds / (1.0 + odds);
    let sum: f64 = [5.0, 10.0, 30.0]
        .iter()
        .map(|odds| likely(*odds) / likely(3.0))
        .sum();
    assert!((evidence.ln_rollback(&settings) - (sum / 3.0).ln()).abs() < 1e-12);
}

#[test]
fn settings_without_a_test_are_refused() {
    let with = |tolerated_odds, harmful_odds| Settings {
        tolerated_odds,
        harmful_odds,
        ..Settings::plain()
    };
    assert!(matches!(
        with(2.0, 2.0).check(),
        Err(SettingsError::Order { .. })
    ));
    assert!(matches!(
        with(30.0, 40.0).check(),
        Err(SettingsError::NothingWorse(_))
    ));
    assert!(matches!(
        with(0.5, 0.7).check(),
        Err(SettingsError::NothingBetter(_))
    ));
    assert!(matches!(
        with(f64::NAN, 2.0).check(),
        Err(SettingsError::Odds { .. })
    ));
    for rate in [0.0, 1.0, f64::NAN] {
        let settings = Settings {
            false_rollback_rate: rate,
            ..Settings::plain()
        };
        assert!(matches!(settings.check(), Err(SettingsError::Rate { .. })));
    }
    let material = Some(Corrections {
        material: 0.0,
        noise: 0.04,
    });
    let settings = Settings {
        corrections: material,
        ..Settings::default()
    };
    assert!(matches!(
        settings.check(),
        Err(SettingsError::Correction { .. })
    ));
}

#[test]
fn two_bad_requests_are_no_reason_for_a_rollback() {
    let settings = Settings::default();
    let mut evidence = Evidence::new(&settings);
    for _ in 0..3 {
        evidence.observe(&settings, &interval((10, 0), (100_000, 1)));
    }
    evidence.observe(&settings, &interval((10, 2), (100_000, 1)));
    assert_eq!(evidence.verdict(&settings), Verdict::Hold);
}

#[test]
fn one_interval_alone_decides_nothing_however_bad() {
    let settings = Settings::default();
    let mut evidence = Evidence::new(&settings);
    evidence.observe(&settings, &interval((1_000, 900), (10_000, 10)));
    assert_eq!(evidence.verdict(&settings), Verdict::Hold);
    for _ in 0..4 {
        evidence.observe(&settings, &interval((1_000, 900), (10_000, 10)));
    }
    assert_eq!(evidence.verdict(&settings), Verdict::Rollback);
}

#[test]
fn a_healthy_hour_is_no_credit_for_a_later_regression() {
    let settings = Settings::default();
    let minutes_to_find = |healthy: u32| {
        let mut evidence = Evidence::new(&settings);
        for minute in 0..healthy {
            if minute % 10 == 9 {
                evidence.begin_part();
            }
            evidence.observe(&settings, &interval((3_000, 15), (3_000, 15)));
        }
        evidence.begin_part();
        (1..100)
            .find(|_| {
                evidence.observe(&settings, &interval((3_000, 45), (3_000, 15)));
                evidence.verdict(&settings) == Verdict::Rollback
            })
            .expect("found at all")
    };
    assert!(minutes_to_find(60) <= minutes_to_find(0) + 6);
}

proptest! {
    #[test]
    fn evidence_survives_being_written_down(
        rows in prop::collection::vec((0u64..500, 0u64..500, 0u64..5_000, 0u64..5_000, any::<bool>()), 0..30),
    ) {
        let settings = Settings::default();
        let mut evidence = Evidence::new(&settings);
        for (canary, canary_bad, stable, stable_bad, is_new_part) in rows {
            if is_new_part {
                evidence.begin_part();
            }
            let interval = interval((canary, canary_bad.min(canary)), (stable, stable_bad.min(stable)));
            evidence.observe(&settings, &interval);
            let explanation = evidence.explain(&settings);
            prop_assert!(explanation.ln_rollback.is_finite() && explanation.ln_promote.is_finite());
        }
        let written = serde_json::to_string(&evidence).expect("JSON");
        let read: Evidence = serde_json::from_str(&written).expect("evidence");
        // JSON readers may be off by the last digit of a number.
        let (read, written) = (read.explain(&settings), evidence.explain(&settings));
        prop_assert_eq!(read.verdict, written.verdict);
        prop_assert!((read.ln_rollback - written.ln_rollback).abs() < 1e-9 * (1.0 + written.ln_rollback.abs()));
        prop_assert!((read.ln_promote - written.ln_promote).abs() < 1e-9 * (1.0 + written.ln_promote.abs()));
    }
}
