//! Charts in the repository, made ready as source-controller does it, and what helm-controller refuses of them.

use crate::flux::{Files, Outcome, chart, file, kustomization, release, render};
use portolan_flux::Depth;

/// A template that prints one value.
const COLOUR: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-{{ .Values.colour }}}\n";

/// A repository with a release of the chart `web`, whose files the test gives.
fn with(chart: Files, more: &str) -> Outcome {
    let mut files = vec![
        file(
            "/clusters/prod/apps.yaml",
            kustomization("apps", "./apps", ""),
        ),
        file(
            "/apps/web.yaml",
            release("shop", "web", "./charts/web", "")
                .replace("      sourceRef:", &format!("{more}      sourceRef:")),
        ),
    ];
    files.extend(chart);
    render(&files, Depth::Releases)
}

#[test]
fn values_files_of_a_tree_stand_for_the_values_of_the_chart() {
    let mut files = chart("/charts/web", COLOUR);
    files[1].1 += "colour: none\n";
    files.push(file("/settings/a.yaml", "colour: red\n"));
    files.push(file("/settings/b.yaml", "colour: blue\n"));
    let outcome = with(
        files,
        "      valuesFiles: [settings/a.yaml, ./settings/b.yaml]\n",
    );
    assert_eq!(outcome.release("web"), ["ConfigMap/shop/web-blue"]);
}

#[test]
fn a_values_file_that_is_missing_is_an_error_unless_it_may_be() {
    let files = || {
        let mut files = chart("/charts/web", COLOUR);
        files.push(file("/settings/a.yaml", "colour: red\n"));
        files
    };
    let named = "      valuesFiles: [settings/a.yaml, settings/none.yaml]\n";
    assert_eq!(
        with(files(), named).told(),
        [
            "Error HelmRelease shop/web: cannot read values file `settings/none.yaml`: it does not exist at /apps/web.yaml:10"
        ]
    );
    let ignoring = format!("{named}      ignoreMissingValuesFiles: true\n");
    let outcome = with(files(), &ignoring);
    assert_eq!(outcome.release("web"), ["ConfigMap/shop/web-red"]);
}

/// A chart that depends on another one beside it.
fn depending(version: &str) -> Files {
    let mut files = chart("/charts/web", "");
    let dependency =
        format!("- {{name: base, version: '{version}', repository: 'file://../base'}}\n");
    files[0].1 += "dependencies:\n";
    files[0].1 += &dependency;
    files[1].1 += "base: {colour: green}\n";
    files.extend(chart("/charts/base", COLOUR));
    files
}

#[test]
fn a_dependency_that_lies_beside_the_chart_is_put_in() {
    let outcome = with(depending("^1"), "");
    assert_eq!(outcome.told(), [""; 0]);
    assert_eq!(outcome.release("web"), ["ConfigMap/shop/web-green"]);
}

#[test]
fn a_dependency_beside_the_chart_must_be_of_a_version_that_will_do() {
    assert_eq!(
        with(depending("^2"), "").told(),
        [
            "Error HelmRelease shop/web: dependency `base` needs version `^2`, but the chart in `charts/base` has another version at /apps/web.yaml:10"
        ]
    );
}

#[test]
fn a_dependency_that_is_nowhere_is_told_and_one_that_is_vendored_needs_no_directory() {
    let mut files = depending("^1");
    files.retain(|(path, _)| !path.starts_with("/charts/base"));
    assert_eq!(
        with(files.clone(), "").told(),
        [
            "Error HelmRelease shop/web: dependency `base` is neither in `charts/` nor in `charts/base` at /apps/web.yaml:10"
        ]
    );
    files.extend(chart("/charts/web/charts/base", COLOUR));
    let outcome = with(files, "");
    assert_eq!(outcome.release("web"), ["ConfigMap/shop/web-green"]);
}

/// Everything that a chart prints goes through kustomize, which puts Flux's labels on; Helm alone takes the last value.
#[test]
fn a_key_that_a_chart_repeats_is_told() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: first\n  a: last\n";
    let outcome = with(chart("/charts/web", template), "");
    assert_eq!(
        outcome.told(),
        [
            "Note HelmRelease shop/web: Helm takes the release, Flux will not: cannot read what `charts/web/templates/all.yaml:1` gave: line 6, column 3: mapping key \"a\" already defined at line 5 at /apps/web.yaml:1"
        ]
    );
    assert_eq!(outcome.release("web"), ["ConfigMap/shop/c"]);
}

#[test]
fn an_object_that_a_chart_gives_twice_is_told() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\n";
    let outcome = with(chart("/charts/web", template), "");
    assert_eq!(
        outcome.told(),
        [
            "Note HelmRelease shop/web: Helm takes the release, Flux will not: the chart gives v1/ConfigMap/default/c twice, the second time in `charts/web/templates/all.yaml:5` at /apps/web.yaml:1"
        ]
    );
}

#[test]
fn a_definition_below_crds_may_repeat_a_key() {
    let mut files = chart("/charts/web", "");
    files.push(file(
        "/charts/web/crds/a.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\nspec: {scope: Cluster, scope: Namespaced}\n",
    ));
    assert_eq!(with(files, "").told(), [""; 0]);
}
