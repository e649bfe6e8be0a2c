//! Repositories with every kind of mistake: each is told with its place and what to do, the exit code is 1, and the
//! rest is built.

mod portolan;

use std::process::{Command, Stdio};

use portolan::Answer;
use portolan::repository::repository;

/// An address of this machine at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9";

/// Builds a repository that holds a good Kustomization besides these files.
fn build(files: &[(&str, &str)]) -> Answer {
    let good = kustomization("good", "./good");
    let map = config_map("good", "a: b");
    let mut all = vec![
        ("cluster/good.yaml", good.as_str()),
        ("good/map.yaml", map.as_str()),
    ];
    all.extend_from_slice(files);
    let repository = repository(&all);
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["build", "all", "--repo", ".", "--path", "cluster"])
        .args(["--only-kinds", "ConfigMap", "--no-owner-labels"])
        .current_dir(repository.path())
        .env("HOME", repository.path())
        .env("PORTOLAN_CACHE", repository.path().join("cache"))
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built with this test");
    let answer = Answer::of(&output);
    assert!(answer.stdout.contains("name: good"), "{answer}");
    assert_eq!(answer.code, 1, "{answer}");
    answer
}

fn kustomization(name: &str, path: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: {name}\n  namespace: flux-system\nspec:\n  \
         path: {path}\n  prune: true\n  sourceRef:\n    kind: GitRepository\n    name: flux-system\n"
    )
}

fn config_map(name: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: apps\ndata:\n  {data}\n"
    )
}

fn release(name: &str, chart: &str, source: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: {name}\n  namespace: apps\nspec:\n  \
         interval: 1h\n  chart:\n    spec:\n      chart: {chart}\n      sourceRef:\n        {source}\n"
    )
}

const OWN: &str = "kind: GitRepository\n        name: flux-system\n        namespace: flux-system";

#[test]
fn dependencies_in_a_circle_and_on_nobody() {
    let needs = |name: &str, other: &str| {
        kustomization(name, "./good") + &format!("  dependsOn:\n  - name: {other}\n")
    };
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &needs("a", "b")),
        ("cluster/b.yaml", &needs("b", "a")),
        ("cluster/c.yaml", &needs("c", "nobody")),
    ]));
}

#[test]
fn kustomization_files_in_a_circle() {
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./one")),
        ("one/kustomization.yaml", "resources:\n- ../two\n"),
        ("two/kustomization.yaml", "resources:\n- ../one\n"),
    ]));
}

#[test]
fn a_path_that_does_not_exist() {
    insta::assert_snapshot!(build(&[(
        "cluster/a.yaml",
        &kustomization("a", "./nowhere")
    )]));
}

#[test]
fn a_source_that_nothing_declares() {
    let unknown = kustomization("a", "./good").replace("    name: flux-system", "    name: other");
    insta::assert_snapshot!(build(&[("cluster/a.yaml", &unknown)]));
}

#[test]
fn a_file_that_is_no_yaml() {
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./bad")),
        (
            "bad/broken.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\n"
        ),
    ]));
}

#[test]
fn a_resource_that_does_not_exist() {
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./bad")),
        (
            "bad/kustomization.yaml",
            "resources:\n- map.yaml\n- missing.yaml\n"
        ),
        ("bad/map.yaml", &config_map("map", "a: b")),
    ]));
}

#[test]
fn fields_of_the_wrong_type() {
    let wrong = kustomization("a", "./good")
        + "  suspend: sometimes\n  components: all\n  postBuild:\n    substitute:\n      PORT: 80\n";
    let release = release("web", "./charts/web", OWN) + "  valuesFrom: none\n";
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &wrong),
        ("cluster/b.yaml", &kustomization("b", "./apps")),
        ("apps/release.yaml", &release),
    ]));
}

#[test]
fn variables_that_cannot_be_put_in() {
    let with = |name: &str, path: &str, more: &str| {
        kustomization(name, path)
            + &format!("  postBuild:\n    substitute:\n      X: \"1\"\n{more}")
    };
    let from = "    substituteFrom:\n    - kind: Secret\n      name: nobody\n";
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &with("a", "./expression", "")),
        ("cluster/b.yaml", &with("b", "./unset", "")),
        ("cluster/c.yaml", &with("c", "./missing", from)),
        (
            "expression/map.yaml",
            &config_map("expression", "a: ${X[@]}")
        ),
        ("unset/map.yaml", &config_map("unset", "a: ${Y}")),
        ("missing/map.yaml", &config_map("missing", "a: ${X}")),
    ]));
}

#[test]
fn charts_that_are_not_found() {
    let other = "kind: HelmRepository\n        name: nobody";
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./apps")),
        ("apps/here.yaml", &release("here", "./charts/nowhere", OWN)),
        ("apps/there.yaml", &release("there", "redis", other)),
    ]));
}

#[test]
fn a_chart_that_refuses_its_values() {
    let values = release("web", "./charts/web", OWN) + "  values:\n    colour: red\n";
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./apps")),
        ("apps/release.yaml", &values),
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n"
        ),
        (
            "charts/web/templates/cm.yaml",
            "kind: ConfigMap\nmetadata:\n  name: {{ required \"a name is needed\" .Values.name }}\n",
        ),
    ]));
}

#[test]
fn a_network_that_is_down() {
    let repository = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata:\n  name: charts\n  namespace: apps\nspec:\n  url: {NOBODY}/charts\n"
    );
    let charts = "kind: HelmRepository\n        name: charts";
    insta::assert_snapshot!(build(&[
        ("cluster/a.yaml", &kustomization("a", "./apps")),
        ("apps/release.yaml", &release("web", "web", charts)),
        ("apps/charts.yaml", &repository),
    ]));
}
