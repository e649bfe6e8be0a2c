//! Kustomizations that are not built because both sides make them of the same – and those that only look like it.
//!
//! Every comparison is checked against rendering both trees in full, object by object.

use crate::flux::{config_map, kustomization, release};
use crate::pair::{TEMPLATE, Tree, compare};

/// Compares a tree with one in which a file has other text, nothing for none.
fn touch(before: &Tree, path: &str, text: Option<&str>) -> (Vec<String>, usize) {
    let mut after = before.clone();
    match text {
        Some(text) => after.set(path, text),
        None => {
            after.0.remove(path).expect("there is such a file");
        }
    }
    let (found, made) = compare(before, &after);
    (found, made.kustomizations)
}

fn substitutes_from(name: &str, path: &str, data: &str) -> String {
    let more = format!("  postBuild: {{substituteFrom: [{{kind: ConfigMap, name: {data}}}]}}\n");
    kustomization(name, path, &more)
}

fn fed_from(name: &str, data: &str) -> String {
    let more = format!("  valuesFrom: [{{kind: ConfigMap, name: {data}}}]\n");
    release("apps", name, "./charts/web", &more)
}

#[test]
fn what_lies_beside_is_not_built() {
    let tree = Tree::new();
    let (found, built) = touch(&tree, "/README.md", Some("new"));
    assert_eq!((found.len(), built), (0, 1), "only the root");
    let map = config_map("apps", "more", "a", "b");
    let (found, built) = touch(&tree, "/apps/app-2/map.yaml", Some(&map));
    assert_eq!(found, ["Kustomization flux-system/app-2"]);
    assert_eq!(built, 3, "the root once, the other on both sides");
}

