//! `ResourceSet`s and `FluxInstance`s, and charts that print objects of Flux: what they make is followed.

use portolan_flux::Depth;

use crate::flux::{chart, config_map, file, kustomization, release, render};

#[test]
fn kustomizations_that_a_resource_set_makes_are_built() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: tenants, namespace: flux-system}\nspec:\n  inputsFrom:\n  - kind: ResourceSetInputProvider\n    selector: {matchLabels: {kind: tenant}}\n  resources:\n  - apiVersion: kustomize.toolkit.fluxcd.io/v1\n    kind: Kustomization\n    metadata: {name: << inputs.tenant >>, namespace: flux-system}\n    spec:\n      path: ./tenants/<< inputs.tenant >>\n      prune: true\n      sourceRef: {kind: GitRepository, name: flux-system}\n";
    let provider = |name: &str| {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {{name: {name}, namespace: flux-system, labels: {{kind: tenant}}}}\nspec:\n  type: Static\n  defaultValues: {{tenant: {name}}}\n"
        )
    };
    let files = vec![
        file("/clusters/prod/set.yaml", set),
        file(
            "/clusters/prod/more.yaml",
            kustomization("more", "./more", ""),
        ),
        file("/more/one.yaml", provider("one")),
        file("/more/two.yaml", provider("two")),
        file(
            "/tenants/one/map.yaml",
            config_map("one", "hello", "a", "b"),
        ),
        file(
            "/tenants/two/map.yaml",
            config_map("two", "hello", "a", "b"),
        ),
    ];
    let outcome = render(&files, Depth::Kustomizations);
    assert_eq!(outcome.told(), Vec::<String>::new());
    assert_eq!(outcome.objects("one"), ["ConfigMap/one/hello"]);
    assert_eq!(outcome.objects("two"), ["ConfigMap/two/hello"]);
}

#[test]
fn the_root_is_patched_by_its_flux_instance() {
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.8.x, registry: ghcr.io/fluxcd}\n  sync: {kind: GitRepository, url: 'https://example.org/fleet', ref: refs/heads/main, path: clusters/prod}\n  kustomize:\n    patches:\n    - target: {kind: Kustomization}\n      patch: |\n        - op: add\n          path: /spec/postBuild\n          value: {substitute: {COLOUR: red}}\n";
    let files = vec![
        file("/clusters/prod/instance.yaml", instance),
        file(
            "/clusters/prod/map.yaml",
            config_map("apps", "paint", "colour", "${COLOUR}"),
        ),
    ];
    let outcome = render(&files, Depth::Kustomizations);
    assert_eq!(outcome.told(), Vec::<String>::new());
    let (_, root) = outcome.rendering.walk.kustomizations.iter().next().unwrap();
    let objects = &root.built.as_ref().unwrap().objects;
    let paint = objects
        .iter()
        .find(|object| object.name() == "paint")
        .unwrap();
    let colour = paint
        .node()
        .at_path(&["data", "colour"])
        .and_then(|node| node.as_str());
    assert_eq!(colour, Some("red"));
}

#[test]
fn kustomizations_and_releases_that_a_chart_prints_are_followed() {
    let template = kustomization("inner", "./inner", "");
    let mut files = chart("/charts/outer", &template);
    files.extend(chart(
        "/charts/plain",
        &config_map("apps", "plain", "a", "b"),
    ));
    files.push(file(
        "/clusters/prod/outer.yaml",
        release("flux-system", "outer", "./charts/outer", ""),
    ));
    files.push(file(
        "/inner/release.yaml",
        release("apps", "plain", "./charts/plain", ""),
    ));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), Vec::<String>::new());
    assert_eq!(outcome.objects("inner"), ["HelmRelease/apps/plain"]);
    assert_eq!(outcome.release("plain"), ["ConfigMap/apps/plain"]);
}

#[test]
fn data_that_a_chart_prints_feeds_variables_and_values() {
    let settings = config_map("flux-system", "settings", "COLOUR", "blue");
    let mut files = chart("/charts/settings", &settings);
    let from = "  postBuild:\n    substituteFrom:\n    - kind: ConfigMap\n      name: settings\n";
    files.push(file(
        "/clusters/prod/release.yaml",
        release("flux-system", "settings", "./charts/settings", ""),
    ));
    files.push(file(
        "/clusters/prod/apps.yaml",
        kustomization("apps", "./apps", from),
    ));
    files.push(file(
        "/apps/map.yaml",
        config_map("apps", "paint-${COLOUR:=none}", "a", "b"),
    ));
    let outcome = render(&files, Depth::Releases);
    assert_eq!(outcome.told(), Vec::<String>::new());
    assert_eq!(outcome.objects("apps"), ["ConfigMap/apps/paint-blue"]);
}

