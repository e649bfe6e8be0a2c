//! What `portolan test` says it judges for, what it was not told, and how it tells clusters apart.

mod portolan;

use portolan::repository::{kustomization, repository};
use portolan::{Answer, portolan_in};
use serde_json::Value;

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: apps}\nspec: {ports: [{port: 80}]}\n";

/// A Service whose selector is mistyped.
const BROKEN: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: apps}\nspec: {selecter: {app: web}, ports: [{port: 80}]}\n";

/// A `FluxInstance` whose cluster starts where nothing in the repository says.
const INSTANCE: &str = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.x, registry: ghcr.io/fluxcd}\n  sync:\n    kind: GitRepository\n    url: https://example.org/x\n    ref: refs/heads/main\n    path: ${FLUX_PATH}\n";

/// The root of a cluster that brings a directory of apps.
fn apps(path: &str) -> String {
    kustomization("apps", path).replace("spec: {", "spec: {interval: 10m, ")
}

fn test_in(files: &[(&str, &str)], args: &[&str]) -> Answer {
    let directory = repository(files);
    let mut all = vec!["test"];
    all.extend(args);
    portolan_in(directory.path().to_str().expect("a path in UTF-8"), &all)
}

/// Runs the test of a repository with one cluster, one Service and these files.
fn test_with(more: &[(&str, &str)], args: &[&str]) -> Answer {
    let root = apps("./apps");
    let mut files = vec![
        ("clusters/test/apps.yaml", root.as_str()),
        ("apps/app.yaml", SERVICE),
    ];
    files.extend(more);
    test_in(&files, args)
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).expect("an answer in JSON")
}

const TALHELPER: (&str, &str) = (
    "talos/talconfig.yaml",
    "clusterName: test\nkubernetesVersion: v1.33.4\n",
);

#[test]
fn a_test_opens_with_what_it_judges_for() {
    let heading = |more: &[(&str, &str)], args: &[&str]| {
        let answer = test_with(more, args);
        assert_eq!(answer.code, 0, "{answer}");
        answer.stdout.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        heading(&[], &[]),
        "testing test for Kubernetes 1.36 (default), Flux 2.9 (default)"
    );
    assert_eq!(
        heading(&[TALHELPER], &[]),
        "testing test for Kubernetes 1.33.4 (talos/talconfig.yaml:2), Flux 2.9 (default)"
    );
    let settings = (
        "portolan.yaml",
        "versions:\n  flux: 2.7\n  kubernetes: 1.30\n",
    );
    assert_eq!(
        heading(&[TALHELPER, settings], &[]),
        "testing test for Kubernetes 1.30.0 (portolan.yaml:3), Flux 2.7 (portolan.yaml:2)"
    );
    let options = ["--kube-version", "1.31.2", "--flux-version", "2.8"];
    assert_eq!(
        heading(&[TALHELPER, settings], &options),
        "testing test for Kubernetes 1.31.2 (--kube-version), Flux 2.8 (--flux-version)"
    );
    let quiet = test_with(&[TALHELPER], &["-q"]);
    assert_eq!(quiet.stdout, "4 passed, 0 failed\n");
}

#[test]
fn programs_are_told_what_was_judged_for() {
    let answer = json(&test_with(&[TALHELPER], &["-o", "json"]));
    let cluster = &answer["clusters"][0];
    assert_eq!(cluster["name"], "test");
    assert_eq!(
        cluster["kubernetes"],
        serde_json::json!({"version": "1.33.4", "from": "repository", "file": "talos/talconfig.yaml", "line": 2})
    );
    assert_eq!(cluster["flux"]["from"], "default");
    let sarif = json(&test_with(&[TALHELPER], &["-o", "sarif"]));
    let judged = &sarif["runs"][0]["properties"]["clusters"][0];
    assert_eq!(judged["kubernetes"]["version"], "1.33.4");
    let junit = test_with(&[TALHELPER], &["-o", "junit"]).stdout;
    for property in [
        "<property name=\"cluster\" value=\"test\"/>",
        "<property name=\"kubernetes\" value=\"1.33.4\"/>",
        "<property name=\"kubernetes.from\" value=\"talos/talconfig.yaml:2\"/>",
        "<property name=\"flux.from\" value=\"default\"/>",
    ] {
        assert!(junit.contains(property), "{junit}");
    }
}

