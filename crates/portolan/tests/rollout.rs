//! `portolan rollout`: recorded releases judged, pretended ones counted.

mod portolan;

use portolan::repository::{kustomization, repository};
use portolan::{portolan, portolan_in, portolan_with_input};
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

#[test]
fn the_definitions_are_printed() {
    let answer = portolan(&["crds"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(
        answer
            .stdout
            .matches("kind: CustomResourceDefinition")
            .count(),
        3
    );
    let json = portolan(&["crds", "-o", "json"]);
    let list: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
}

const ROLLOUT: &str = "apiVersion: portolan.dev/v1alpha1
kind: IstioCanaryDeployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  service: {port: 80}
  template: {spec: {containers: [{name: web, image: \"web:1\"}]}}
";

#[test]
fn rollouts_are_linted_at_their_lines() {
    let fine = portolan_with_input(&["rollout", "lint", "-"], ROLLOUT);
    assert_eq!(fine.code, 0, "{fine}");
    assert!(fine.stdout.contains("most pods at once: 8"), "{fine}");
    let unwise = format!("{ROLLOUT}  analysis:\n    interval: 1s\n");
    let warned = portolan_with_input(&["rollout", "lint", "-"], &unwise);
    assert_eq!(warned.code, 0, "{warned}");
    assert!(
        warned
            .stdout
            .contains("<stdin>:9:5: warning: spec.analysis.interval"),
        "{warned}"
    );
    let wrong =
        format!("{ROLLOUT}  workloadRef: {{name: web}}\n  autoscaling: {{maxReplicas: 3}}\n");
    let refused = portolan_with_input(&["rollout", "lint", "-", "-o", "json"], &wrong);
    assert_eq!(refused.code, 1, "{refused}");
    let told: Value = serde_json::from_str(&refused.stdout).expect("JSON");
    assert_eq!(
        told["findings"].as_array().map(Vec::len),
        Some(2),
        "{told:#}"
    );
    assert_eq!(told["findings"][0]["rule"], "rollout/refused");
    assert_eq!(
        portolan_with_input(&["rollout", "lint", "-"], "a: 1\n").code,
        2
    );
}

/// The rollouts of a Flux repository are those that its Kustomizations make, at the lines that they come from.
#[test]
fn rollouts_of_a_repository_are_linted_as_they_are_rendered() {
    let apps = kustomization("apps", "./apps");
    let layer = "namePrefix: eu-\nresources: [web.yaml]\n";
    let unwise = format!("{ROLLOUT}  analysis:\n    interval: 1s\n");
    let files = [
        ("clusters/test/apps.yaml", apps.as_str()),
        ("apps/kustomization.yaml", layer),
        ("apps/web.yaml", &unwise),
    ];
    let directory = repository(&files);
    let run = |args: &[&str]| {
        let directory = directory.path().to_str().expect("a path in UTF-8");
        portolan_in(directory, &[&["rollout", "lint"], args].concat())
    };
    let linted = run(&["--path", "clusters/test"]);
    assert_eq!(linted.code, 0, "{linted}");
    assert!(
        linted.stdout.contains("apps/web.yaml:9:")
            && linted.stdout.contains("warning: spec.analysis.interval")
            && linted.stdout.contains("eu-web: most pods at once: 8"),
        "{linted}"
    );
    // Without a word, the repository of the current directory.
    assert_eq!(run(&[]).stdout, linted.stdout);
    let named = run(&["apps"]);
    assert_eq!(named.code, 2, "{named}");
    assert!(named.stderr.contains("--path apps"), "{named}");
    // What cannot be rendered was not looked at: that is no clean result.
    std::fs::write(
        directory.path().join("apps/kustomization.yaml"),
        "resources: [gone.yaml]\n",
    )
    .expect("a file");
    let broken = run(&[]);
    assert_eq!(broken.code, 1, "{broken}");
    assert!(broken.stderr.contains("gone.yaml"), "{broken}");
}

#[test]
fn canaries_of_other_tools_are_converted() {
    let canary = "apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  service: {port: 80}
  analysis: {interval: 1m, threshold: 5, stepWeight: 10, maxWeight: 30}
";
    let answer = portolan_with_input(&["rollout", "convert", "-f", "-"], canary);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer.stdout.starts_with("# from Canary shop/web\n"),
        "{answer}"
    );
    assert!(
        answer
            .stdout
            .contains("# `spec.analysis.threshold` has no counterpart"),
        "{answer}"
    );
    let again = portolan_with_input(&["rollout", "lint", "-"], &answer.stdout);
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(
        portolan_with_input(&["rollout", "convert", "-f", "-"], "a: 1\n").code,
        2
    );
}
