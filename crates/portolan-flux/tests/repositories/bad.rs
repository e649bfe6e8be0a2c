//! Every kind of mistake is told with its place, and the rest is still built.

use portolan_flux::{Demand, Depth};
use portolan_object::{Severity, placeholder};

use crate::flux::{Files, Outcome, chart, config_map, file, kustomization, release, render};

/// A repository with one healthy application and something else.
fn with(more: Files) -> Outcome {
    with_demand(more, Depth::Releases)
}

fn with_demand(more: Files, demand: impl Into<Demand>) -> Outcome {
    let mut files = vec![
        file(
            "/clusters/prod/good.yaml",
            kustomization("good", "./good", ""),
        ),
        file("/good/map.yaml", config_map("good", "good", "a", "b")),
        file(
            "/clusters/prod/releases.yaml",
            kustomization("releases", "./releases", ""),
        ),
        file("/releases/map.yaml", config_map("good", "more", "a", "b")),
    ];
    files.extend(more);
    let outcome = render(&files, demand);
    assert_eq!(
        outcome.objects("good"),
        ["ConfigMap/good/good"],
        "the rest is built"
    );
    outcome
}

fn check(more: Files, expected: &[&str]) {
    assert_eq!(with(more).told(), expected);
}

#[test]
fn a_path_that_does_not_exist() {
    check(
        vec![file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./nowhere", ""),
        )],
        &[
            "Error Kustomization flux-system/bad: kustomization path `nowhere` does not exist in the source at /clusters/prod/bad.yaml:7",
        ],
    );
}

#[test]
fn a_source_that_is_not_declared() {
    let bad = kustomization("bad", "./good", "").replace("name: flux-system\n", "name: other\n");
    let outcome = with(vec![file("/clusters/prod/bad.yaml", bad)]);
    assert_eq!(
        outcome.told(),
        [
            "Error Kustomization flux-system/bad: GitRepository flux-system/other does not exist in the repository at /clusters/prod/bad.yaml:12"
        ]
    );
    assert!(outcome.problems()[0].hints[0].contains("--source flux-system/other=DIR"));
}

#[test]
fn an_external_artifact_that_nothing_here_makes() {
    let bad = kustomization("bad", "./good", "").replace(
        "kind: GitRepository\n    name: flux-system\n",
        "kind: ExternalArtifact\n    name: other\n",
    );
    let outcome = with(vec![file("/clusters/prod/bad.yaml", bad)]);
    assert_eq!(
        outcome.told(),
        [
            "Error Kustomization flux-system/bad: ExternalArtifact flux-system/other is made in the cluster, by nothing that the repository holds at /clusters/prod/bad.yaml:12"
        ]
    );
    let hints = &outcome.problems()[0].hints;
    assert!(hints[0].contains("--source flux-system/other=DIR"));
}

#[test]
fn a_source_that_nobody_may_fetch() {
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\nspec: {url: 'https://example.org/other', interval: 1h}\n";
    let bad = kustomization("bad", "./good", "").replace("name: flux-system\n", "name: other\n");
    check(
        vec![
            file("/clusters/prod/bad.yaml", bad),
            file("/clusters/prod/source.yaml", source),
        ],
        &[
            "Error Kustomization flux-system/bad: the files of GitRepository flux-system/other are not at hand at /clusters/prod/bad.yaml:12",
        ],
    );
}

#[test]
fn a_file_that_is_no_yaml() {
    check(
        vec![
            file("/clusters/prod/bad.yaml", kustomization("bad", "./bad", "")),
            file(
                "/bad/broken.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\n",
            ),
        ],
        &[
            "Error Kustomization flux-system/bad: failed to decode Kubernetes YAML from `bad/broken.yaml`: line 4, column 1: did not find expected ',' or '}' at /bad/broken.yaml:4",
        ],
    );
}

