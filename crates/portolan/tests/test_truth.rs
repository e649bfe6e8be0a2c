//! `portolan test` says nothing that a real cluster would not have: layouts of public repositories, made small.

mod portolan;

use portolan::repository::{kustomization, repository};
use portolan::{Answer, portolan_in};
use serde_json::Value;

fn test_in(files: &[(&str, &str)], args: &[&str]) -> Answer {
    let directory = repository(files);
    let mut all = vec!["test", "--offline"];
    all.extend(args);
    portolan_in(directory.path().to_str().expect("a path in UTF-8"), &all)
}

/// Rule and level of each finding.
fn findings(answer: &Answer) -> Vec<(String, String)> {
    let answer: Value = serde_json::from_str(&answer.stdout).expect("an answer in JSON");
    let findings = answer["findings"].as_array().expect("findings");
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or("").to_owned();
    let told = findings.iter();
    told.map(|finding| (text(finding, "rule"), text(finding, "level")))
        .collect()
}

/// A Kustomization of the cluster with more in its `spec`.
fn brings(name: &str, path: &str, more: &str) -> String {
    let spec = format!("spec: {{interval: 10m, {more}");
    kustomization(name, path).replace("spec: {", &spec)
}

const NONE: [(String, String); 0] = [];

#[test]
fn objects_of_two_clusters_do_not_collide() {
    let to = |name: &str| {
        let config = format!("kubeConfig: {{secretRef: {{name: {name}-kubeconfig}}}}, ");
        brings(name, "./apps", &config)
    };
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";
    let (one, two, own) = (to("one"), to("two"), brings("own", "./apps", ""));
    let files = [
        ("clusters/hub/one.yaml", one.as_str()),
        ("clusters/hub/two.yaml", &two),
        ("clusters/hub/own.yaml", &own),
        ("apps/map.yaml", map),
    ];
    assert_eq!(findings(&test_in(&files, &["-o", "json"])), NONE);
    let again = brings("again", "./apps", "");
    let files = [&files[..], &[("clusters/hub/again.yaml", &again)]].concat();
    let duplicate = ("owner/duplicate".to_owned(), "error".to_owned());
    assert_eq!(findings(&test_in(&files, &["-o", "json"])), [duplicate]);
}

/// Helm's client for Go does not know this group, which every cluster serves.
#[test]
fn charts_are_told_of_every_group_that_a_cluster_serves() {
    let template = "{{ if .Capabilities.APIVersions.Has \"apiregistration.k8s.io/v1\" }}\napiVersion: apiregistration.k8s.io/v1\n{{ else }}\napiVersion: apiregistration.k8s.io/v1beta1\n{{ end }}\nkind: APIService\nmetadata: {name: v1beta1.metrics.k8s.io}\nspec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: m, namespace: apps}}\n";
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: m, namespace: apps}\nspec: {interval: 10m, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}\n";
    let apps = brings("apps", "./apps", "");
    let files = [
        ("clusters/test/apps.yaml", apps.as_str()),
        ("apps/release.yaml", release),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: m\nversion: 1.0.0\n",
        ),
        ("chart/templates/service.yaml", template),
    ];
    assert_eq!(findings(&test_in(&files, &["-o", "json"])), NONE);
}

/// The operator puts the content of the other object in before it applies this one.
#[test]
fn a_copied_secret_has_its_keys() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: apps, namespace: flux-system}\nspec:\n  inputs: [{tenant: web}]\n  resources:\n  - apiVersion: v1\n    kind: Secret\n    metadata:\n      name: login\n      namespace: << inputs.tenant >>\n      annotations: {fluxcd.controlplane.io/copyFrom: flux-system/login}\n    type: kubernetes.io/dockerconfigjson\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: web, namespace: << inputs.tenant >>}\n    spec: {containers: [{name: web, image: 'web:1', env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: .dockerconfigjson}}}]}]}\n";
    let apps = brings("apps", "./apps", "");
    let files = [
        ("clusters/test/apps.yaml", apps.as_str()),
        ("apps/set.yaml", set),
    ];
    assert_eq!(findings(&test_in(&files, &["-o", "json"])), NONE);
}

