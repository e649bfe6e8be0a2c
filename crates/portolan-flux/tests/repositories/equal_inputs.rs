//! Two trees that know where they differ: what is not touched is neither read nor rendered, and nothing that differs is
//! missed.
//!
//! Every comparison is checked against rendering both trees in full.

use std::sync::Arc;

use portolan_flux::{Depth, Pair, Session, pair_unit};

use crate::flux::{config_map, kustomization, release, run};
use crate::pair::{TEMPLATE, Tree, compare, open_both, work};

/// A template that prints something else once the repository brings a kind.
const ASKING: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  has: {{ .Capabilities.APIVersions.Has \"example.com/v1/Pier\" | quote }}\n  colour: {{ .Values.colour | default \"none\" }}\n";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: piers.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Pier, plural: piers}, versions: [{name: v1, served: true, storage: true}]}\n";

fn coloured(name: &str, chart: &str) -> String {
    release("apps", name, chart, "  values: {colour: blue}\n")
}

#[test]
fn a_value_has_one_kustomization_and_one_release_done_again() {
    let before = Tree::new();
    let mut after = before.clone();
    after.set(
        "/apps/app-3/release.yaml",
        &coloured("app-3", "./charts/web"),
    );
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/app-3", "Kustomization flux-system/app-3"]
    );
    assert_eq!(made, work(3, 1, 2), "the root, and one twice");
}

#[test]
fn a_file_that_no_release_is_made_of_has_no_chart_loaded() {
    let before = Tree::new();
    let mut after = before.clone();
    after.set(
        "/apps/app-3/map.yaml",
        &config_map("apps", "more", "a", "b"),
    );
    let (found, made) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/app-3"]);
    // The release is an object of another build now; its inputs are the same, so its chart is not loaded.
    assert_eq!(made, work(3, 0, 0));
    let mut nothing = before.clone();
    nothing.set("/README.md", "more");
    assert_eq!(compare(&before, &nothing), (vec![], work(1, 0, 0)));
}

#[test]
fn a_chart_has_all_of_its_releases_rendered() {
    let mut before = Tree::new();
    before.add_chart("/charts/other", TEMPLATE);
    before.add_app("other", &release("apps", "other", "./charts/other", ""));
    let mut after = before.clone();
    after.add_chart("/charts/web", &TEMPLATE.replace("colour:", "paint:"));
    let (found, made) = compare(&before, &after);
    assert_eq!(found.len(), 5);
    assert_eq!(made, work(6, 2, 10), "the other chart is not loaded");
}

#[test]
fn data_that_values_come_from_is_part_of_a_release() {
    let mut before = Tree::new();
    let from = "  valuesFrom: [{kind: ConfigMap, name: settings}]\n";
    before.add_app("fed", &release("apps", "fed", "./charts/web", from));
    let settings = |colour: &str| {
        config_map(
            "apps",
            "settings",
            "values.yaml",
            &format!("colour: {colour}"),
        )
    };
    before.set("/clusters/prod/settings.yaml", &settings("red"));
    let mut after = before.clone();
    after.set("/clusters/prod/settings.yaml", &settings("green"));
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/fed", "Kustomization flux-system/root"]
    );
    assert_eq!(made, work(3, 1, 2));
}

/// What a chart prints may lead to files that were touched.
#[test]
fn kustomizations_that_a_chart_prints_are_followed() {
    let mut before = Tree::new();
    before.add_chart("/charts/sync", &kustomization("printed", "./printed", ""));
    before.add_app("sync", &release("flux-system", "sync", "./charts/sync", ""));
    before.set("/printed/map.yaml", &config_map("apps", "deep", "a", "b"));
    let mut after = before.clone();
    after.set("/printed/map.yaml", &config_map("apps", "deep", "a", "c"));
    let (found, made) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/printed"]);
    assert_eq!(made, work(4, 1, 1), "only the one that prints it, once");
}

#[test]
fn a_kind_that_comes_is_told_to_charts_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/asking", ASKING);
    before.add_app("asks", &release("apps", "asks", "./charts/asking", ""));
    let mut after = before.clone();
    after.set("/apps/app-1/definition.yaml", DEFINITION);
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/asks", "Kustomization flux-system/app-1"]
    );
    assert_eq!(made, work(8, 2, 2));
}

#[test]
fn a_chart_that_asks_for_kinds_is_told_those_of_charts_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/asking", ASKING);
    before.add_app("asks", &release("apps", "asks", "./charts/asking", ""));
    before.add_chart("/charts/defining", TEMPLATE);
    before.set("/charts/defining/crds/pier.yaml", DEFINITION);
    before.add_app(
        "defines",
        &release("apps", "defines", "./charts/defining", ""),
    );
    before.add_chart("/charts/foreign", TEMPLATE);
    let foreign = DEFINITION.replace("example.com", "example.org");
    before.set("/charts/foreign/crds/pier.yaml", &foreign);
    before.add_app(
        "foreign",
        &release("apps", "foreign", "./charts/foreign", ""),
    );
    let mut after = before.clone();
    after.set(
        "/apps/asks/release.yaml",
        &coloured("asks", "./charts/asking"),
    );
    let session = Arc::<Session>::default();
    let clusters = open_both(&before, &after, &session);
    let [old, new] = clusters;
    let report = run(vec![("pair", pair_unit(old, new, Depth::Releases))]);
    let pair: Arc<Pair> = report.output(&"pair".into()).unwrap();
    let asks = pair.after.releases.iter().find(|(id, _)| id.name == "asks");
    let objects = asks
        .and_then(|(_, release)| release.objects.clone())
        .unwrap();
    let has = objects[0]
        .node()
        .at_path(&["data", "has"])
        .unwrap()
        .as_str();
    assert_eq!(has, Some("true"));
    let (_, made) = compare(&before, &after);
    assert_eq!(
        made,
        work(4, 2, 2),
        "a chart that defines other kinds stays away"
    );
}

/// A build would render the release first and have its data.
#[test]
fn data_that_only_a_chart_prints_is_had_when_something_that_differs_wants_it() {
    let mut before = Tree::new();
    before.add_chart(
        "/charts/printing",
        &config_map("flux-system", "printed", "COLOUR", "red"),
    );
    before.add_app(
        "printing",
        &release("flux-system", "printing", "./charts/printing", ""),
    );
    let wants = kustomization(
        "wants",
        "./wants",
        "  postBuild: {substituteFrom: [{kind: ConfigMap, name: printed}]}\n",
    );
    before.set("/clusters/prod/wants.yaml", &wants);
    before.set(
        "/wants/map.yaml",
        &config_map("apps", "wants", "colour", "${COLOUR}-1"),
    );
    let mut after = before.clone();
    after.set(
        "/wants/map.yaml",
        &config_map("apps", "wants", "colour", "${COLOUR}-2"),
    );
    let (found, made) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/wants"]);
    assert_eq!(made, work(11, 2, 6));
}
