//! What only the cluster knows is noted and not judged, what several failures have in common is told once, and a change
//! of versions shows.

mod portolan;

use portolan::git::GitRepository;
use portolan::repository::kustomization;
use portolan::{Answer, portolan_in};

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// A Kustomization of the cluster with more in its `spec`.
fn brings(name: &str, path: &str, more: &str) -> String {
    let spec = format!("spec: {{interval: 10m, {more}");
    kustomization(name, path).replace("spec: {", &spec)
}

fn release(name: &str, more: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: apps}}\nspec:\n  interval: 1h\n  chart: {{spec: {{chart: ./chart, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}\n{more}"
    )
}

fn external_secret(name: &str) -> String {
    format!(
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: {name}, namespace: apps}}\nspec: {{secretStoreRef: {{name: s, kind: ClusterSecretStore}}, data: [{{secretKey: values.yaml, remoteRef: {{key: k}}}}]}}\n"
    )
}

/// A git repository of one cluster with these files, committed.
fn committed(files: &[(&str, &str)]) -> GitRepository {
    let repository = GitRepository::new();
    for (name, text) in files {
        repository.write(name, text);
    }
    repository.commit("first");
    repository
}

fn run(repository: &GitRepository, args: &[&str]) -> Answer {
    let directory = repository.path().to_str().expect("a path in UTF-8");
    portolan_in(directory, &[args, &["--offline"]].concat())
}

#[test]
fn values_of_a_secret_that_people_make_are_not_judged() {
    let from = "postBuild: {substituteFrom: [{kind: Secret, name: by-hand}]}, ";
    let apps = brings("apps", "./apps", from);
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"s-${ENV}\", namespace: apps}\nspec:\n  type: ${TYPE}\n  ports:\n  - port: ${PORT}\n";
    let below = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: below, namespace: flux-system}\nspec: {interval: 1m, path: \"./${BELOW}\", prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &apps),
        ("apps/service.yaml", service),
        ("apps/below.yaml", below),
    ]);
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 0, "{answer}");
    let told = "note[build/not-known-here]: Kustomization flux-system/below: its path holds a variable that only the cluster knows";
    assert!(answer.stdout.contains(told), "{answer}");
    // Where nothing is missing, the same texts are mistakes.
    repository.edit("clusters/test/apps.yaml", from, "");
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 1, "{answer}");
    for rule in ["schema/wrong-type", "admission/name", "admission/value"] {
        assert!(answer.stdout.contains(rule), "{rule}: {answer}");
    }
}

#[test]
fn a_release_that_needs_values_of_the_cluster_is_noted_by_test_and_missing_in_build() {
    let apps = brings("apps", "./apps", "");
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: {{ required \"a token is required\" .Values.token }}}\n";
    let from = "  valuesFrom: [{kind: Secret, name: token}]\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &apps),
        ("apps/release.yaml", &release("web", from)),
        ("apps/secret.yaml", &external_secret("token")),
        ("chart/Chart.yaml", CHART),
        ("chart/templates/c.yaml", template),
    ]);
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 0, "{answer}");
    let told = "note[build/not-known-here]: HelmRelease apps/web: cannot be rendered without the values in Secret apps/token";
    assert!(answer.stdout.contains(told), "{answer}");
    assert_eq!(run(&repository, &["test", "--missing", "strict"]).code, 1);
    assert_eq!(run(&repository, &["build", "hr", "web"]).code, 1);
    // A template that no values can fix is a mistake all the same.
    repository.write("chart/templates/c.yaml", "{{ nonsense\n");
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("error[build/failed]"), "{answer}");
}

/// The first letters of two placeholders are the same; those of the values need not be.
#[test]
fn parts_of_values_that_are_not_known_here_are_told_apart() {
    let from = "postBuild: {substituteFrom: [{kind: Secret, name: made}]}, ";
    let secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: made, namespace: flux-system}\nspec: {secretStoreRef: {name: s, kind: ClusterSecretStore}, dataFrom: [{extract: {key: k}}]}\n";
    let maps = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${A:0:8}-x\", namespace: apps}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${B:0:8}-x\", namespace: apps}\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &brings("apps", "./apps", from)),
        ("clusters/test/secret.yaml", secret),
        ("apps/maps.yaml", maps),
    ]);
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 0, "{answer}");
}