const REMOTE: &str = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [https://example.org/definitions.yaml, map.yaml]\n";

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";

/// What could not be built may bring the Kustomization that another one waits for.
#[test]
fn what_may_come_with_an_unbuilt_kustomization_is_not_missing() {
    let (one, two) = (brings("one", "./one", ""), brings("two", "./two", ""));
    let waiting = brings("waiting", "./plain", "dependsOn: [{name: inner}], ");
    let files = [
        ("clusters/test/one.yaml", one.as_str()),
        ("clusters/test/two.yaml", &two),
        ("clusters/test/waiting.yaml", &waiting),
        ("one/kustomization.yaml", REMOTE),
        ("one/map.yaml", MAP),
        ("two/kustomization.yaml", REMOTE),
        ("two/map.yaml", MAP),
        ("plain/map.yaml", MAP),
    ];
    let found = findings(&test_in(&files, &["-o", "json"]));
    let levels = |rule: &str| {
        let of_rule = found.iter().filter(|(found, _)| found == rule);
        of_rule.map(|(_, level)| level.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(levels("dependency/missing"), ["note"], "{found:?}");
    assert_eq!(
        levels("source/unavailable"),
        ["error", "error"],
        "{found:?}"
    );
    assert_eq!(found.len(), 3, "{found:?}");
    let table = test_in(&files, &[]);
    insta::assert_snapshot!(table);
}

/// A cluster is bootstrapped with a Kustomization, and the FluxInstance that it brings syncs a part of the same files.
#[test]
fn an_instance_that_a_root_brings_is_no_second_cluster() {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1h, url: https://example.org/x}\n";
    let root = brings("cluster", "./kubernetes/flux", "");
    let apps = brings("apps", "./kubernetes/apps", "");
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.9.x, registry: ghcr.io/fluxcd}\n  sync: {kind: GitRepository, url: 'https://example.org/x', ref: refs/heads/main, path: kubernetes/flux/cluster}\n";
    let files = [
        ("kubernetes/flux/config/source.yaml", source),
        ("kubernetes/flux/config/cluster.yaml", root.as_str()),
        ("kubernetes/flux/cluster/apps.yaml", &apps),
        ("kubernetes/apps/flux.yaml", instance),
    ];
    let answer = test_in(&files, &["-o", "json"]);
    let answer: Value = serde_json::from_str(&answer.stdout).expect("an answer in JSON");
    let clusters = answer["clusters"].as_array().expect("clusters").iter();
    let paths: Vec<&str> = clusters.filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["./kubernetes/flux"]);
}

/// Somebody made it by hand, or with whatever set the cluster up.
#[test]
fn a_secret_that_nothing_here_makes_is_a_note() {
    let from = |kind: &str| {
        let more = format!("postBuild: {{substituteFrom: [{{kind: {kind}, name: settings}}]}}, ");
        brings("apps", "./apps", &more)
    };
    let level = |kind: &str, args: &[&str]| {
        let root = from(kind);
        let files = [
            ("clusters/test/apps.yaml", root.as_str()),
            ("apps/map.yaml", MAP),
        ];
        let found = findings(&test_in(&files, &[&["-o", "json"], args].concat()));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "reference/missing-data");
        found[0].1.clone()
    };
    assert_eq!(level("Secret", &[]), "note");
    assert_eq!(level("ConfigMap", &[]), "error");
    assert_eq!(level("Secret", &["--missing", "strict"]), "error");
    assert_eq!(level("ConfigMap", &["--missing", "note"]), "note");
}

/// The artifact that Flux syncs is made of a directory of the repository.
#[test]
fn a_path_in_an_artifact_of_a_part_of_the_repository_is_not_missing() {
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.9.x, registry: ghcr.io/fluxcd}\n  sync: {kind: OCIRepository, url: 'oci://example.org/x', ref: latest, path: ./clusters/a}\n";
    let files = [
        ("kubernetes/clusters/a/flux.yaml", instance),
        ("kubernetes/clusters/a/map.yaml", MAP),
    ];
    let answer = test_in(&files, &[]);
    assert!(
        answer.stdout.contains("error[source/unavailable]"),
        "{answer}"
    );
    assert!(
        answer.stdout.contains("use `--repo kubernetes`"),
        "{answer}"
    );
    let part = test_in(&files, &["--repo", "kubernetes"]);
    assert_eq!(part.code, 0, "{part}");
}

#[test]
fn a_variable_in_a_generated_map_is_shown_in_the_file_it_is_made_of() {
    let apps = brings("apps", "./apps", "postBuild: {substitute: {A: b}}, ");
    let files = [
        ("cluster/apps.yaml", apps.as_str()),
        (
            "apps/kustomization.yaml",
            "configMapGenerator:\n- name: web\n  namespace: shop\n  files: [web.conf]\n",
        ),
        ("apps/web.conf", "port 80\nhost ${HOST}\n"),
    ];
    let answer = test_in(&files, &["--path", "cluster"]);
    assert!(answer.stdout.contains("apps/web.conf:2"), "{answer}");
}
