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

#[test]
fn a_resource_set_that_does_not_build_is_a_failed_case() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: rs, namespace: flux-system}\nspec:\n  inputs: [{tenant: one}]\n  resources:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: << inputs.tenannt >>, namespace: apps}\n";
    let apps = brings("apps", "./apps", "");
    let files = [("cluster/apps.yaml", apps.as_str()), ("apps/set.yaml", set)];
    let answer = test_in(&files, &["--path", "cluster"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.ends_with(" 1 failed\n"), "{answer}");
    let junit = test_in(&files, &["--path", "cluster", "-o", "junit"]);
    assert!(junit.stdout.contains("failures=\"1\""), "{junit}");
}

#[test]
fn a_part_of_an_object_that_a_release_brings_needs_no_field() {
    let apps = brings("apps", "./apps", "");
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1h\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n";
    let whole = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'a:1'}]}}\n";
    for merge in [
        "",
        ", annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}",
    ] {
        let part = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop{merge}}}\nspec: {{template: {{spec: {{hostNetwork: true}}}}}}\n"
        );
        let files = [
            ("cluster/apps.yaml", apps.as_str()),
            ("apps/release.yaml", release),
            ("apps/part.yaml", &part),
            (
                "chart/Chart.yaml",
                "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
            ),
            ("chart/templates/web.yaml", whole),
        ];
        let answer = test_in(&files, &["--path", "cluster"]);
        assert_eq!(answer.code, 0, "{answer}");
    }
}

/// What a chart finds of a Secret is as secret as what it is given of one.
#[test]
fn a_secret_that_a_chart_looks_up_is_hidden_where_it_turns_up() {
    let apps = brings("apps", "./apps", "");
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1h\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n";
    let template = "{{- $s := lookup \"v1\" \"Secret\" \"shop\" \"login\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {s: \"{{ index $s.data \"a\" | b64dec }}\"}\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: shop}\nstringData: {a: planted-topsecret}\n";
    let directory = repository(&[
        ("cluster/apps.yaml", apps.as_str()),
        ("apps/release.yaml", release),
        ("apps/secret.yaml", secret),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        ),
        ("chart/templates/c.yaml", template),
    ]);
    let place = directory.path().to_str().expect("a path in UTF-8");
    for args in [
        &["build", "all"][..],
        &["build", "hr", "web", "-o", "json"],
        &["get", "cm/c", "-o", "yaml"],
        &["explain", "cm/c.data.s"],
    ] {
        let args = [args, &["--path", "cluster", "--offline"]].concat();
        let answer = portolan_in(place, &args);
        assert!(
            !answer.stdout.contains("planted") && !answer.stderr.contains("planted"),
            "{args:?} {answer}"
        );
        assert_eq!(answer.code, 0, "{args:?} {answer}");
    }
}

#[test]
fn a_selection_that_nothing_fits_is_an_error_for_one_cluster_too() {
    let apps = brings("apps", "./apps", "");
    let directory = repository(&[("cluster/apps.yaml", apps.as_str()), ("apps/map.yaml", MAP)]);
    let place = directory.path().to_str().expect("a path in UTF-8");
    for select in [
        &["-l", "app=nosuch"][..],
        &["--only-kinds", "StatefulSet"],
        &["--only-crds"],
    ] {
        let args = [&["build", "all", "--path", "cluster"][..], select].concat();
        let answer = portolan_in(place, &args);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (2, ""),
            "{select:?} {answer}"
        );
    }
}

#[test]
fn a_change_of_the_kubernetes_version_shows_in_what_charts_make_of_it() {
    let apps = brings("apps", "./apps", "");
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1h\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n";
    let side = |version: &str| {
        repository(&[
            ("cluster/apps.yaml", apps.as_str()),
            ("apps/release.yaml", release),
            (
                "chart/Chart.yaml",
                "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
            ),
            (
                "chart/templates/c.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {v: \"{{ .Capabilities.KubeVersion }}\"}\n",
            ),
            (
                "portolan.yaml",
                &format!("versions: {{kubernetes: {version}}}\n"),
            ),
        ])
    };
    let (before, after) = (side("1.33.1"), side("1.34.2"));
    let before = before.path().join("cluster");
    let args = [
        "diff",
        "--path",
        "cluster",
        "--offline",
        "--path-orig",
        before.to_str().expect("UTF-8"),
    ];
    let answer = portolan_in(after.path().to_str().expect("UTF-8"), &args);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("+   v1.34.2"), "{answer}");
}