#[test]
fn one_kustomization_alone_does_not_miss_what_others_may_bring() {
    let bundle = "apiVersion: trust.cert-manager.io/v1alpha1\nkind: Bundle\nmetadata: {name: ca}\nspec: {sources: [{useDefaultCAs: true}], target: {configMap: {key: ca.crt}}}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";
    let from = "postBuild: {substituteFrom: [{kind: ConfigMap, name: ca}]}, ";
    let repository = committed(&[
        ("clusters/test/trust.yaml", &brings("trust", "./trust", "")),
        ("clusters/test/apps.yaml", &brings("apps", "./apps", from)),
        ("trust/bundle.yaml", bundle),
        ("apps/map.yaml", map),
    ]);
    let answer = run(&repository, &["build", "ks", "apps"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer.stderr.contains("it may come with what is not built"),
        "{answer}"
    );
    // Nobody brings it: to those who look at everything, that is a mistake.
    repository.git(&["rm", "-q", "clusters/test/trust.yaml"]);
    assert_eq!(run(&repository, &["build", "all"]).code, 1);
}

/// Both sides run in one session, and what they share is done once: the version is not shared.
#[test]
fn a_change_of_the_kubernetes_version_between_commits_shows() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {v: \"{{ .Capabilities.KubeVersion }}\"}\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &brings("apps", "./apps", "")),
        ("apps/release.yaml", &release("web", "")),
        ("chart/Chart.yaml", CHART),
        ("chart/templates/c.yaml", template),
        (
            "talconfig.yaml",
            "clusterName: test\nkubernetesVersion: v1.33.1\nnodes: []\n",
        ),
    ]);
    repository.edit("talconfig.yaml", "1.33.1", "1.34.2");
    let answer = run(&repository, &["diff", "--from", "HEAD"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("+   v1.34.2"), "{answer}");
}

#[test]
fn a_kustomization_that_only_the_newer_flux_refuses_is_a_change_of_unknown_content() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\ndata: {a: \"${UNSET}\"}\n";
    let set = "postBuild: {substitute: {X: y}}, ";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &brings("apps", "./apps", set)),
        ("apps/map.yaml", map),
        ("portolan.yaml", "versions: {flux: 2.7}\n"),
    ]);
    repository.write("portolan.yaml", "versions: {flux: 2.9}\n");
    let answer = run(&repository, &["diff", "--from", "HEAD"]);
    assert_eq!(answer.code, 2, "{answer}");
    let told = "changed, not rendered: variable not set (strict mode): \"UNSET\"";
    assert!(answer.stdout.contains(told), "{answer}");
    let answer = run(&repository, &["diff", "--from", "HEAD", "-o", "json"]);
    assert!(answer.stdout.contains("\"side\": \"after\""), "{answer}");
}

#[test]
fn failures_of_one_cause_are_one_paragraph() {
    let map = |number: usize| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}, namespace: apps}}\ndata: {{a: \"${{UNSET}}\"}}\n"
        )
    };
    let chart = "  chart: {spec: {chart: x, version: 1.0.0, sourceRef: {kind: HelmRepository, name: nobody}}}\n";
    let repository = GitRepository::new();
    for number in 1..=12 {
        let more = "postBuild: {substitute: {X: y}}, dependsOn: [{name: nobody}], ";
        let (name, path) = (format!("k{number}"), format!("./apps/{number}"));
        let file = format!("clusters/test/{name}.yaml");
        repository.write(&file, &brings(&name, &path, more));
        repository.write(&format!("apps/{number}/map.yaml"), &map(number));
        let release = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: h{number}, namespace: apps}}\nspec:\n  interval: 1h\n{chart}"
        );
        repository.write(&format!("apps/{number}/release.yaml"), &release);
    }
    repository.commit("first");
    let answer = run(&repository, &["test"]);
    let errors = answer
        .stdout
        .lines()
        .filter(|line| line.starts_with("error["));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(
        errors,
        [
            "error[build/unset-variable]: 12 objects use a variable that has no value: `UNSET` (first: Kustomization flux-system/k1)",
            "error[source/missing]: 12 charts have no source: HelmRepository apps/nobody does not exist in the repository (first: HelmRelease apps/h1)",
            "error[dependency/missing]: 12 objects depend on one that does not exist: Kustomization flux-system/nobody (first: Kustomization flux-system/k1)",
        ],
        "{answer}"
    );
}

#[test]
fn an_object_of_what_could_not_be_rendered_is_not_just_called_unknown() {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: apps}\nspec: {interval: 1h, url: \"http://127.0.0.1:9/charts\"}\n";
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: apps}\nspec: {interval: 1h, chart: {spec: {chart: x, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}}\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &brings("apps", "./apps", "")),
        ("apps/source.yaml", source),
        ("apps/release.yaml", release),
    ]);
    for args in [
        &["explain", "deploy/web.spec"][..],
        &["test", "deploy/web"],
        &["diff", "deploy/web", "--from", "HEAD"],
    ] {
        let answer = run(&repository, args);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(
            answer
                .stderr
                .contains("HelmRelease apps/web could not be rendered: it may bring it"),
            "{answer}"
        );
    }
}

