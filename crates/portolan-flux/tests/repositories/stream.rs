//! What is ready is handed out in one order, and forgotten when nobody else wants it.

use std::sync::{Arc, Mutex};

use portolan_flux::{Depth, OutputSink, Rendering, Retention, streamed_unit};

use crate::flux::{chart, config_map, file, kustomization, open, release, run};

/// Prints a ConfigMap for each release; `asking` charts wait until all kinds are known.
const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: b}\n";
const ASKING: &str = "{{ if .Capabilities.APIVersions.Has \"example.org/v1\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n{{ end }}\n";
const DEFINING: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ships.example.org}\nspec:\n  group: example.org\n  names: {kind: Ship, plural: ships}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true}]\n";

/// Who gave how much, in the order in which it was handed out, and the rendering at the end.
fn streamed(retention: Retention) -> (Vec<String>, Arc<Rendering>) {
    let mut files = vec![
        file(
            "/clusters/prod/apps.yaml",
            kustomization("apps", "./apps", ""),
        ),
        file("/apps/map.yaml", config_map("apps", "map", "a", "b")),
        file("/apps/a.yaml", release("apps", "a", "./charts/plain", "")),
        file("/apps/b.yaml", release("apps", "b", "./charts/asking", "")),
        file("/apps/c.yaml", release("apps", "c", "./charts/plain", "")),
        file(
            "/apps/d.yaml",
            release("apps", "d", "./charts/defining", ""),
        ),
    ];
    files.extend(chart("/charts/plain", TEMPLATE));
    files.extend(chart("/charts/asking", ASKING));
    files.extend(chart("/charts/defining", DEFINING));
    let given = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&given);
    let sink: OutputSink = Box::new(move |ready| {
        let note = format!("{}: {}", ready.emitter, ready.objects.len());
        notes.lock().unwrap().push(note);
    });
    let cluster = open(&files, &Arc::default());
    let unit = streamed_unit(cluster, Depth::Releases, sink, retention);
    let report = run(vec![("cluster", unit)]);
    let given = given.lock().unwrap().clone();
    (given, report.output(&"cluster".into()).unwrap())
}

#[test]
fn releases_follow_kustomizations_by_name_whatever_they_ask_for() {
    let (given, rendering) = streamed(Retention::Keep);
    assert_eq!(
        given,
        [
            "Kustomization flux-system/apps: 5",
            "Kustomization flux-system/flux-system: 1",
            "HelmRelease apps/a: 1",
            "HelmRelease apps/b: 1",
            "HelmRelease apps/c: 1",
            "HelmRelease apps/d: 1",
        ]
    );
    assert!(
        rendering
            .releases
            .values()
            .all(|release| release.objects.is_some())
    );
}

#[test]
fn what_was_handed_out_is_forgotten_on_request() {
    let (given, rendering) = streamed(Retention::Forget);
    assert_eq!(given, streamed(Retention::Keep).0);
    assert!(
        rendering
            .releases
            .values()
            .all(|release| release.objects.is_none())
    );
}

/// What was handed out before may be looked up afterwards.
#[test]
fn objects_that_charts_look_up_are_kept_until_they_did() {
    let looks_up = "{{ $found := lookup \"v1\" \"ConfigMap\" \"apps\" \"a\" }}\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ required \"found\" $found.data.a }}}\n";
    let mut files = vec![
        file(
            "/clusters/prod/apps.yaml",
            kustomization("apps", "./apps", ""),
        ),
        file("/apps/a.yaml", release("apps", "a", "./charts/plain", "")),
        file("/apps/b.yaml", release("apps", "b", "./charts/looks", "")),
        file("/apps/c.yaml", release("apps", "c", "./charts/plain", "")),
    ];
    files.extend(chart("/charts/plain", TEMPLATE));
    files.extend(chart("/charts/looks", looks_up));
    let names = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&names);
    let sink: OutputSink = Box::new(move |ready| {
        let mut names = notes.lock().unwrap();
        names.extend(ready.objects.iter().map(|object| object.name().to_owned()));
    });
    let cluster = open(&files, &Arc::default());
    let unit = streamed_unit(cluster, Depth::Releases, sink, Retention::Forget);
    run(vec![("cluster", unit)]);
    assert_eq!(
        *names.lock().unwrap(),
        ["a", "b", "c", "apps", "a", "b", "c"]
    );
}