#[test]
fn a_version_that_nothing_is_known_of_is_a_warning_in_every_format() {
    for (version, word) in [("1.99.0", "newer"), ("1.20.3", "older")] {
        for format in ["table", "json", "junit", "sarif", "github"] {
            let args = ["--kube-version", version, "-o", format];
            let answer = test_with(&[], &args);
            assert!(answer.stdout.contains(word), "{format}: {answer}");
            assert_eq!(answer.code, 0, "{format}: {answer}");
        }
        let answer = test_with(&[], &["--kube-version", version, "--fail-on", "warning"]);
        assert_eq!(answer.code, 1, "{answer}");
        assert!(answer.stdout.contains("version/not-known"), "{answer}");
        assert!(answer.stdout.ends_with("0 failed, 1 warning\n"), "{answer}");
    }
    let answer = test_with(&[], &["--flux-version", "2.99", "-o", "json"]);
    assert_eq!(json(&answer)["findings"][0]["rule"], "version/not-known");
    assert_eq!(json(&answer)["warnings"], 1);
}

/// Kubernetes 1.37 is the first to serve it, and newer than the default.
#[test]
fn a_kind_of_a_newer_release_is_a_note_unless_somebody_chose_the_release() {
    let rule = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: gpu}\nspec: {taint: {key: a, effect: NoSchedule}}\n";
    let rule = [("apps/rule.yaml", rule)];
    let assumed = test_with(&rule, &["-o", "json"]);
    assert_eq!(assumed.code, 0, "{assumed}");
    let finding = &json(&assumed)["findings"][0];
    assert_eq!(finding["rule"], "schema/not-served-yet");
    assert_eq!(finding["level"], "note");
    let chosen = test_with(&rule, &["--kube-version", "1.36", "-o", "json"]);
    assert_eq!(chosen.code, 1, "{chosen}");
    let finding = &json(&chosen)["findings"][0];
    assert_eq!(finding["rule"], "schema/not-served");
    let message = finding["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("; 1.37 does"), "{message}");
}

#[test]
fn settings_that_cannot_be_used_are_an_error_with_their_place() {
    let check = |text: &str, message: &str| {
        let answer = test_with(&[("portolan.yaml", text)], &[]);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains(message), "{answer}");
        assert!(answer.stderr.contains("\nhint: "), "{answer}");
    };
    check("test:\n  disable: [a\nother: 1\n", "portolan.yaml:");
    check(
        "test:\n  disable: [schema/nothing]\n",
        "portolan.yaml:2:13: no rule is called `schema/nothing`",
    );
    check(
        "tests: {}\n",
        "portolan.yaml:1:1: there is no setting `tests`",
    );
    check(
        "versions:\n  kubernets: 1.30\n",
        "portolan.yaml:2:3: there is no setting `versions.kubernets`",
    );
    check(
        "versions: {kubernetes: newest}\n",
        "portolan.yaml:1:24: `versions.kubernetes` is not a version",
    );
    check(
        "kind: Setings\n",
        "portolan.yaml:1:7: nothing reads a document of `kind: Setings`",
    );
    check(
        "kind: Settings\n",
        "portolan.yaml:1:7: settings have no `apiVersion: `",
    );
    let head = "apiVersion: portolan.dev/v1alpha1\nkind: Settings\n";
    check(
        &format!("{head}spec: {{}}\n"),
        "portolan.yaml:3:1: there is no setting `spec`",
    );
    check(
        &format!("{head}---\n{head}"),
        "portolan.yaml:4:1: there is a second document with settings",
    );
    let directory = test_with(&[("portolan.yaml/file", "")], &[]);
    assert_eq!(directory.code, 2, "{directory}");
    let message = "`portolan.yaml` is a directory";
    assert!(directory.stderr.contains(message), "{directory}");
}

/// A document of another kind is for others; settings without a kind count, and are told.
#[test]
fn settings_stand_beside_documents_of_other_kinds() {
    let heading = |text: &str| {
        let answer = test_with(&[("portolan.yaml", text)], &[]);
        assert_eq!(answer.code, 0, "{answer}");
        let heading = answer.stdout.lines().next().unwrap_or_default().to_owned();
        (heading, answer.stderr.contains("have no kind"))
    };
    let versions = "versions: {kubernetes: 1.30}\n";
    let head = "apiVersion: portolan.dev/v1alpha1\nkind: Settings\n";
    let ship = "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nspec: {anything: at all}\n";
    let (with, told) = heading(&format!("{ship}---\n{head}{versions}"));
    assert!(with.contains("Kubernetes 1.30.0 (portolan.yaml:"), "{with}");
    assert!(!told);
    let (bare, told) = heading(&format!("{versions}---\n{ship}"));
    assert!(
        bare.contains("Kubernetes 1.30.0 (portolan.yaml:1)") && told,
        "{bare}"
    );
    let (none, told) = heading(ship);
    assert!(none.contains("(default)") && !told, "{none}");
}

