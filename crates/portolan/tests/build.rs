//! `portolan build` on the example repository and on broken ones.

mod portolan;

use std::process::{Command, Stdio};

use portolan::repository::{HARBOR, kustomization, repository};
use portolan::{portolan_in, wait_for};

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
      namespace: beacon
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
      namespace: beacon
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

/// All keys stand under `data`, and `<hidden>` is not base64.
#[test]
fn no_cluster_takes_a_secret_with_hidden_values() {
    let dir = repository(&[(
        "cluster/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData: {key: planted-value}\ndata: {raw: cGxhbnRlZA==}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\ndata: {copy: 'x planted-value y', number: 1}\n",
    )]);
    let path = dir.path().to_str().unwrap();
    let base = [
        "build",
        "ks",
        "--no-owner-labels",
        "--repo",
        ".",
        "--path",
        "cluster",
    ];
    insta::assert_snapshot!(portolan_in(path, &base), @r"
    exit 0
    --- stdout
    ---
    apiVersion: v1
    data:
      key: <hidden>
      raw: <hidden>
    kind: Secret
    metadata:
      name: s
      namespace: d
    ---
    apiVersion: v1
    data:
      copy: x <hidden> y
      number: 1
    kind: ConfigMap
    metadata:
      name: c
      namespace: d

    --- stderr
    note: the values of 1 Secret are hidden, and no cluster takes it like this: --show-secrets shows the values, --skip-secrets leaves it out
    note: values that come from Secrets are hidden in 1 other object, do not apply it like this: --show-secrets shows the values
    ");
    insta::assert_snapshot!(portolan_in(path, &[&base[..], &["-o", "json", "-q"]].concat()), @r#"
    exit 0
    --- stdout
    {"apiVersion":"portolan.dev/v1alpha1","kind":"ObjectList","items":[
    {"apiVersion":"v1","data":{"key":"<hidden>","raw":"<hidden>"},"kind":"Secret","metadata":{"name":"s","namespace":"d"}},
    {"apiVersion":"v1","data":{"copy":"x <hidden> y","number":1},"kind":"ConfigMap","metadata":{"name":"c","namespace":"d"}}
    ]}
    "#);
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode("<hidden>");
    assert!(decoded.is_err());
    // Without the Secret its values are hidden all the same.
    let skipped = portolan_in(path, &[&base[..], &["--skip-secrets"]].concat());
    assert!(!skipped.to_string().contains("planted"), "{skipped}");
}

#[test]
fn of_a_malformed_secret_nothing_is_shown() {
    for fields in [
        "data: planted-value",
        "data: [planted-value]",
        "stringData: [planted-value]",
        "stringData: {a: [planted-value, {b: planted-value}]}",
        "stringdata: {a: planted-value}",
    ] {
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: d}}\n{fields}\n"
        );
        let dir = repository(&[("cluster/secret.yaml", &secret)]);
        let old = repository(&[(
            "cluster/a.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: d}\n",
        )]);
        let path = dir.path().to_str().unwrap();
        let old = old.path().join("cluster");
        let old = old.to_str().unwrap();
        for command in [
            &["build", "all"][..],
            &["build", "all", "-o", "json"],
            &["get", "objects", "-o", "yaml"],
            &["get", "objects", "-o", "json"],
            &["test"],
            &["test", "-o", "sarif"],
            &["diff", "--full", "--path-orig", old],
            &["diff", "-o", "json", "--path-orig", old],
            &["explain", "secret/s", "-n", "d"],
        ] {
            let args = [command, &["--repo", ".", "--path", "cluster"]].concat();
            let answer = portolan_in(path, &args);
            assert!(answer.code < 2, "{args:?}\n{answer}");
            assert!(
                !answer.to_string().contains("planted"),
                "{args:?}\n{answer}"
            );
        }
    }
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
    error: Kustomization flux-system/bad: kustomization path `nowhere` does not exist in the source
      ╭▸ cluster/bad.yaml:4:14
      │
    4 │ spec: {path: ./nowhere, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
      ╰╴             ━
    hint: paths begin at the top of GitRepository flux-system/flux-system
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
fn charts_are_told_of_further_api_versions() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: d}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}\n";
    let dir = repository(&[
        ("cluster/release.yaml", release),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 0.1.0\n",
        ),
        (
            "chart/templates/cm.yaml",
            "{{ if .Capabilities.APIVersions.Has \"example.org/v1/Boat\" }}\napiVersion: example.org/v1\nkind: Boat\nmetadata: {name: c}\n{{ end }}\n",
        ),
    ]);
    let path = dir.path().to_str().unwrap();
    let args = ["build", "hr", "--path", "cluster", "--repo", "."];
    let plain = portolan_in(path, &args);
    assert_eq!((plain.code, plain.stdout.as_str()), (0, ""), "{plain}");
    let more = ["--api-versions", "a/v1,example.org/v1/Boat"];
    let told = portolan_in(path, &[&args[..], &more[..]].concat());
    assert!(told.stdout.contains("kind: Boat"), "{told}");
}

