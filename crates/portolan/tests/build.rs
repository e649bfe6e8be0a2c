//! `portolan build` on the example repository and on broken ones.

mod portolan;

use portolan::portolan_in;
use portolan::repository::{HARBOR, kustomization, repository};

#[test]
fn both_clusters_of_the_example_are_found_and_built() {
    let answer = portolan_in(HARBOR, &["build", "all"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
    assert_eq!(
        answer.stdout.matches("\nkind: Deployment\n").count(),
        4,
        "{answer}"
    );
    assert_eq!(
        answer
            .stdout
            .matches("image: registry.example/quay:2.4.0-rc.1")
            .count(),
        1
    );
}

#[test]
fn variables_values_components_and_post_renderers_come_together_in_a_release() {
    let answer = portolan_in(
        HARBOR,
        &[
            "build",
            "hr",
            "beacon",
            "--path",
            "clusters/production",
            "--only-kinds",
            "Deployment,ConfigMap",
        ],
    );
    insta::assert_snapshot!(answer, @r#"
    exit 0
    --- stdout
    ---
    apiVersion: v1
    data:
      COLOUR: white
      RANGE: "24"
      SECTORS: red,white,green
    kind: ConfigMap
    metadata:
      labels:
        app.kubernetes.io/instance: beacon
        app.kubernetes.io/name: beacon
        app.kubernetes.io/version: 1.8.0
        helm.sh/chart: beacon-0.3.1
        helm.toolkit.fluxcd.io/name: beacon
        helm.toolkit.fluxcd.io/namespace: beacon
      name: beacon-light
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      labels:
        app.kubernetes.io/instance: beacon
        app.kubernetes.io/name: beacon
        app.kubernetes.io/version: 1.8.0
        helm.sh/chart: beacon-0.3.1
        helm.toolkit.fluxcd.io/name: beacon
        helm.toolkit.fluxcd.io/namespace: beacon
      name: beacon
    spec:
      replicas: 3
      selector:
        matchLabels:
          app.kubernetes.io/instance: beacon
          app.kubernetes.io/name: beacon
      template:
        metadata:
          annotations:
            checksum/light: 57cf1e26e312e6184a49c62bb8ad6d7f837f53a5fd70ed2772c8ba893d883bfc
          labels:
            app.kubernetes.io/instance: beacon
            app.kubernetes.io/name: beacon
        spec:
          containers:
          - envFrom:
            - configMapRef:
                name: beacon-light
            image: registry.example/beacon:1.8.0
            name: beacon
            resources:
              limits:
                memory: 64Mi
          priorityClassName: pilot
    "#);
}

#[test]
fn a_name_that_is_not_there_suggests_the_nearest() {
    insta::assert_snapshot!(portolan_in(HARBOR, &["build", "ks", "ap", "--path", "clusters/staging"]), @r"
    exit 2
    --- stderr
    error: no Kustomization named `ap`
    hint: there is `apps` in flux-system; `portolan get ks` lists all 3
    ");
}

#[test]
fn secrets_are_hidden_unless_asked_for() {
    let dir = repository(&[(
        "cluster/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData: {key: planted}\ndata: {raw: cGxhbnRlZA==}\n",
    )]);
    let path = dir.path().to_str().unwrap();
    let hidden = portolan_in(path, &["build", "ks", "--path", "cluster", "--repo", "."]);
    assert_eq!(hidden.code, 0, "{hidden}");
    assert!(
        !hidden.stdout.contains("planted") && !hidden.stdout.contains("cGxhbnRlZA"),
        "{hidden}"
    );
    let shown = portolan_in(
        path,
        &[
            "build",
            "ks",
            "--path",
            "cluster",
            "--repo",
            ".",
            "--show-secrets",
        ],
    );
    assert!(
        shown.stdout.contains("planted") && shown.stdout.contains("cGxhbnRlZA=="),
        "{shown}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_rest_is_built() {
    let dir = repository(&[
        ("cluster/bad.yaml", &kustomization("bad", "./nowhere")),
        ("cluster/good.yaml", &kustomization("good", "./good")),
        (
            "good/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: d}\n",
        ),
    ]);
    let answer = portolan_in(
        dir.path().to_str().unwrap(),
        &["build", "ks", "--path", "cluster", "--repo", "."],
    );
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("name: here"), "{answer}");
    insta::assert_snapshot!(answer.stderr, @r"
    error: Kustomization flux-system/bad: kustomization path `/nowhere` does not exist in the source
      ╭▸ cluster/bad.yaml:1:1
      │
    1 │ apiVersion: kustomize.toolkit.fluxcd.io/v1
      ╰╴━
    ");
}

#[test]
fn a_repository_without_a_cluster_says_how_to_name_one() {
    let dir = repository(&[("README.md", "nothing")]);
    let answer = portolan_in(
        dir.path().to_str().unwrap(),
        &["build", "all", "--repo", "."],
    );
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("no cluster found"), "{answer}");
}

/// Helm takes the last of two equal keys; charts in the wild rely on it.
#[test]
fn a_chart_that_repeats_a_key_is_still_built() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: d}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}\n";
    let dir = repository(&[
        ("cluster/release.yaml", release),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 0.1.0\n",
        ),
        (
            "chart/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: first\n  a: last\n",
        ),
    ]);
    let path = dir.path().to_str().unwrap();
    let answer = portolan_in(path, &["build", "hr", "--path", "cluster", "--repo", "."]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer.stdout.contains("a: last") && !answer.stdout.contains("first"),
        "{answer}"
    );
}