/// Two clusters with the same Service, which is broken in one of them.
fn two_clusters(args: &[&str]) -> Answer {
    let (production, staging) = (apps("./apps/production"), apps("./apps/staging"));
    test_in(
        &[
            ("clusters/production/apps.yaml", &production),
            ("clusters/staging/apps.yaml", &staging),
            ("apps/production/app.yaml", SERVICE),
            ("apps/staging/app.yaml", BROKEN),
        ],
        args,
    )
}

#[test]
fn a_failure_in_one_cluster_is_not_one_of_the_other() {
    let answer = two_clusters(&["-o", "json"]);
    assert_eq!(answer.code, 1, "{answer}");
    let report = json(&answer);
    assert_eq!(
        (&report["passed"], &report["failed"]),
        (&7.into(), &1.into())
    );
    assert_eq!(
        report["findings"][0]["clusters"],
        serde_json::json!(["staging"])
    );
    let names: Vec<&Value> = report["clusters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cluster| &cluster["name"])
        .collect();
    assert_eq!(names, ["production", "staging"]);
}

#[test]
fn junit_counts_by_cluster() {
    let junit = two_clusters(&["-o", "junit"]).stdout;
    for suite in [
        "<testsuite name=\"portolan test: production\" tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"0\">",
        "<testsuite name=\"portolan test: staging\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"0\">",
    ] {
        assert!(junit.contains(suite), "{junit}");
    }
    // Readers that know no suites tell cases apart by class and name.
    for cluster in ["production", "staging"] {
        let class = format!("classname=\"{cluster}: Kustomization flux-system/apps\"");
        assert_eq!(junit.matches(&class).count(), 1, "{junit}");
    }
}

#[test]
fn sarif_names_the_cluster_and_tells_its_findings_apart() {
    let both = apps("./apps");
    let files = [
        ("clusters/production/apps.yaml", both.as_str()),
        ("clusters/staging/apps.yaml", &both),
        ("apps/app.yaml", BROKEN),
    ];
    let log = json(&test_in(&files, &["-o", "sarif"]));
    let results = log["runs"][0]["results"].as_array().expect("results");
    let text = |result: &Value| result["message"]["text"].as_str().map(str::to_owned);
    let messages: Vec<String> = results.iter().filter_map(text).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].ends_with("[production]") && messages[1].ends_with("[staging]"));
    assert_eq!(
        results[0]["properties"]["clusters"],
        serde_json::json!(["production"])
    );
    assert_ne!(
        results[0]["partialFingerprints"],
        results[1]["partialFingerprints"]
    );
}

/// Helm gives the objects of a release its namespace, which the chart does not write.
#[test]
fn a_namespace_is_ignored_also_for_objects_of_releases() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system}\nspec:\n  interval: 1h\n  targetNamespace: legacy\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}\n";
    let chart = [
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        (
            "chart/templates/web.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selecter: {app: web}, ports: [{port: 80}]}\n",
        ),
        ("apps/release.yaml", release),
    ];
    let found = test_with(&chart, &[]);
    assert_eq!(found.code, 1, "{found}");
    let settings = "test:\n  ignore:\n  - {rule: schema/*, namespace: legacy, reason: goes away}\n";
    let mut files = chart.to_vec();
    files.push(("portolan.yaml", settings));
    let ignored = test_with(&files, &[]);
    assert_eq!(ignored.code, 0, "{ignored}");
}

#[test]
fn a_cluster_that_may_start_elsewhere_is_told_in_every_format() {
    let more = [("bootstrap/flux.yaml", INSTANCE)];
    for format in ["table", "json", "junit", "sarif", "github"] {
        let answer = test_with(&more, &["-o", format]);
        assert!(answer.stdout.contains("${FLUX_PATH}"), "{format}: {answer}");
        assert_eq!(answer.code, 0, "{format}: {answer}");
    }
    let answer = test_with(&more, &["-o", "json", "--fail-on", "warning"]);
    assert_eq!(answer.code, 1, "{answer}");
    let finding = &json(&answer)["findings"][0];
    assert_eq!(finding["rule"], "cluster/not-covered");
    assert_eq!(
        (&finding["file"], &finding["line"]),
        (&"bootstrap/flux.yaml".into(), &10.into())
    );
    let table = test_with(&more, &[]);
    assert!(table.stdout.ends_with("0 failed, 1 warning\n"), "{table}");
}

