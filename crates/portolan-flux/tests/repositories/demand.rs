//! Asking for one object builds what it is made of and no more.

use crate::flux::{Files, Outcome, chart, config_map, file, kustomization, release, render};
use portolan_flux::{Demand, Depth, Wanted};

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | quote }}\n";

/// Twenty applications, each a Kustomization with a release; one takes values from what another emits.
fn repository() -> Files {
    let mut files = chart("/charts/web", TEMPLATE);
    files.push(file(
        "/clusters/prod/settings.yaml",
        config_map("flux-system", "settings", "REGION", "north"),
    ));
    files.push(file(
        "/clusters/prod/shared.yaml",
        kustomization("shared", "./shared", ""),
    ));
    files.push(file(
        "/shared/palette.yaml",
        config_map("apps", "palette", "values.yaml", "colour: red"),
    ));
    for number in 1..=20 {
        let name = format!("app-{number}");
        let depends = "  dependsOn:\n  - name: shared\n  postBuild:\n    substituteFrom:\n    - kind: ConfigMap\n      name: settings\n";
        files.push(file(
            format!("/clusters/prod/{name}.yaml"),
            kustomization(&name, &format!("./apps/{name}"), depends),
        ));
        let values = if number == 1 {
            "  valuesFrom:\n  - kind: ConfigMap\n    name: palette\n"
        } else {
            ""
        };
        files.push(file(
            format!("/apps/{name}/release.yaml"),
            release("apps", &name, "./charts/web", values),
        ));
    }
    files
}

fn ask(kustomizations: &[&str], releases: &[&str]) -> Outcome {
    let named = |names: &[&str]| match names {
        [] => Wanted::None,
        names => Wanted::Named(names.iter().map(|name| (*name).into()).collect()),
    };
    let demand = Demand {
        kustomizations: named(kustomizations),
        releases: named(releases),
    };
    render(&repository(), demand)
}

#[test]
fn everything_is_built_when_everything_is_asked_for() {
    let all = render(&repository(), Depth::Releases);
    assert_eq!(all.told(), Vec::<String>::new());
    assert_eq!(
        (
            all.units("Kustomization"),
            all.units("HelmRelease"),
            all.units("Chart")
        ),
        (22, 20, 1)
    );
}

#[test]
fn a_kustomization_is_built_with_the_one_that_emits_it_and_nothing_it_depends_on() {
    let one = ask(&["app-7"], &[]);
    assert_eq!(one.objects("app-7"), ["HelmRelease/apps/app-7"]);
    assert_eq!(
        (one.units("Kustomization"), one.units("HelmRelease")),
        (2, 0)
    );
}

#[test]
fn a_release_is_rendered_with_its_kustomization_its_chart_and_the_data_of_its_values() {
    let one = ask(&[], &["apps/app-1"]);
    assert_eq!(one.told(), Vec::<String>::new());
    assert_eq!(one.release("app-1"), ["ConfigMap/apps/app-1"]);
    assert_eq!(
        (
            one.units("Kustomization"),
            one.units("HelmRelease"),
            one.units("Chart")
        ),
        (3, 1, 1)
    );
}

#[test]
fn a_name_that_does_not_exist_is_searched_for_everywhere() {
    let none = ask(&["app-99"], &[]);
    assert_eq!(none.units("Kustomization"), 22);
    assert!(none.objects("app-99").is_empty());
}

/// What a chart asks of the cluster's kinds depends on every definition in the repository.
#[test]
fn a_chart_that_asks_for_kinds_is_rendered_when_all_are_known() {
    let mut files = repository();
    let template = "{{ if .Capabilities.APIVersions.Has \"example.org/v1/Gizmo\" }}\napiVersion: example.org/v1\nkind: Gizmo\nmetadata:\n  name: made\n{{ end }}";
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gizmos.example.org\nspec:\n  group: example.org\n  names: {kind: Gizmo, plural: gizmos}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: true}\n";
    files.extend(chart("/charts/asks", template));
    files.extend(chart("/charts/defines", definition));
    files.push(file(
        "/apps/app-3/asks.yaml",
        release("apps", "asks", "./charts/asks", ""),
    ));
    files.push(file(
        "/apps/app-4/defines.yaml",
        release("apps", "defines", "./charts/defines", ""),
    ));
    let demand = Demand {
        kustomizations: Wanted::None,
        releases: Wanted::Named(vec!["asks".into()]),
    };
    let one = render(&files, demand);
    assert_eq!(one.release("asks"), ["Gizmo/made"]);
    assert_eq!(one.units("HelmRelease"), 2);
    assert_eq!(one.rendering.releases.len(), 1);
    assert_eq!(
        render(&files, Depth::Releases).release("asks"),
        ["Gizmo/made"]
    );
}