/// Runs `portolan build` on the example's staging cluster.
fn staging(args: &[&str]) -> portolan::Answer {
    let mut all = vec!["build"];
    all.extend(args);
    all.extend(["--path", "clusters/staging"]);
    portolan_in(HARBOR, &all)
}

/// The kinds of the printed objects, in order.
fn kinds(answer: &portolan::Answer) -> Vec<&str> {
    let lines = answer.stdout.lines();
    lines
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect()
}

#[test]
fn one_of_several_names_that_is_not_there_is_named() {
    insta::assert_snapshot!(staging(&["all", "apps", "becon"]), @r"
    exit 2
    --- stderr
    error: no Kustomization or HelmRelease named `becon`
    hint: there is `beacon` in beacon; `portolan get hr --tree` lists all 4
    ");
}

#[test]
fn a_release_that_is_not_there_suggests_the_nearest() {
    insta::assert_snapshot!(staging(&["hr", "becon"]), @r"
    exit 2
    --- stderr
    error: no HelmRelease named `becon`
    hint: there is only `beacon` in beacon
    ");
}

#[test]
fn kinds_are_chosen_and_left_out() {
    let only = staging(&["ks", "apps", "--only-kinds", "deployment,Service"]);
    assert_eq!(kinds(&only), ["Deployment", "Service"], "{only}");
    let without = staging(&["ks", "apps", "--skip-kinds", "Deployment,Service,Ingress"]);
    assert_eq!(kinds(&without), ["ConfigMap", "HelmRelease", "ConfigMap"]);
}

#[test]
fn definitions_and_secrets_are_left_out_on_request() {
    let dir = repository(&[
        (
            "cluster/crd.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: w.example.com}\n",
        ),
        (
            "cluster/secret.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\n",
        ),
        (
            "cluster/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\n",
        ),
    ]);
    let run = |flags: &[&str]| {
        let base = ["build", "--path", "cluster", "--repo", "."];
        portolan_in(dir.path().to_str().unwrap(), &[&base[..], flags].concat())
    };
    let all = ["ConfigMap", "CustomResourceDefinition", "Secret"];
    assert_eq!(kinds(&run(&[])), all);
    assert_eq!(
        kinds(&run(&["--skip-crds=false", "--skip-secrets=false"])),
        all
    );
    assert_eq!(kinds(&run(&["--skip-crds"])), ["ConfigMap", "Secret"]);
    assert_eq!(
        kinds(&run(&["--skip-secrets"])),
        ["ConfigMap", "CustomResourceDefinition"]
    );
    assert_eq!(kinds(&run(&["--only-crds"])), ["CustomResourceDefinition"]);
}

#[test]
fn owner_labels_are_left_out_on_request() {
    let labels = "kustomize.toolkit.fluxcd.io/name: infrastructure";
    assert!(staging(&["ks", "infrastructure"]).stdout.contains(labels));
    let without = staging(&["ks", "infrastructure", "--no-owner-labels"]);
    assert!(!without.stdout.contains("toolkit.fluxcd.io"), "{without}");
}

#[test]
fn provenance_says_whose_an_object_is_and_where_it_comes_from() {
    let answer = staging(&["ks", "apps", "--provenance", "--only-kinds", "Service"]);
    let comments: Vec<_> = answer.stdout.lines().take(3).collect();
    assert_eq!(comments[0], "---");
    assert_eq!(comments[1], "# Kustomization flux-system/apps");
    assert!(
        comments[2].contains("apps/base/quay/service.yaml:1"),
        "{answer}"
    );
}

#[test]
fn objects_are_printed_as_a_json_list() {
    let answer = staging(&["ks", "infrastructure", "-o", "json", "--no-owner-labels"]);
    assert!(
        answer.stdout.starts_with(
            "{\"apiVersion\":\"portolan.dev/v1alpha1\",\"kind\":\"ObjectList\",\"items\":[\n{\"apiVersion\":\"v1\","
        ),
        "{answer}"
    );
    assert!(answer.stdout.ends_with("}\n]}\n"), "{answer}");
    let list: serde_json::Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert!(
        list["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty())
    );
    let none = staging(&["-n", "nowhere", "-o", "json"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{none}");
}

#[test]
fn each_object_gets_a_file_below_its_cluster_and_owner() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("out");
    let answer = portolan_in(
        HARBOR,
        &["build", "hr", "--output-dir", target.to_str().unwrap()],
    );
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer}");
    let mut files: Vec<String> = walk(&target);
    files.sort();
    insta::assert_snapshot!(files.join("\n"), @r"
    production/HelmRelease/beacon/beacon/beacon/ConfigMap-beacon-light.yaml
    production/HelmRelease/beacon/beacon/beacon/Deployment-beacon.yaml
    production/HelmRelease/beacon/beacon/beacon/Ingress-beacon.yaml
    production/HelmRelease/beacon/beacon/beacon/Service-beacon.yaml
    staging/HelmRelease/beacon/beacon/beacon/ConfigMap-beacon-light.yaml
    staging/HelmRelease/beacon/beacon/beacon/Deployment-beacon.yaml
    staging/HelmRelease/beacon/beacon/beacon/Ingress-beacon.yaml
    staging/HelmRelease/beacon/beacon/beacon/Service-beacon.yaml
    ");
}

#[test]
fn the_same_bytes_come_out_every_time() {
    let first = portolan_in(HARBOR, &["build", "all"]);
    for _ in 0..3 {
        assert_eq!(portolan_in(HARBOR, &["build", "all"]).stdout, first.stdout);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().to_str().unwrap();
    portolan_in(HARBOR, &["build", "all", "--output-file", name]);
    assert_eq!(std::fs::read_to_string(name).unwrap(), first.stdout);
}

#[test]
fn a_directory_stands_for_a_source_that_is_elsewhere() {
    let other = repository(&[(
        "deploy/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-elsewhere, namespace: d}\n",
    )]);
    let spec = kustomization("theirs", "./deploy").replace("name: flux-system}}", "name: theirs}}");
    let dir = repository(&[("cluster/theirs.yaml", &spec)]);
    let base = ["build", "ks", "theirs", "--path", "cluster", "--repo", "."];
    let mapping = format!("theirs={}", other.path().display());
    let answer = portolan_in(
        dir.path().to_str().unwrap(),
        &[&base[..], &["--source", &mapping]].concat(),
    );
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("name: from-elsewhere"), "{answer}");
}

#[test]
fn missing_data_is_an_error_or_a_note_as_one_likes() {
    let spec = kustomization("apps", "./apps").replace(
        "prune: true",
        "prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}",
    );
    let dir = repository(&[
        ("cluster/apps.yaml", &spec),
        (
            "apps/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\ndata: {a: \"${A:=b}\"}\n",
        ),
    ]);
    let run = |missing: &str| {
        portolan_in(
            dir.path().to_str().unwrap(),
            &[
                "build",
                "--path",
                "cluster",
                "--repo",
                ".",
                "--missing",
                missing,
            ],
        )
    };
    let strict = run("strict");
    assert_eq!(strict.code, 1);
    assert!(strict.stderr.contains("error: "), "{strict}");
    assert!(
        strict
            .stderr
            .contains("missing ConfigMap flux-system/settings"),
        "{strict}"
    );
    let note = run("note");
    assert_eq!(note.code, 0);
    assert!(note.stderr.starts_with("note: "), "{note}");
    assert_eq!(strict.stdout, note.stdout);
}

#[test]
fn versions_that_are_none_are_refused() {
    for flag in ["--flux-version", "--kube-version"] {
        let answer = staging(&["all", flag, "newest"]);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains("newest"), "{answer}");
    }
}

/// Every file below a directory.
fn walk(directory: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut queue = vec![directory.to_owned()];
    while let Some(next) = queue.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                queue.push(path);
            } else {
                let inside = path.strip_prefix(directory).expect("it is below");
                files.push(inside.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    files
}

/// As in `portolan build all | head -1`: whoever reads decides when it is enough.
#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["build", "all"])
        .current_dir(HARBOR)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    // Nobody reads from the beginning, so that every write fails.
    drop(child.stdout.take());
    let answer = wait_for(child);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
}

/// Helm 3 hands documents to kustomize with a line break at their end, so a block scalar there keeps its own.
#[test]
fn a_block_scalar_at_the_end_keeps_its_line_break() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: d}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}\n";
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    {{ .Values.x | toYaml }}\n";
    let dir = repository(&[
        ("cluster/release.yaml", release),
        (
            "chart/Chart.yaml",
            "{apiVersion: v2, name: c, version: 1.0.0}",
        ),
        ("chart/values.yaml", "x: null\n"),
        ("chart/templates/c.yaml", template),
    ]);
    let path = dir.path().to_str().unwrap();
    let build = |version: &str| {
        let base = ["build", "hr", "r", "--repo", ".", "--path", "cluster"];
        let answer = portolan_in(path, &[&base[..], &["--flux-version", version]].concat());
        assert_eq!(answer.code, 0, "{answer}");
        answer.stdout
    };
    for version in ["2.7.0", "2.8.0"] {
        let built = build(version);
        assert!(built.contains("  a: |\n    null\n"), "{version}: {built}");
    }
}

#[test]
fn a_release_that_needs_too_much_names_the_limit_and_the_option() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: d}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}\n";
    let dir = repository(&[
        ("cluster/release.yaml", release),
        (
            "chart/Chart.yaml",
            "{apiVersion: v2, name: c, version: 1.0.0}",
        ),
        (
            "chart/templates/c.yaml",
            "{{ range until 100000 }}x{{ end }}",
        ),
    ]);
    let args = [
        "build",
        "hr",
        "--repo",
        ".",
        "--path",
        "cluster",
        "--limit",
        "steps=1000",
    ];
    let answer = portolan_in(dir.path().to_str().unwrap(), &args);
    assert_eq!(answer.code, 1, "{answer}");
    for told in [
        "needs more than 1000 steps",
        "--limit steps=N",
        "templates/c.yaml",
    ] {
        assert!(answer.stderr.contains(told), "{told}: {answer}");
    }
}
