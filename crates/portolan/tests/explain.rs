//! `portolan explain` on the example repository: every way by which a value gets into a field.

mod portolan;

use portolan::portolan_in;
use portolan::repository::{HARBOR, kustomization, repository};

fn explain(what: &str) -> portolan::Answer {
    portolan_in(HARBOR, &["explain", what, "--path", "clusters/production"])
}

/// The places that an answer names, in order.
fn places(answer: &portolan::Answer) -> Vec<String> {
    let lines = answer.stdout.lines();
    let words = lines.flat_map(|line| line.split_whitespace());
    words
        .filter(|word| word.contains(".yaml:"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_field_of_a_release_is_followed_through_template_value_and_variable() {
    let answer = explain("deploy/beacon.spec.replicas");
    assert_eq!(
        (answer.code, answer.stdout.lines().next()),
        (0, Some("3")),
        "{answer}"
    );
    assert_eq!(
        places(&answer),
        [
            "charts/beacon/templates/deployment.yaml:8",
            "apps/base/beacon/helmrelease.yaml:18",
            "clusters/production/apps.yaml:21",
            "clusters/production/settings.yaml:10",
        ],
        "{answer}"
    );
    assert!(
        answer.stdout.contains("value `replicaCount` of"),
        "{answer}"
    );
}

#[test]
fn a_value_that_a_post_renderer_adds_is_found_in_the_patch() {
    let answer = explain("deploy/beacon.spec.template.spec.priorityClassName");
    assert_eq!(answer.stdout.lines().next(), Some("pilot"), "{answer}");
    assert!(
        places(&answer).contains(&"apps/production/beacon.yaml:18".to_owned()),
        "{answer}"
    );
}

#[test]
fn a_value_that_a_component_sets_is_found_in_the_component() {
    let answer = explain("deploy/quay.spec.replicas");
    assert_eq!(
        places(&answer),
        ["components/lifeboat/kustomization.yaml:7"],
        "{answer}"
    );
}

#[test]
fn a_value_that_stands_in_a_file_is_found_there() {
    let answer = explain("deploy/quay.spec.template.spec.containers[quay].image");
    assert_eq!(
        places(&answer),
        ["apps/base/quay/deployment.yaml:10"],
        "{answer}"
    );
}

#[test]
fn a_label_that_the_kustomization_adds_is_found_in_its_definition() {
    let answer = explain("deploy/quay.metadata.labels[harbor.example/cluster]");
    assert_eq!(
        places(&answer),
        ["clusters/production/apps.yaml:17"],
        "{answer}"
    );
}

#[test]
fn the_namespace_that_a_kustomization_file_sets_is_found_there() {
    let answer = explain("deploy/quay.metadata.namespace");
    assert_eq!(
        places(&answer),
        ["apps/base/quay/kustomization.yaml:3"],
        "{answer}"
    );
}

#[test]
fn values_of_a_config_map_are_followed_into_it() {
    let answer = explain("cm/beacon-light.data.RANGE");
    let places = places(&answer);
    assert!(
        places.contains(&"apps/base/beacon/values.yaml:9".to_owned()),
        "{answer}"
    );
    assert!(
        places.contains(&"clusters/production/settings.yaml:9".to_owned()),
        "{answer}"
    );
}

#[test]
fn an_object_is_told_step_by_step() {
    let answer = explain("svc/quay");
    assert_eq!(answer.code, 0, "{answer}");
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines[0], "v1/Service/quay/quay", "{answer}");
    assert!(
        lines[1].starts_with("├─ read ") && lines[1].ends_with("apps/base/quay/service.yaml:1")
    );
    assert!(
        lines
            .last()
            .unwrap()
            .starts_with("└─ built by Kustomization flux-system/apps")
    );
}

#[test]
fn a_field_that_is_not_there_is_answered_with_those_that_are() {
    insta::assert_snapshot!(explain("deploy/quay.spec.replica"), @r"
    exit 2
    --- stderr
    error: `spec` has no `replica`
    hint: it has `template`, `selector`, `replicas`
    ");
    insta::assert_snapshot!(explain("deploy/qay"), @r"
    exit 2
    --- stderr
    error: no object is `deploy/qay`
    hint: there is `deploy/quay` in quay
    ");
    insta::assert_snapshot!(explain("quay"), @r"
    exit 2
    --- stderr
    error: `quay` names no object
    hint: write KIND/NAME, as in `deploy/web` or `deploy/web.spec.replicas`
    ");
}

#[test]
fn the_answer_is_a_record_on_request() {
    let answer = portolan_in(
        HARBOR,
        &[
            "explain",
            "deploy/quay.spec.replicas",
            "-o",
            "json",
            "--path",
            "clusters/production",
        ],
    );
    assert!(answer.stdout.contains("\"value\": \"3\""), "{answer}");
    assert!(
        answer
            .stdout
            .contains("\"place\": \"components/lifeboat/kustomization.yaml:7\""),
        "{answer}"
    );
}

#[test]
fn secrets_are_explained_without_being_shown() {
    let dir = repository(&[(
        "cluster/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData:\n  key: planted\n",
    )]);
    let args = [
        "explain",
        "secret/s.stringData.key",
        "--path",
        "cluster",
        "--repo",
        ".",
    ];
    let answer = portolan_in(dir.path().to_str().unwrap(), &args);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(!answer.to_string().contains("planted"), "{answer}");
    assert_eq!(places(&answer), ["cluster/secret.yaml:5"], "{answer}");
}

/// A Deployment that a Kustomization `web` builds of `web/`.
const WEB: (&str, &str) = (
    "web/deployment.yaml",
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: web\n        image: web:1\n",
);

fn explain_in(files: &[(&str, &str)], what: &str) -> portolan::Answer {
    let dir = repository(files);
    let args = ["explain", what, "--path", "cluster", "--repo", "."];
    portolan_in(dir.path().to_str().expect("a path of text"), &args)
}

#[test]
fn a_patch_inside_of_a_patch_is_found() {
    let web = kustomization("web", "./web");
    let patching = "  patches:\n  - target: {kind: Kustomization}\n    patch: |\n      - op: add\n        path: /spec/patches\n        value:\n        - target: {kind: Deployment}\n          patch: |\n            - op: replace\n              path: /spec/replicas\n              value: 7\n";
    let apps = format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: apps, namespace: flux-system}}\nspec:\n  path: ./apps\n  prune: true\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{patching}"
    );
    let line = apps.lines().count();
    let answer = explain_in(
        &[("cluster/apps.yaml", &apps), ("apps/web.yaml", &web), WEB],
        "deploy/web.spec.replicas",
    );
    assert_eq!(answer.stdout.lines().next(), Some("7"), "{answer}");
    assert_eq!(
        places(&answer),
        [format!("cluster/apps.yaml:{line}")],
        "{answer}"
    );
}

#[test]
fn a_field_in_a_generated_artifact_is_found_in_the_repository() {
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: parts, namespace: flux-system}\nspec:\n  sources:\n  - {alias: all, kind: GitRepository, name: flux-system}\n  artifacts:\n  - name: part\n    copy:\n    - {from: \"@all/web/**\", to: \"@artifact/copied/\"}\n";
    let web = kustomization("web", "./copied").replace(
        "{kind: GitRepository, name: flux-system}",
        "{kind: ExternalArtifact, name: part}",
    );
    assert!(web.contains("ExternalArtifact"));
    let answer = explain_in(
        &[
            ("cluster/generator.yaml", generator),
            ("cluster/web.yaml", &web),
            WEB,
        ],
        "deploy/web.spec.template.spec.containers[web].image",
    );
    assert_eq!(places(&answer), ["web/deployment.yaml:10"], "{answer}");
}

#[test]
fn an_input_of_a_resource_set_is_found_in_its_provider() {
    let provider = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {name: sizes, namespace: flux-system}\nspec:\n  type: Static\n  defaultValues:\n    size: large\n";
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: flux-system}\nspec:\n  inputsFrom:\n  - {kind: ResourceSetInputProvider, name: sizes}\n  resourcesTemplate: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: made, namespace: shop}\n    data:\n      size: << inputs.size >>\n";
    let answer = explain_in(
        &[
            ("cluster/provider.yaml", provider),
            ("cluster/set.yaml", set),
        ],
        "cm/made.data.size",
    );
    assert_eq!(answer.stdout.lines().next(), Some("large"), "{answer}");
    assert!(
        places(&answer).contains(&"cluster/provider.yaml:7".to_owned()),
        "{answer}"
    );
}
