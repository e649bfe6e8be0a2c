//! A repository of sixty releases whose charts cannot be had: the answer comes first, and what is missing is told once.

mod portolan;

use std::process::{Command, Stdio};

use portolan::Answer;
use portolan::repository::repository;

/// An address of this machine at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9";

const RELEASES: usize = 60;

/// Runs `portolan` on the repository of one cluster.
fn portolan(args: &[&str]) -> Answer {
    let charts = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata:\n  name: charts\n  namespace: apps\nspec:\n  interval: 1h\n  url: {NOBODY}/charts\n"
    );
    let apps = portolan::repository::kustomization("apps", "./apps")
        .replace("spec: {", "spec: {interval: 10m, ");
    let releases: Vec<(String, String)> = (1..=RELEASES).map(release).collect();
    let mut files = vec![
        ("clusters/test/apps.yaml", apps.as_str()),
        ("apps/charts.yaml", charts.as_str()),
        ("apps/ingress.yaml", INGRESS),
    ];
    files.extend(
        releases
            .iter()
            .map(|(file, text)| (file.as_str(), text.as_str())),
    );
    let repository = repository(&files);
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(args)
        .args(["--path", "clusters/test", "--offline"])
        .current_dir(repository.path())
        .env("HOME", repository.path())
        .env("PORTOLAN_CACHE", repository.path().join("cache"))
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built with this test");
    Answer::of(&output)
}

fn release(number: usize) -> (String, String) {
    let text = format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: app-{number:02}\n  namespace: apps\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: app-{number:02}\n      version: 1.0.{number}\n      sourceRef:\n        kind: HelmRepository\n        name: charts\n"
    );
    (format!("apps/app-{number:02}.yaml"), text)
}

/// Refers to what one of the releases would bring.
const INGRESS: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: apps
spec:
  rules:
  - http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: app-01
            port:
              name: http
";

#[test]
fn test_tells_one_cause_in_one_paragraph() {
    let answer = portolan(&["test"]);
    insta::assert_snapshot!(answer);
    assert!(answer.stdout.lines().count() <= 10, "{answer}");
}

#[test]
fn verbose_lists_everything_of_a_cause() {
    let answer = portolan(&["test", "-v"]);
    for number in 1..=RELEASES {
        let line = format!("  HelmRelease apps/app-{number:02}: chart `app-{number:02}` ");
        assert!(answer.stdout.contains(&line), "{line}: {answer}");
    }
}

#[test]
fn json_has_every_finding_with_its_cause() {
    let answer = portolan(&["test", "-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let findings = document["findings"].as_array().expect("a list");
    let unavailable: Vec<_> = findings
        .iter()
        .filter(|finding| finding["rule"] == "chart/unavailable")
        .collect();
    assert_eq!(unavailable.len(), RELEASES);
    assert!(
        unavailable
            .iter()
            .all(|finding| finding["cause"] == unavailable[0]["cause"])
    );
    // The Service behind the Ingress may come with one of the releases.
    assert_eq!(findings.len(), unavailable.len());
    insta::assert_snapshot!(answer);
}

#[test]
fn get_answers_first_and_tells_once() {
    let answer = portolan(&["get", "hr", "app-01", "app-02"]);
    insta::assert_snapshot!(answer);
}

#[test]
fn get_answers_programs_the_same() {
    let answer = portolan(&["get", "hr", "app-01", "app-02", "-o", "json"]);
    insta::assert_snapshot!(answer);
}

#[test]
fn build_prints_what_there_is_and_tells_once() {
    let answer = portolan(&[
        "build",
        "all",
        "--only-kinds",
        "Ingress",
        "--no-owner-labels",
    ]);
    insta::assert_snapshot!(answer);
    assert!(answer.stderr.lines().count() <= 10, "{answer}");
}

#[test]
fn build_answers_programs_the_same() {
    let args = ["build", "all", "--only-kinds", "Ingress", "-o", "json"];
    insta::assert_snapshot!(portolan(&args));
}

#[test]
fn quiet_leaves_only_the_answer() {
    let answer = portolan(&["-q", "get", "hr"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
    let answer = portolan(&["-q", "build", "all"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (1, ""), "{answer}");
}
