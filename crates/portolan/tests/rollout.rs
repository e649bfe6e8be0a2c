//! `portolan rollout`: recorded releases judged, pretended ones counted.

mod portolan;

use portolan::{portolan, portolan_with_input};
use serde_json::Value;

const HEADER: &str = "time,canary_total,canary_bad,stable_total,stable_bad\n";

fn judged(rows: &str, args: &[&str]) -> Value {
    let args = [&["rollout", "judge", "-", "-o", "json"], args].concat();
    let answer = portolan_with_input(&args, &format!("{HEADER}{rows}"));
    assert_eq!(answer.code, 0, "{answer}");
    serde_json::from_str(&answer.stdout).expect("JSON")
}

/// Two requests, one of them bad: odds ψ give the canary's with probability ψ/(1+ψ).
#[test]
fn the_evidence_after_a_row_is_that_of_the_definition() {
    let judgement = judged("10:00,1,1,1,0\n", &[]);
    let likely = |odds: f64| odds / (1.0 + odds);
    let worse = [2.0, 3.0, 5.0, 10.0, 30.0];
    let mean: f64 = worse
        .iter()
        .map(|odds| likely(*odds) / likely(1.25))
        .sum::<f64>()
        / 5.0;
    let found = judgement["rows"][0]["lnRollback"]
        .as_f64()
        .expect("a number");
    assert!((found - mean.ln()).abs() < 1e-12, "{judgement}");
    assert_eq!(judgement["decision"], "hold");
    assert_eq!(judgement["row"], Value::Null);
}

#[test]
fn a_bad_release_is_rolled_back_and_a_good_one_promoted() {
    let bad = "a,1000,9,9000,9\n".repeat(9);
    let judgement = judged(&bad, &[]);
    assert_eq!(judgement["decision"], "rollback");
    assert_eq!(judgement["rows"].as_array().map(Vec::len), Some(9));
    let good = "a,5000,25,5000,25\n".repeat(12);
    assert_eq!(judged(&good, &[])["decision"], "promote");
    let spotless = "a,500,0,500,0\n".repeat(12);
    assert_eq!(judged(&spotless, &[])["decision"], "hold");
    assert_eq!(judged(&spotless, &["--corrected"])["decision"], "promote");
}

#[test]
fn what_cannot_be_judged_is_refused_with_its_line() {
    let refused = |text: &str, args: &[&str]| {
        let answer = portolan_with_input(&[&["rollout", "judge", "-"], args].concat(), text);
        assert_eq!(answer.code, 2, "{answer}");
        answer.stderr
    };
    let stderr = refused(&format!("{HEADER}a,1,2,3,0\n"), &[]);
    assert!(
        stderr.contains("line 2: the canary has 2 bad requests of 1"),
        "{stderr}"
    );
    let stderr = refused(&format!("{HEADER}a,1,x,3,0\n"), &[]);
    assert!(
        stderr.contains("line 2: `x` in column `canary_bad`"),
        "{stderr}"
    );
    assert!(refused("a,1,0,3,0\n", &[]).contains("line 1: the header must name"));
    let stderr = refused(HEADER, &["--tolerated-odds", "2"]);
    assert!(stderr.contains("not above the tolerated odds"), "{stderr}");
}

#[test]
fn simulated_releases_are_counted() {
    let args = [
        "rollout",
        "simulate",
        "--runs",
        "50",
        "-o",
        "json",
        "--scenario",
    ];
    let run = |scenario: &str, rule: &str| -> Value {
        let answer = portolan(&[&args[..], &[scenario, "--rule", rule]].concat());
        assert_eq!(answer.code, 0, "{answer}");
        let answer: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        answer["items"][0]["summary"].clone()
    };
    assert_eq!(run("200x", "portolan")["rolledBack"], 50);
    assert_eq!(run("no-errors", "portolan")["promoted"], 50);
    assert_eq!(run("no-errors", "plain")["held"], 50);
    assert!(run("healthy-0.05rps", "flagger")["rolledBack"].as_u64() > Some(25));
    let unknown = portolan(&["rollout", "simulate", "--scenario", "200"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("no scenario is named `200`"),
        "{unknown}"
    );
}