#[test]
fn a_resource_that_does_not_exist() {
    let outcome = with(vec![
        file("/clusters/prod/bad.yaml", kustomization("bad", "./bad", "")),
        file(
            "/bad/kustomization.yaml",
            "resources:\n- there.yaml\n- missing.yaml\n",
        ),
        file("/bad/there.yaml", config_map("bad", "there", "a", "b")),
    ]);
    let problem = &outcome.problems()[0];
    let place = problem.place.as_ref().unwrap();
    assert_eq!(
        (place.file.as_str(), place.at.line),
        ("/bad/kustomization.yaml", 3)
    );
}

#[test]
fn fields_of_the_wrong_type() {
    let bad = kustomization("bad", "./good", "  suspend: sometimes\n  components: all\n");
    check(
        vec![file("/clusters/prod/bad.yaml", bad)],
        &[
            "Error Kustomization flux-system/bad: `spec.suspend` must be true or false at /clusters/prod/bad.yaml:13",
            "Error Kustomization flux-system/bad: `spec.components` must be a list at /clusters/prod/bad.yaml:14",
        ],
    );
}

/// The place is that of the file, although variables were put into its text.
#[test]
fn a_field_of_the_wrong_type_in_an_object_with_variables() {
    let apps = kustomization(
        "apps",
        "./apps",
        "  postBuild: {substitute: {PATH: good}}\n",
    );
    let bad = kustomization("bad", "./${PATH}", "  suspend: sometimes\n");
    check(
        vec![
            file("/clusters/prod/apps.yaml", apps),
            file("/apps/bad.yaml", format!("# One.\n# Two.\n{bad}")),
        ],
        &[
            "Error Kustomization flux-system/bad: `spec.suspend` must be true or false at /apps/bad.yaml:15",
        ],
    );
}

#[test]
fn an_expression_that_cannot_be_read() {
    let bad = kustomization("bad", "./bad", "  postBuild: {substitute: {A: b}}\n");
    check(
        vec![
            file("/clusters/prod/bad.yaml", bad),
            file("/bad/map.yaml", config_map("bad", "x", "a", "${A[0]}")),
        ],
        &[
            "Error Kustomization flux-system/bad: variable substitution failed for ConfigMap bad/x: missing closing brace: in `a: ${A[0]}` at /bad/map.yaml:7",
        ],
    );
}

#[test]
fn a_variable_that_nobody_sets() {
    let bad = kustomization("bad", "./bad", "  postBuild: {substitute: {A: b}}\n");
    let outcome = with(vec![
        file("/clusters/prod/bad.yaml", bad),
        file("/bad/map.yaml", config_map("bad", "x", "a", "${B}")),
    ]);
    let problem = &outcome.problems()[0];
    let place = problem.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.at.line), ("/bad/map.yaml", 7));
    assert!(problem.hints[0].contains("default"));
    assert_eq!(outcome.objects("bad"), ["ConfigMap/bad/x"]);
}

#[test]
fn data_that_is_missing_is_an_error_and_what_needs_it_is_built_without() {
    let from = "  postBuild:\n    substituteFrom:\n    - kind: Secret\n      name: keys\n";
    let more = vec![
        file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./bad", from),
        ),
        file("/bad/map.yaml", config_map("bad", "x", "a", "b")),
    ];
    let outcome = with(more);
    assert_eq!(
        outcome.told(),
        [
            "Note Kustomization flux-system/bad: missing Secret flux-system/keys: nothing in the repository makes it at /clusters/prod/bad.yaml:16"
        ]
    );
    assert_eq!(outcome.problems()[0].rule.id, "reference/missing-data");
    assert_eq!(outcome.objects("bad"), ["ConfigMap/bad/x"]);
}

#[test]
fn data_that_something_in_the_repository_makes_is_a_note() {
    let from = "  postBuild:\n    substituteFrom:\n    - kind: Secret\n      name: keys\n";
    let external = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: keys, namespace: flux-system}\nspec: {}\n";
    let outcome = with(vec![
        file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./bad", from),
        ),
        file("/clusters/prod/keys.yaml", external),
        file("/bad/map.yaml", config_map("bad", "x", "a", "b")),
    ]);
    assert_eq!(outcome.problems()[0].severity, Severity::Note);
}