/// What `diff` did not look at is part of its answer, also when nothing differs.
#[test]
fn a_diff_tells_of_a_cluster_that_may_start_elsewhere() {
    let root = apps("./apps");
    let files = [
        ("clusters/test/apps.yaml", root.as_str()),
        ("apps/app.yaml", SERVICE),
        ("bootstrap/flux.yaml", INSTANCE),
    ];
    let (old, new) = (repository(&files), repository(&files));
    let old = old.path().to_str().expect("a path in UTF-8");
    let new = new.path().to_str().expect("a path in UTF-8");
    let diff = |format: &str| portolan_in(new, &["diff", "--path-orig", old, "-o", format]);
    for format in ["unified", "side-by-side", "markdown", "html", "github"] {
        let answer = diff(format);
        assert!(answer.stdout.contains("FLUX_PATH"), "{format}: {answer}");
        assert_eq!(answer.code, 2, "{format}: {answer}");
    }
    let images = portolan_in(new, &["diff", "images", "--path-orig", old]);
    assert!(images.stdout.contains("FLUX_PATH"), "{images}");
    assert_eq!(images.code, 2, "{images}");
    let one = portolan_in(
        new,
        &[
            "diff",
            "--path-orig",
            &format!("{old}/clusters/test"),
            "--path",
            "clusters/test",
        ],
    );
    assert_eq!(
        (one.code, one.stdout.contains("FLUX_PATH")),
        (0, false),
        "{one}"
    );
    let report = json(&diff("json"));
    let told = &report["notCovered"][0];
    assert_eq!(told["rule"], "cluster/not-covered");
    assert_eq!(
        (&told["file"], &told["line"]),
        (&"bootstrap/flux.yaml".into(), &10.into())
    );
    let without = repository(&files[..2]);
    let without = without.path().to_str().expect("a path in UTF-8");
    let gone = portolan_in(without, &["diff", "--path-orig", new]);
    assert_eq!(gone.code, 2, "it may have been there before: {gone}");
}

/// The pod needs a Secret that the controller of another object makes.
#[test]
fn settings_say_what_controllers_make() {
    let objects = "apiVersion: example.com/v1\nkind: Login\nmetadata: {name: shop, namespace: apps}\nspec: {secretName: web}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: apps}\nspec:\n  containers:\n  - {name: web, image: 'web:1', envFrom: [{secretRef: {name: web-token}}]}\n";
    let objects = ("apps/login.yaml", objects);
    let found = test_with(&[objects], &[]);
    assert!(found.stdout.contains("reference/unknown"), "{found}");
    let settings = "test:\n  producers:\n  - {group: example.com, kind: Login, makes: [Secret], name: '{spec.secretName|name}-token'}\n";
    let made = test_with(&[objects, ("portolan.yaml", settings)], &[]);
    assert!(!made.stdout.contains("reference/unknown"), "{made}");
    assert_eq!(made.code, 0, "{made}");
}

/// Values and variables come from a Secret that the controller of another object makes.
#[test]
fn what_controllers_make_by_the_settings_is_not_missing_for_values_and_variables() {
    let shop = kustomization("shop", "./shop").replace(
        "spec: {",
        "spec: {interval: 10m, postBuild: {substituteFrom: [{kind: Secret, name: shop-token}]}, ",
    );
    let release = "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}
  valuesFrom: [{kind: Secret, name: shop-token, valuesKey: token, targetPath: token}]
";
    let files = [
        (
            "apps/login.yaml",
            "apiVersion: example.com/v1\nkind: Login\nmetadata: {name: shop, namespace: flux-system}\n",
        ),
        ("apps/release.yaml", release),
        ("clusters/test/shop.yaml", shop.as_str()),
        (
            "shop/config.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: apps}\ndata: {host: 'a.${DOMAIN}'}\n",
        ),
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        (
            "charts/web/templates/web.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: '{{ required \"a token\" .Values.token }}'}\n",
        ),
    ];
    let missing = test_with(&files, &[]);
    assert!(
        missing.stdout.contains("reference/missing-data"),
        "{missing}"
    );
    let settings = "test:\n  producers:\n  - {group: example.com, kind: Login, makes: Secret, name: '{name}-token'}\n";
    let files = [files.as_slice(), &[("portolan.yaml", settings)]].concat();
    let made = test_with(&files, &[]);
    assert!(!made.stdout.contains("missing"), "{made}");
    assert!(!made.stdout.contains("unset"), "{made}");
    assert_eq!(made.code, 0, "{made}");
}