#[test]
fn kustomizations_over_generated_artifacts_find_their_files() {
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: parts, namespace: flux-system}\nspec:\n  sources:\n  - {alias: all, kind: GitRepository, name: flux-system}\n  artifacts:\n  - name: apps\n    copy:\n    - {from: \"@all/apps/base/**\", to: \"@artifact/base/\"}\n    - {from: \"@all/apps/prod/**\", to: \"@artifact/prod/\"}\n";
    let apps = kustomization("apps", "./prod", "").replace(
        "kind: GitRepository\n    name: flux-system",
        "kind: ExternalArtifact\n    name: apps",
    );
    let files = vec![
        file("/clusters/prod/generator.yaml", generator),
        file("/clusters/prod/apps.yaml", apps),
        file(
            "/apps/prod/kustomization.yaml",
            "resources: [../base]\nnamePrefix: prod-\n",
        ),
        file("/apps/base/map.yaml", config_map("apps", "map", "a", "b")),
        file("/apps/base/kustomization.yaml", "resources: [map.yaml]\n"),
    ];
    let outcome = render(&files, Depth::Kustomizations);
    assert_eq!(outcome.told(), Vec::<String>::new());
    assert_eq!(outcome.objects("apps"), ["ConfigMap/apps/prod-map"]);
    let demand = portolan_flux::Demand {
        kustomizations: portolan_flux::Wanted::Named(vec!["apps".into()]),
        releases: portolan_flux::Wanted::None,
    };
    assert_eq!(render(&files, demand).objects("apps").len(), 1);
}

/// The file that somebody can open is that of the repository, not its copy in the artifact.
#[test]
fn places_in_generated_artifacts_are_those_of_the_repository() {
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: parts, namespace: flux-system}\nspec:\n  sources:\n  - {alias: all, kind: GitRepository, name: flux-system}\n  artifacts:\n  - name: infra\n    copy:\n    - {from: \"@all/infrastructure/**\", to: \"@artifact/\"}\n";
    let over_artifact = |name: &str, path: &str| {
        kustomization(name, path, "").replace(
            "kind: GitRepository\n    name: flux-system",
            "kind: ExternalArtifact\n    name: infra",
        )
    };
    let files = vec![
        file("/clusters/prod/generator.yaml", generator),
        file(
            "/clusters/prod/infra.yaml",
            over_artifact("infra", "./controllers"),
        ),
        file("/clusters/prod/bad.yaml", over_artifact("bad", "./broken")),
        file(
            "/infrastructure/controllers/nested.yaml",
            kustomization("nested", "./nowhere", ""),
        ),
        file("/infrastructure/broken/map.yaml", "kind: {\n"),
    ];
    let outcome = render(&files, Depth::Kustomizations);
    assert_eq!(
        outcome.told(),
        [
            "Error Kustomization flux-system/bad: failed to decode Kubernetes YAML from `infrastructure/broken/map.yaml`: line 2, column 1: did not find expected node content at /infrastructure/broken/map.yaml:2",
            "Error Kustomization flux-system/nested: kustomization path `nowhere` does not exist in the source at /infrastructure/controllers/nested.yaml:7",
        ]
    );
}

#[test]
fn of_two_resource_sets_with_one_name_the_first_emitters_counts() {
    let set = |name: &str| {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {{name: set, namespace: flux-system}}\nspec:\n  resources:\n  - apiVersion: kustomize.toolkit.fluxcd.io/v1\n    kind: Kustomization\n    metadata: {{name: {name}, namespace: flux-system}}\n    spec:\n      path: ./apps\n      prune: true\n      sourceRef: {{kind: GitRepository, name: flux-system}}\n"
        )
    };
    let files = vec![
        file("/clusters/prod/a.yaml", kustomization("a", "./a", "")),
        file("/clusters/prod/b.yaml", kustomization("b", "./b", "")),
        file("/a/set.yaml", set("of-a")),
        file("/b/set.yaml", set("of-b")),
        file("/apps/map.yaml", config_map("apps", "hello", "a", "b")),
    ];
    let outcome = render(&files, Depth::Kustomizations);
    assert_eq!(outcome.objects("of-a"), ["ConfigMap/apps/hello"]);
    assert_eq!(outcome.objects("of-b"), Vec::<String>::new());
}