/// The Secret that the variables come from is there once its controller has made it: the name cannot be `-x`.
#[test]
fn a_variable_that_only_the_cluster_sets_is_a_placeholder() {
    let from = "  postBuild:\n    substituteFrom:\n    - kind: Secret\n      name: keys\n      optional: true\n";
    let external = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: keys, namespace: flux-system}\nspec: {}\n";
    let outcome = with(vec![
        file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./bad", from),
        ),
        file("/clusters/prod/keys.yaml", external),
        file(
            "/bad/map.yaml",
            config_map("bad", "${DOMAIN}-${SIZE:=small}-x", "a", "b"),
        ),
    ]);
    let domain = placeholder("variable/DOMAIN");
    assert_eq!(
        outcome.objects("bad"),
        [format!("ConfigMap/bad/{domain}-small-x")]
    );
    assert_eq!(outcome.told(), [""; 0]);
}

/// As the chart of GitHub's runners does.
#[test]
fn a_value_that_only_the_cluster_knows_satisfies_a_chart_that_requires_it() {
    let mut files = chart(
        "/charts/web",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {token: {{ required \"token is required\" .Values.auth.token }}}\n",
    );
    let from = "  valuesFrom:\n  - kind: Secret\n    name: runner\n    valuesKey: token\n    targetPath: auth.token\n";
    files.push(file(
        "/releases/release.yaml",
        release("apps", "web", "./charts/web", from),
    ));
    files.push(file(
        "/releases/external.yaml",
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: runner, namespace: apps}\nspec: {}\n",
    ));
    let outcome = with(files);
    assert_eq!(outcome.release("web"), ["ConfigMap/apps/web"]);
    assert_eq!(outcome.problems()[0].severity, Severity::Note);
    assert_eq!(outcome.problems().len(), 1);
}

#[test]
fn a_kustomization_that_changes_its_own_variables_has_no_end() {
    let from = "  postBuild:\n    substituteFrom:\n    - kind: ConfigMap\n      name: growing\n      optional: true\n";
    let outcome = with(vec![
        file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./bad", from),
        ),
        file(
            "/bad/map.yaml",
            config_map("flux-system", "growing", "N", "${N:=x}x"),
        ),
    ]);
    let told = outcome.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("Error Kustomization flux-system/bad: does not come to rest")
            && told[0].contains("ConfigMap flux-system/growing"),
        "{told:?}"
    );
}

#[test]
fn a_release_that_changes_its_own_values_has_no_end() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: growing}\ndata: {values.yaml: 'word: x{{ .Values.word }}'}\n";
    let mut files = chart("/charts/web", template);
    let from = "  valuesFrom:\n  - kind: ConfigMap\n    name: growing\n    optional: true\n";
    files.push(file(
        "/releases/release.yaml",
        release("apps", "web", "./charts/web", from),
    ));
    let told = with(files).told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("Error HelmRelease apps/web: does not come to rest")
            && told[0].contains("ConfigMap/apps/growing"),
        "{told:?}"
    );
}

#[test]
fn a_resource_set_that_changes_its_own_inputs_has_no_end() {
    let provider = |value: &str| {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {{name: p-{value}, namespace: flux-system, labels: {{grow: 'yes'}}}}\nspec: {{type: Static, defaultValues: {{n: {value}}}}}\n"
        )
    };
    let indented = provider("x<< inputs.n >>").replace('\n', "\n    ");
    let set = format!(
        "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {{name: all, namespace: flux-system}}\nspec:\n  inputsFrom: [{{kind: ResourceSetInputProvider, selector: {{matchLabels: {{grow: 'yes'}}}}}}]\n  resourcesTemplate: |\n    {indented}\n"
    );
    let outcome = with(vec![
        file("/releases/set.yaml", set),
        file("/releases/provider.yaml", provider("x")),
    ]);
    let told = outcome.told();
    assert!(
        told.iter().any(
            |told| told.starts_with("Error ResourceSet flux-system/all: does not come to rest")
        ),
        "{told:?}"
    );
}

