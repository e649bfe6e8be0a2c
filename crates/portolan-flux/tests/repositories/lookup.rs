//! `lookup` in charts finds what the repository brings, whoever brings it.

use std::sync::Arc;

use portolan_flux::{Demand, Depth, Name, Pair, Wanted, pair_unit};
use portolan_object::canonical_json;

use crate::flux::{Files, Outcome, chart, config_map, file, kustomization, release, render, run};
use crate::pair::{TEMPLATE, Tree, compare, open_both};

/// Prints what it finds of a Deployment, and fails without it.
const NEEDS_DEPLOYMENT: &str = "{{ $d := lookup \"apps/v1\" \"Deployment\" \"shop\" .Values.target }}\n{{ if not $d }}{{ fail \"no Deployment\" }}{{ end }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  replicas: {{ $d.spec.replicas | quote }}\n";

/// Prints a Deployment named after the release.
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec: {replicas: {{ .Values.replicas | default 3 }}}\n";

/// Prints the colour of a ConfigMap that it looks up.
const LOOKS_UP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  found: {{ dig \"data\" \"colour\" \"nothing\" (lookup \"v1\" \"ConfigMap\" .Release.Namespace .Values.target) | quote }}\n  paint: {{ .Values.paint | default \"none\" }}\n";

fn repository(apps: &[(&str, String)]) -> Files {
    let mut files = vec![file(
        "/clusters/prod/apps.yaml",
        kustomization("apps", "./apps", ""),
    )];
    for (name, text) in apps {
        files.push(file(format!("/apps/{name}.yaml"), text.clone()));
    }
    files
}

fn printed(outcome: &Outcome, name: &str) -> String {
    let releases = outcome.rendering.releases.iter();
    let mut found = releases.filter(|(id, _)| id.name == name);
    let objects = found.next().unwrap().1.objects.clone().unwrap();
    let texts = objects.iter().map(|object| canonical_json(object.node()));
    texts.map(Result::unwrap).collect()
}

#[test]
fn a_chart_finds_what_another_release_and_a_kustomization_bring() {
    let plain = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: plain, namespace: shop}\nspec: {replicas: 7}\n";
    let mut files = repository(&[
        ("plain", plain.to_owned()),
        // Its name comes before the one of what it looks up.
        (
            "a",
            release("shop", "a", "./charts/needs", "  values: {target: web}\n"),
        ),
        (
            "b",
            release("shop", "b", "./charts/needs", "  values: {target: plain}\n"),
        ),
        ("web", release("shop", "web", "./charts/deployment", "")),
    ]);
    files.extend(chart("/charts/needs", NEEDS_DEPLOYMENT));
    files.extend(chart("/charts/deployment", DEPLOYMENT));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), [""; 0]);
    assert!(printed(&outcome, "a").contains(r#""replicas":"3""#));
    assert!(printed(&outcome, "b").contains(r#""replicas":"7""#));
    // One release that is asked for by name has what it looks up rendered too.
    let named = Demand {
        kustomizations: Wanted::None,
        releases: Wanted::Named(vec![Name::from("shop/a")]),
    };
    let outcome = render(&files, named);
    assert_eq!(outcome.told(), [""; 0]);
    assert!(printed(&outcome, "a").contains(r#""replicas":"3""#));
}

#[test]
fn what_nothing_brings_is_not_found() {
    let absent = release(
        "shop",
        "a",
        "./charts/needs",
        "  values: {target: absent}\n",
    );
    let mut files = repository(&[("a", absent)]);
    files.extend(chart("/charts/needs", NEEDS_DEPLOYMENT));
    let told = render(&files, Depth::Releases).told();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("no Deployment"), "{told:?}");
}

#[test]
fn a_list_holds_what_is_in_the_namespace_and_secrets_are_as_the_cluster_keeps_them() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: SPACE}\nstringData: {k: v}\n";
    let secret = |name: &str, space: &str| secret.replace("NAME", name).replace("SPACE", space);
    let listing = "{{ $l := lookup \"v1\" \"Secret\" \"shop\" \"\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: listing}\ndata:\n  kind: {{ $l.kind }}\n  names: {{ range $l.items }}{{ .metadata.name }}={{ .data.k | b64dec }},{{ end }}\n  none: {{ lookup \"v1\" \"Pod\" \"shop\" \"\" | toJson | quote }}\n  everywhere: {{ len (lookup \"v1\" \"Secret\" \"\" \"\").items | quote }}\n  no-namespace: {{ lookup \"v1\" \"Secret\" \"\" \"b\" | toJson | quote }}\n";
    let mut files = repository(&[
        ("b", secret("b", "shop")),
        ("a", secret("a", "shop")),
        ("c", secret("c", "elsewhere")),
        ("list", release("shop", "list", "./charts/listing", "")),
    ]);
    files.extend(chart("/charts/listing", listing));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), [""; 0]);
    assert_eq!(
        printed(&outcome, "list"),
        r#"{"apiVersion":"v1","data":{"everywhere":"3","kind":"SecretList","names":"a=v,b=v,","no-namespace":"{}","none":"{}"},"kind":"ConfigMap","metadata":{"name":"listing","namespace":"shop"}}"#
    );
}