#[test]
fn an_artifact_generator_that_copies_from_nowhere_is_named_with_its_line() {
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: ag, namespace: flux-system}\nspec:\n  sources: [{alias: repo, kind: GitRepository, name: flux-system}]\n  artifacts:\n  - name: infra\n    copy:\n    - {from: \"@repo/nowhere/**\", to: \"@artifact/\"}\n";
    let infra = brings("infra", "./", "").replace(
        "kind: GitRepository, name: flux-system",
        "kind: ExternalArtifact, name: infra",
    );
    let repository = committed(&[
        (
            "clusters/test/root.yaml",
            &brings("flux-system", "./clusters/test", ""),
        ),
        ("clusters/test/infra.yaml", &infra),
        ("clusters/test/generator.yaml", generator),
    ]);
    let answer = run(&repository, &["test"]);
    let told = "ArtifactGenerator flux-system/ag cannot copy from `@repo/nowhere/**`";
    assert!(answer.stdout.contains(told), "{answer}");
    assert!(
        answer.stdout.contains("clusters/test/generator.yaml:9"),
        "{answer}"
    );
}

#[test]
fn the_only_cluster_at_a_path_with_a_variable_is_told_as_that() {
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.x, registry: ghcr.io/fluxcd}\n  sync: {kind: GitRepository, url: \"https://example.com/r.git\", ref: refs/heads/main, path: \"${FLUX_PATH}\"}\n";
    let repository = committed(&[("infra/instance.yaml", instance)]);
    let answer = run(&repository, &["test"]);
    assert_eq!(answer.code, 2, "{answer}");
    let told = "infra/instance.yaml:6 syncs the path `${FLUX_PATH}`, and nothing in the repository sets its variable";
    assert!(answer.stderr.contains(told), "{answer}");
}

#[test]
fn settings_that_are_not_read_are_an_error_in_every_command() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";
    let files = [
        ("clusters/test/apps.yaml", &*brings("apps", "./apps", "")),
        ("apps/map.yaml", map),
    ];
    let repository = committed(&files);
    let told = |args: &[&str], told: &str| {
        let answer = run(&repository, args);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains(told), "{answer}");
    };
    repository.write("portolan.yaml", "test: {disable: [no/rule]}\n");
    for args in [
        &["get", "ks"][..],
        &["build", "all"],
        &["test"],
        &["diff", "--from", "HEAD"],
    ] {
        told(args, "portolan.yaml:1:18: no rule is called `no/rule`");
    }
    repository.git(&["mv", "-f", "apps/map.yaml", "apps/other.yaml"]);
    std::fs::rename(
        repository.path().join("portolan.yaml"),
        repository.path().join("portolan.yml"),
    )
    .expect("renamed");
    told(&["test"], "`portolan.yml` is not read");
    std::fs::remove_file(repository.path().join("portolan.yml")).expect("removed");
    std::os::unix::fs::symlink("nowhere", repository.path().join("portolan.yaml")).expect("linked");
    told(&["test"], "`portolan.yaml` is a link that leads to no file");
}

#[test]
fn a_patch_and_a_template_that_fail_are_shown_at_their_line() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";
    let patched = "resources: [map.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: \"[{op: replace, path: /data}]\"\n";
    let unknown = "resources: [map.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: nobody, namespace: apps}\n";
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: rs, namespace: flux-system}\nspec:\n  inputs: [{tenant: one}]\n  resources:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: << inputs.tenannt >>, namespace: apps}\n";
    let repository = committed(&[
        ("clusters/test/one.yaml", &brings("one", "./one", "")),
        ("clusters/test/two.yaml", &brings("two", "./two", "")),
        ("clusters/test/set.yaml", set),
        ("one/map.yaml", map),
        ("one/kustomization.yaml", patched),
        ("two/map.yaml", map),
        ("two/kustomization.yaml", unknown),
    ]);
    let answer = run(&repository, &["test"]);
    for place in [
        "one/kustomization.yaml:4:",
        "two/kustomization.yaml:3:",
        "clusters/test/set.yaml:9:22",
    ] {
        assert!(answer.stdout.contains(place), "{place}: {answer}");
    }
}

#[test]
fn an_object_in_another_namespace_than_the_one_named_is_pointed_at() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n";
    let repository = committed(&[
        ("clusters/test/apps.yaml", &brings("apps", "./apps", "")),
        ("apps/map.yaml", map),
    ]);
    let answer = run(&repository, &["explain", "cm/a", "-n", "aps"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("there is `cm/a` in apps"),
        "{answer}"
    );
}