#[test]
fn a_dependency_that_does_not_exist() {
    let bad = kustomization(
        "bad",
        "./good",
        "  dependsOn:\n  - name: good\n  - name: nobody\n",
    );
    check(
        vec![file("/clusters/prod/bad.yaml", bad)],
        &[
            "Error Kustomization flux-system/bad: depends on Kustomization flux-system/nobody, which does not exist at /clusters/prod/bad.yaml:15",
        ],
    );
}

#[test]
fn dependencies_in_a_circle() {
    let on = |name: &str| format!("  dependsOn:\n  - name: {name}\n");
    check(
        vec![
            file(
                "/clusters/prod/one.yaml",
                kustomization("one", "./good", &on("two")),
            ),
            file(
                "/clusters/prod/two.yaml",
                kustomization("two", "./good", &on("one")),
            ),
        ],
        &[
            "Error Kustomization flux-system/one: dependencies in a circle: flux-system/one, flux-system/two, flux-system/one at /clusters/prod/one.yaml:14",
        ],
    );
}

#[test]
fn a_chart_that_is_not_there() {
    check(
        vec![file(
            "/releases/release.yaml",
            release("apps", "web", "./charts/none", ""),
        )],
        &[
            "Error HelmRelease apps/web: cannot load chart `./charts/none`: `/charts/none` does not exist at /releases/release.yaml:10",
        ],
    );
}

#[test]
fn a_chart_repository_that_is_not_declared() {
    let bad = release("apps", "web", "web", "").replace("GitRepository", "HelmRepository");
    check(
        vec![file("/releases/release.yaml", bad)],
        &[
            "Error HelmRelease apps/web: HelmRepository flux-system/flux-system does not exist in the repository at /releases/release.yaml:13",
        ],
    );
}

#[test]
fn a_template_that_fails() {
    let mut files = chart("/charts/web", "{{ fail \"no colour\" }}");
    files.push(file(
        "/releases/release.yaml",
        release("apps", "web", "./charts/web", ""),
    ));
    let outcome = with(files);
    let told = outcome.told();
    assert!(
        told[0].contains("no colour") && told[0].ends_with("at /charts/web/templates/all.yaml:1"),
        "{told:?}"
    );
}

#[test]
fn a_value_that_the_schema_refuses_is_told_where_it_is_written() {
    let files = || {
        let mut files = chart("/charts/web", "");
        files.push(file(
            "/charts/web/values.schema.json",
            r#"{"type": "object", "properties": {"web": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}"#,
        ));
        files
    };
    let place = |files: Files| {
        let problems = with(files).problems();
        let place = problems[0].place.clone().unwrap();
        format!("{}:{}", place.file, place.at.line)
    };
    let mut inline = files();
    inline.push(file(
        "/releases/release.yaml",
        release(
            "apps",
            "web",
            "./charts/web",
            "  values:\n    web:\n      replicas: many\n",
        ),
    ));
    assert_eq!(place(inline), "/releases/release.yaml:17");
    let mut referenced = files();
    referenced.push(file(
        "/releases/release.yaml",
        release(
            "apps",
            "web",
            "./charts/web",
            "  valuesFrom:\n  - {kind: ConfigMap, name: sizes}\n",
        ),
    ));
    referenced.push(file(
        "/releases/sizes.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sizes, namespace: apps}\ndata:\n  values.yaml: |\n    web:\n      replicas: many\n",
    ));
    assert_eq!(place(referenced), "/releases/sizes.yaml:7");
}