#[test]
fn a_parent_that_patches_its_children_changes_them() {
    let mut tree = Tree::new();
    let patched = |colour: &str| {
        format!(
            "resources: [app-1.yaml, app-2.yaml, root.yaml]\npatches:\n- target: {{kind: Kustomization, name: app-.*}}\n  patch: |\n    - op: add\n      path: /spec/commonMetadata\n      value: {{labels: {{colour: {colour}}}}}\n"
        )
    };
    let file = "/clusters/prod/kustomization.yaml";
    tree.set(file, &patched("red"));
    let (found, _) = touch(&tree, file, Some(&patched("green")));
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_kustomization_that_goes_takes_its_objects_along() {
    let tree = Tree::new();
    let (found, _) = touch(&tree, "/clusters/prod/app-4.yaml", None);
    assert_eq!(
        found,
        [
            "HelmRelease apps/app-4",
            "Kustomization flux-system/app-4",
            "Kustomization flux-system/root"
        ]
    );
}

#[test]
fn files_that_move_change_nothing_but_the_kustomization() {
    let before = Tree::new();
    let mut after = before.clone();
    let text = after.0.remove("/apps/app-5/release.yaml").unwrap();
    after.set("/moved/release.yaml", &text);
    let moved = kustomization("app-5", "./moved", "");
    after.set("/clusters/prod/app-5.yaml", &moved);
    let (found, _) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/root"]);
}

#[test]
fn variables_reach_whoever_substitutes_them() {
    let mut tree = Tree::new();
    let settings = |colour: &str| {
        format!(
            "configMapGenerator:\n- name: settings\n  namespace: flux-system\n  literals: [COLOUR={colour}]\ngeneratorOptions: {{disableNameSuffixHash: true}}\n"
        )
    };
    tree.set(
        "/clusters/prod/vars.yaml",
        &kustomization("vars", "./vars", ""),
    );
    tree.set("/vars/kustomization.yaml", &settings("red"));
    tree.set(
        "/clusters/prod/painted.yaml",
        &substitutes_from("painted", "./painted", "settings"),
    );
    tree.set(
        "/painted/map.yaml",
        &config_map("apps", "painted", "colour", "${COLOUR}"),
    );
    let (found, _) = touch(&tree, "/vars/kustomization.yaml", Some(&settings("green")));
    assert_eq!(
        found,
        [
            "Kustomization flux-system/painted",
            "Kustomization flux-system/vars"
        ]
    );
    // What substitutes is touched: what it takes has to be built for it.
    let other = config_map("apps", "painted", "colour", "dark ${COLOUR}");
    let (found, built) = touch(&tree, "/painted/map.yaml", Some(&other));
    assert_eq!(found, ["Kustomization flux-system/painted"]);
    assert!(built < 8, "{built}");
}

#[test]
fn data_reaches_releases_that_name_it_with_a_variable() {
    let mut tree = Tree::new();
    let fed = fed_from("fed", "\"${APP}-settings\"");
    tree.set("/apps/fed/release.yaml", &fed);
    let more = "  postBuild: {substitute: {APP: blue}}\n";
    tree.set(
        "/clusters/prod/fed.yaml",
        &kustomization("fed", "./apps/fed", more),
    );
    let settings = |colour: &str| {
        config_map(
            "apps",
            "blue-settings",
            "values.yaml",
            &format!("colour: {colour}"),
        )
    };
    tree.add_app("data", &settings("red"));
    let (found, _) = touch(&tree, "/apps/data/release.yaml", Some(&settings("green")));
    assert_eq!(
        found,
        ["HelmRelease apps/fed", "Kustomization flux-system/data"]
    );
}

#[test]
fn of_several_with_one_name_the_first_counts_though_it_is_not_touched() {
    let mut tree = Tree::new();
    let release_of = |colour: &str| {
        let more = format!("  values: {{colour: {colour}}}\n");
        release("apps", "twin", "./charts/web", &more)
    };
    tree.add_app("a-first", &release_of("red"));
    tree.add_app("b-second", &release_of("red"));
    let (found, _) = touch(
        &tree,
        "/apps/b-second/release.yaml",
        Some(&release_of("blue")),
    );
    assert_eq!(found, ["Kustomization flux-system/b-second"]);

    let data =
        |colour: &str| config_map("apps", "twins", "values.yaml", &format!("colour: {colour}"));
    tree.add_app("a-first", &data("red"));
    tree.add_app("b-second", &data("green"));
    tree.add_app("fed", &fed_from("fed", "twins"));
    let fed = fed_from("fed", "twins") + "  releaseName: other\n";
    let (found, _) = touch(&tree, "/apps/fed/release.yaml", Some(&fed));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn files_elsewhere_count_for_whoever_leads_to_them() {
    let mut tree = Tree::new();
    tree.add_app("led", &config_map("apps", "led", "a", "b"));
    tree.set(
        "/apps/led/kustomization.yaml",
        "resources: [release.yaml]\ncomponents: [../../shared/component]\nconfigMapGenerator:\n- name: files\n  files: [key=../../shared/notes.txt]\n",
    );
    let component = |colour: &str| {
        format!(
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: ../patch.yaml\n  target: {{kind: ConfigMap, name: led}}\ncommonAnnotations: {{colour: {colour}}}\n"
        )
    };
    tree.set("/shared/component/kustomization.yaml", &component("red"));
    let patch = |colour: &str| format!("- op: add\n  path: /data/colour\n  value: {colour}\n");
    tree.set("/shared/patch.yaml", &patch("red"));
    tree.set("/shared/notes.txt", "one");
    let led = ["Kustomization flux-system/led"];
    let green = component("green");
    for (path, text) in [
        ("/shared/component/kustomization.yaml", green.as_str()),
        ("/shared/patch.yaml", &patch("green")),
        ("/shared/notes.txt", "two"),
    ] {
        let (found, built) = touch(&tree, path, Some(text));
        assert_eq!(found, led, "{path}");
        assert_eq!(built, 3, "{path}");
    }
}

#[test]
fn a_file_that_comes_to_a_directory_without_a_kustomization_file_is_built() {
    let tree = Tree::new();
    let map = config_map("apps", "late", "a", "b");
    let (found, _) = touch(&tree, "/apps/app-1/deep/late.yaml", Some(&map));
    assert_eq!(found, ["Kustomization flux-system/app-1"]);
    let (found, _) = touch(
        &tree,
        "/apps/app-1/kustomization.yaml",
        Some("resources: []\n"),
    );
    assert_eq!(
        found,
        ["HelmRelease apps/app-1", "Kustomization flux-system/app-1"]
    );
}

#[test]
fn a_chart_counts_for_its_releases_and_for_charts_that_depend_on_it() {
    let mut tree = Tree::new();
    tree.add_chart("/charts/library", "");
    tree.set(
        "/charts/library/templates/_name.tpl",
        "{{ define \"colour\" }}red{{ end }}",
    );
    tree.add_chart(
        "/charts/dependent",
        &TEMPLATE.replace(".Values.colour | default \"none\"", "include \"colour\" ."),
    );
    tree.set(
        "/charts/dependent/Chart.yaml",
        "apiVersion: v2\nname: dependent\nversion: 1.0.0\ndependencies:\n- {name: library, version: 1.0.0, repository: 'file://../library'}\n",
    );
    tree.add_app(
        "depends",
        &release("apps", "depends", "./charts/dependent", ""),
    );
    let (found, built) = touch(
        &tree,
        "/charts/library/templates/_name.tpl",
        Some("{{ define \"colour\" }}green{{ end }}"),
    );
    assert_eq!(found, ["HelmRelease apps/depends"]);
    assert_eq!(built, 2, "the root and the one that uses it");
}

#[test]
fn values_files_and_charts_named_by_variables_count() {
    let mut tree = Tree::new();
    tree.add_app(
        "valued",
        &release("apps", "valued", "./charts/web", "").replace(
            "      sourceRef",
            "      valuesFiles: [./values/colour.yaml]\n      sourceRef",
        ),
    );
    tree.set("/values/colour.yaml", "colour: red\n");
    let (found, _) = touch(&tree, "/values/colour.yaml", Some("colour: green\n"));
    assert_eq!(found, ["HelmRelease apps/valued"]);

    tree.add_chart("/charts/other", TEMPLATE);
    let more = "  postBuild: {substitute: {CHART: oth}}\n";
    tree.set(
        "/clusters/prod/named.yaml",
        &kustomization("named", "./apps/named", more),
    );
    tree.set(
        "/apps/named/release.yaml",
        &release("apps", "named", "./charts/${CHART}er", ""),
    );
    let template = TEMPLATE.replace("colour:", "paint:");
    let (found, _) = touch(&tree, "/charts/other/templates/all.yaml", Some(&template));
    assert_eq!(found, ["HelmRelease apps/named"]);
}

#[test]
fn kinds_that_are_variables_prefixes_and_ignore_rules_leave_no_gap() {
    let mut tree = Tree::new();
    let nested =
        kustomization("nested", "./nested", "").replace("kind: Kustomization", "kind: ${KIND}");
    tree.set("/apps/hidden/nested.yaml", &nested);
    let more = "  postBuild: {substitute: {KIND: Kustomization}}\n";
    tree.set(
        "/clusters/prod/hidden.yaml",
        &kustomization("hidden", "./apps/hidden", more),
    );
    tree.set("/nested/map.yaml", &config_map("apps", "nested", "a", "b"));
    let map = config_map("apps", "nested", "a", "c");
    let (found, _) = touch(&tree, "/nested/map.yaml", Some(&map));
    assert_eq!(found, ["Kustomization flux-system/nested"]);

    tree.set(
        "/clusters/prod/prefixed.yaml",
        &kustomization("prefixed", "./apps/prefixed", "  namePrefix: pre-\n"),
    );
    tree.set("/apps/prefixed/release.yaml", &fed_from("fed", "settings"));
    let settings = |colour: &str| {
        config_map(
            "apps",
            "settings",
            "values.yaml",
            &format!("colour: {colour}"),
        )
    };
    tree.add_app("data", &settings("red"));
    let (found, _) = touch(&tree, "/apps/data/release.yaml", Some(&settings("green")));
    assert_eq!(found.len(), 2, "{found:?}");

    let (found, _) = touch(&tree, "/apps/.sourceignore", Some("app-2/\n"));
    assert!(!found.is_empty());
}

#[test]
fn what_a_resource_set_makes_is_compared() {
    let mut tree = Tree::new();
    let set = |colour: &str| {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {{name: set, namespace: flux-system}}\nspec:\n  inputs: [{{colour: {colour}}}]\n  resources:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: made, namespace: flux-system}}\n    data: {{COLOUR: << inputs.colour >>}}\n"
        )
    };
    tree.add_app("set", &set("red"));
    tree.set(
        "/clusters/prod/painted.yaml",
        &substitutes_from("painted", "./painted", "made"),
    );
    tree.set(
        "/painted/map.yaml",
        &config_map("apps", "painted", "colour", "${COLOUR}"),
    );
    let (found, _) = touch(&tree, "/apps/set/release.yaml", Some(&set("green")));
    assert_eq!(
        found,
        [
            "Kustomization flux-system/painted",
            "Kustomization flux-system/set",
            "ResourceSet flux-system/set"
        ]
    );
    let (found, _) = touch(
        &tree,
        "/painted/map.yaml",
        Some(&config_map("apps", "painted", "c", "${COLOUR}")),
    );
    assert_eq!(found, ["Kustomization flux-system/painted"]);
}
