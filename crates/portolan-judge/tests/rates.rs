//! The promised error rates, held against many pretended releases with fixed seeds.
//!
//! `PORTOLAN_LONG` runs the whole number; without it a fixed part of it runs, and the bounds are those of that part.

use portolan_judge::simulate::{Rule, Scenario, Summary, simulate};
use portolan_judge::{Corrections, Settings};

/// The whole number of runs, and the part of it that every run of the tests does.
const ALL: u32 = 4_000;
const PART: u32 = 400;

fn runs() -> u32 {
    match std::env::var_os("PORTOLAN_LONG") {
        Some(_) => ALL,
        None => PART,
    }
}

/// The plain test looks once a minute, the corrected one every ten seconds, as the operator does.
fn portolan(name: &str, settings: Settings) -> Summary {
    let scenario = Scenario::named(name).expect("known");
    let interval_seconds = if settings.corrections.is_some() {
        10
    } else {
        60
    };
    let rule = Rule::Portolan {
        settings,
        interval_seconds,
    };
    simulate(&scenario, &rule, runs(), 20_261_117)
}

/// The largest count that a true share explains with a probability of one in ten thousand, by the normal bound.
fn bound(share: f64, runs: u32) -> u32 {
    let mean = share * f64::from(runs);
    (mean + 3.8 * (mean * (1.0 - share)).sqrt() + 3.0) as u32
}

fn assert_at_most(count: u32, share: f64, runs: u32, what: &str) {
    let bound = bound(share, runs);
    assert!(count <= bound, "{what}: {count} of {runs}, allowed {bound}");
}

#[test]
fn a_canary_at_the_tolerated_odds_is_hardly_ever_rolled_back() {
    for settings in [Settings::plain(), Settings::default()] {
        let summary = portolan("edge-tolerated", settings);
        assert_at_most(summary.rolled_back, 0.01, summary.runs, "false rollbacks");
    }
}

#[test]
fn a_canary_at_the_harmful_odds_is_hardly_ever_promoted() {
    for settings in [Settings::plain(), Settings::default()] {
        let summary = portolan("edge-harmful", settings);
        assert_at_most(summary.promoted, 0.05, summary.runs, "false promotions");
    }
}

#[test]
fn healthy_releases_are_promoted_after_the_last_step() {
    for name in [
        "healthy-100rps",
        "stable-at-1.2-percent",
        "shared-noise",
        "shared-incident",
    ] {
        let summary = portolan(name, Settings::plain());
        assert_at_most(summary.rolled_back, 0.01, summary.runs, name);
        assert!(
            f64::from(summary.promoted) > 0.97 * f64::from(summary.runs),
            "{name}: {summary:?}"
        );
        assert!(
            summary.minutes_to_promote <= Some(12.0),
            "{name}: {summary:?}"
        );
    }
}

#[test]
fn a_release_without_any_error_is_promoted_by_the_corrected_test_only() {
    assert_eq!(portolan("no-errors", Settings::plain()).promoted, 0);
    let corrected = portolan("no-errors", Settings::default());
    assert_eq!(corrected.promoted, corrected.runs);
    assert!(corrected.minutes_to_promote <= Some(10.0), "{corrected:?}");
}

/// The noise of the scenarios is one for each minute, so the corrected test looks once a minute too: what it takes as
/// independent must be.
#[test]
fn noise_of_one_arm_breaks_the_plain_test_and_not_the_corrected_one() {
    let plain = portolan("noisy-arms-2000rps", Settings::plain());
    assert!(
        f64::from(plain.rolled_back) > 0.05 * f64::from(plain.runs),
        "{plain:?}"
    );
    for name in [
        "noisy-arms-20rps",
        "noisy-arms-200rps",
        "noisy-arms-2000rps",
    ] {
        // ±50 % of each arm, as a comparison of stable pods with each other would have measured it.
        let measured = Corrections {
            noise: 0.5,
            ..Corrections::default()
        };
        let rule = Rule::Portolan {
            settings: Settings {
                corrections: Some(measured),
                ..Settings::default()
            },
            interval_seconds: 60,
        };
        let scenario = Scenario::named(name).expect("known");
        let summary = simulate(&scenario, &rule, runs(), 20_261_117);
        assert_at_most(summary.rolled_back, 0.01, summary.runs, name);
    }
}

#[test]
fn windows_that_see_an_incident_at_different_moments_blame_nobody() {
    let scenario = Scenario::named("skewed-incident").expect("known");
    let every_ten_seconds = Rule::Portolan {
        settings: Settings::plain(),
        interval_seconds: 10,
    };
    let plain = simulate(&scenario, &every_ten_seconds, runs(), 20_261_117);
    let corrected = portolan("skewed-incident", Settings::default());
    assert_at_most(corrected.rolled_back, 0.01, corrected.runs, "corrected");
    assert!(
        plain.rolled_back > corrected.rolled_back,
        "{plain:?} {corrected:?}"
    );
}

#[test]
fn regressions_are_found_in_minutes_with_few_bad_requests() {
    for (name, minutes) in [
        ("9x-below-the-line", 4.0),
        ("20x", 2.0),
        ("200x", 1.0),
        ("3x-100rps", 8.0),
    ] {
        for settings in [Settings::plain(), Settings::default()] {
            let summary = portolan(name, settings);
            assert!(
                f64::from(summary.rolled_back) > 0.99 * f64::from(summary.runs),
                "{name}: {summary:?}"
            );
            assert!(
                summary.minutes_to_rollback <= Some(minutes),
                "{name}: {summary:?}"
            );
        }
    }
}

#[test]
fn a_regression_below_the_line_is_found_in_half_the_time_of_the_fixed_rules() {
    let scenario = Scenario::named("9x-below-the-line").expect("known");
    let ours = portolan(&scenario.name, Settings::default());
    let rivals = [
        Rule::Flagger { threshold: 5 },
        Rule::Argo { failure_limit: 3 },
    ]
    .map(|rule| simulate(&scenario, &rule, runs(), 20_261_117));
    let fastest = rivals
        .iter()
        .filter_map(|rival| rival.minutes_to_rollback)
        .fold(f64::MAX, f64::min);
    assert!(
        ours.minutes_to_rollback
            .is_some_and(|minutes| minutes * 2.0 <= fastest),
        "{ours:?} {rivals:?}"
    );
    assert!(
        rivals.iter().all(|rival| rival.promoted > ours.promoted),
        "{rivals:?}"
    );
}

#[test]
fn without_traffic_nothing_is_decided() {
    let summary = portolan("healthy-0.05rps", Settings::default());
    assert_eq!(summary.held, summary.runs);
    let scenario = Scenario::named("healthy-0.05rps").expect("known");
    let flagger = simulate(&scenario, &Rule::Flagger { threshold: 5 }, runs(), 1);
    assert!(flagger.rolled_back > flagger.runs / 2);
}

#[test]
fn the_same_seed_gives_the_same_summary() {
    let scenario = Scenario::named("healthy-2rps").expect("known");
    let rule = Rule::portolan();
    let summary = simulate(&scenario, &rule, 20, 7);
    assert_eq!(summary, simulate(&scenario, &rule, 20, 7));
    assert_ne!(summary, simulate(&scenario, &rule, 20, 8));
}