#[test]
fn values_that_lack_their_key() {
    let mut files = chart("/charts/web", "");
    let from = "  valuesFrom:\n  - kind: ConfigMap\n    name: colours\n";
    files.push(file(
        "/releases/release.yaml",
        release("apps", "web", "./charts/web", from),
    ));
    files.push(file(
        "/releases/colours.yaml",
        config_map("apps", "colours", "other", "x"),
    ));
    check(
        files,
        &[
            "Error HelmRelease apps/web: ConfigMap `colours` has no key `values.yaml` at /releases/release.yaml:17",
        ],
    );
}

#[test]
fn a_suspended_object_is_built_and_noted() {
    let outcome = with(vec![file(
        "/clusters/prod/bad.yaml",
        kustomization("bad", "./good", "  suspend: true\n"),
    )]);
    let told = outcome.told();
    assert_eq!(
        told,
        [
            "Note Kustomization flux-system/bad: suspended: Flux does not apply changes at /clusters/prod/bad.yaml:1"
        ]
    );
}

#[test]
fn a_resource_set_whose_template_fails() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: flux-system}\nspec:\n  inputs: [{a: b}]\n  resourcesTemplate: << inputs.c >>\n";
    let outcome = with(vec![file("/clusters/prod/set.yaml", set)]);
    let told = outcome.told();
    assert!(
        told[0].starts_with("Error ResourceSet flux-system/set: ")
            && told[0].ends_with("at /clusters/prod/set.yaml:6"),
        "{told:?}"
    );
    let problems = outcome.problems();
    assert_eq!(
        problems[0].hints,
        ["`<< inputs.NAME >>` needs NAME in every set of `inputs` and of what `inputsFrom` names"]
    );
}

/// Of several files that name another of the same name, the one that leads nowhere is meant.
#[test]
fn a_resource_that_does_not_exist_is_told_where_it_is_named() {
    check(
        vec![
            file("/clusters/prod/bad.yaml", kustomization("bad", "./bad", "")),
            file("/bad/a/kustomization.yaml", "resources:\n- ./app/ks.yaml\n"),
            file("/bad/a/app/ks.yaml", config_map("bad", "a", "a", "b")),
            file("/bad/b/kustomization.yaml", "resources:\n- ./app/ks.yaml\n"),
        ],
        &[
            "Error Kustomization flux-system/bad: kustomize build failed: accumulating resources: cannot use `./b` as a file (`bad/b` is a directory) or as a directory: recursed accumulation of path `bad/b`: accumulating resources: cannot use `./app/ks.yaml` as a file (`bad/b/app/ks.yaml` does not exist) or as a directory: `bad/b/app/ks.yaml` does not exist at /bad/b/kustomization.yaml:2",
        ],
    );
}

/// Flux would go on for ever as well.
#[test]
fn kustomizations_that_emit_one_another_without_end() {
    let variables = "  postBuild:\n    substitute:\n      N: \"${N}x\"\n";
    let endless = kustomization("${N}x", "./bad", variables);
    let first = kustomization("bad", "./bad", &variables.replace("${N}x", "n"));
    let outcome = with(vec![
        file("/clusters/prod/bad.yaml", first),
        file("/bad/next.yaml", endless),
    ]);
    let told = outcome.told();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("which at most 64 others lead to"),
        "{told:?}"
    );
}

#[test]
fn variables_that_grow_without_end() {
    let variables = "  postBuild:\n    substitute:\n      N: \"${N}x\"\n      V: \"${V}${V}\"\n";
    let endless = kustomization("${N}x", "./bad", variables);
    let begin = variables.replace("${N}x", "n").replace("${V}${V}", "vv");
    let outcome = with(vec![
        file(
            "/clusters/prod/bad.yaml",
            kustomization("bad", "./bad", &begin),
        ),
        file("/bad/next.yaml", endless),
    ]);
    let told = outcome.told();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("must be shorter than 1 MiB"), "{told:?}");
}