/// Such a chart would otherwise print its Secret every other time.
#[test]
fn a_chart_does_not_find_what_it_prints_itself() {
    let once = "{{ if not (lookup \"v1\" \"Secret\" .Release.Namespace \"own\") }}\napiVersion: v1\nkind: Secret\nmetadata: {name: own}\n{{ end }}\n";
    let mut files = repository(&[("a", release("shop", "a", "./charts/once", ""))]);
    files.extend(chart("/charts/once", once));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), [""; 0]);
    assert_eq!(outcome.release("a"), ["Secret/shop/own"]);
}

#[test]
fn charts_that_look_each_other_up_end() {
    let target = |name: &str| format!("  values: {{target: {name}}}\n");
    let mut files = repository(&[
        ("a", release("shop", "a", "./charts/looks", &target("b"))),
        ("b", release("shop", "b", "./charts/looks", &target("a"))),
    ]);
    files.extend(chart("/charts/looks", LOOKS_UP));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), [""; 0]);
    // Each prints only while the other one does not: there is no end, and that is told.
    let unlike = "{{ if not (lookup \"v1\" \"ConfigMap\" \"shop\" .Values.target) }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n{{ end }}\n";
    files.extend(chart("/charts/looks", unlike));
    let told = render(&files, Depth::Releases).told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("does not come to rest"), "{told:?}");
    assert!(told[0].contains("ConfigMap/shop/b"), "{told:?}");
}

#[test]
fn what_is_looked_up_is_part_of_a_release_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/looks", LOOKS_UP);
    let target = "  values: {target: settings}\n";
    before.add_app("asks", &release("apps", "asks", "./charts/looks", target));
    before.set(
        "/apps/app-1/map.yaml",
        &config_map("apps", "settings", "colour", "red"),
    );
    let mut after = before.clone();
    after.set(
        "/apps/app-1/map.yaml",
        &config_map("apps", "settings", "colour", "green"),
    );
    let (found, _) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/asks", "Kustomization flux-system/app-1"]
    );
}

#[test]
fn what_a_release_that_did_not_change_prints_is_found_by_one_that_did() {
    let mut before = Tree::new();
    before.add_chart("/charts/looks", LOOKS_UP);
    let values = |more: &str| format!("  values: {{target: app-2, {more}}}\n");
    let asks = |more: &str| release("apps", "asks", "./charts/looks", &values(more));
    before.add_app("asks", &asks("paint: red"));
    let mut after = before.clone();
    after.set("/apps/asks/release.yaml", &asks("paint: green"));
    let (found, _) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/asks", "Kustomization flux-system/asks"]
    );
}

#[test]
fn what_a_changed_release_prints_is_found_by_one_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/looks", LOOKS_UP);
    let target = "  values: {target: app-2}\n";
    before.add_app("asks", &release("apps", "asks", "./charts/looks", target));
    let mut after = before.clone();
    let blue = release(
        "apps",
        "app-2",
        "./charts/web",
        "  values: {colour: blue}\n",
    );
    after.set("/apps/app-2/release.yaml", &blue);
    let (found, _) = compare(&before, &after);
    assert_eq!(
        found,
        [
            "HelmRelease apps/app-2",
            "HelmRelease apps/asks",
            "Kustomization flux-system/app-2"
        ]
    );
}

#[test]
fn what_no_chart_looks_up_has_nothing_more_rendered() {
    let mut before = Tree::new();
    let own = "\n  annotations:\n    was: {{ lookup \"v1\" \"ConfigMap\" .Release.Namespace .Release.Name | toJson | quote }}\ndata:";
    before.add_chart("/charts/own", &TEMPLATE.replace("\ndata:", own));
    before.add_app("own", &release("apps", "own", "./charts/own", ""));
    let mut after = before.clone();
    let blue = release("apps", "own", "./charts/own", "  values: {colour: blue}\n");
    after.set("/apps/own/release.yaml", &blue);
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/own", "Kustomization flux-system/own"]
    );
    assert_eq!(made.releases, 2, "only what differs");
}

/// What is found is told as an input of a release that fails on both sides.
#[test]
fn a_release_that_fails_otherwise_because_of_what_it_looks_up_differs() {
    let mut before = Tree::new();
    let fails = "{{ fail (lookup \"v1\" \"ConfigMap\" \"apps\" \"settings\" | toJson) }}";
    before.add_chart("/charts/fails", fails);
    before.add_app("asks", &release("apps", "asks", "./charts/fails", ""));
    let mut after = before.clone();
    after.set(
        "/apps/app-1/map.yaml",
        &config_map("apps", "settings", "colour", "green"),
    );
    let [old, new] = open_both(&before, &after, &Arc::default());
    let report = run(vec![("pair", pair_unit(old, new, Depth::Releases))]);
    let pair: Arc<Pair> = report.output(&"pair".into()).unwrap();
    let differing = pair.not_rendered.releases.iter();
    let differing: Vec<String> = differing
        .flat_map(|(id, differences)| {
            let names = differences.iter();
            names.map(move |difference| format!("{id}: {}", difference.name))
        })
        .collect();
    assert_eq!(differing, ["apps/asks: ConfigMap/apps/settings"]);
}
