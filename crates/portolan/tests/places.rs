//! The places that findings name: files of the repository with the right line, whatever printed the object.

mod portolan;

use portolan::git::GitRepository;
use portolan::repository::{kustomization, repository};
use portolan::{Answer, portolan_in};

/// A chart of the repository with one template.
const CHART: (&str, &str) = (
    "deploy/charts/web/Chart.yaml",
    "apiVersion: v2\nname: web\nversion: 1.0.0\n",
);

const RELEASE: (&str, &str) = (
    "apps/release.yaml",
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ./deploy/charts/web\n      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n  values:\n    size: 10\n",
);

fn test(files: &[(&str, &str)]) -> Answer {
    let apps = kustomization("apps", "./apps").replace("prune", "interval: 1h, prune");
    let mut all = vec![("cluster/apps.yaml", apps.as_str()), RELEASE, CHART];
    all.extend(files);
    let dir = repository(&all);
    let args = ["test", "--repo", ".", "--path", "cluster", "--offline"];
    portolan_in(dir.path().to_str().expect("a path of text"), &args)
}

#[test]
fn a_finding_in_a_chart_of_the_repository_names_the_template() {
    let template = "# A comment.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  size: {{ .Values.size }}\n";
    let answer = test(&[("deploy/charts/web/templates/map.yaml", template)]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(
        answer
            .stdout
            .contains("╭▸ deploy/charts/web/templates/map.yaml:2:1"),
        "{answer}"
    );
    assert!(answer.stdout.contains("2 │ apiVersion: v1"), "{answer}");
}

#[test]
fn a_template_that_fails_is_shown_at_its_line() {
    let template =
        "kind: ConfigMap\nmetadata:\n  name: {{ required \"a name is needed\" .Values.name }}\n";
    let answer = test(&[("deploy/charts/web/templates/map.yaml", template)]);
    assert!(
        answer
            .stdout
            .contains("╭▸ deploy/charts/web/templates/map.yaml:3:12"),
        "{answer}"
    );
    assert!(
        answer.stdout.contains("3 │   name: {{ required"),
        "{answer}"
    );
}

#[test]
fn a_value_that_a_schema_refuses_is_shown_at_its_line_and_column() {
    let answer = test(&[(
        "deploy/charts/web/values.schema.json",
        "{\"properties\": {\"size\": {\"type\": \"string\"}}}",
    )]);
    assert!(
        answer.stdout.contains("╭▸ apps/release.yaml:11:11"),
        "{answer}"
    );
    assert!(answer.stdout.contains("11 │     size: 10"), "{answer}");
}

/// Templates of a part of the chart lie in the part's own directory.
#[test]
fn a_finding_in_a_subchart_names_its_file() {
    let answer = test(&[
        (
            "deploy/charts/web/charts/base/Chart.yaml",
            "apiVersion: v2\nname: base\nversion: 1.0.0\n",
        ),
        (
            "deploy/charts/web/charts/base/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\ndata: {size: 1}\n",
        ),
    ]);
    assert!(
        answer
            .stdout
            .contains("deploy/charts/web/charts/base/templates/map.yaml:4"),
        "{answer}"
    );
}

/// Runs `portolan test` on a cluster of one Kustomization for `./apps`.
fn test_of(files: &[(&str, &str)]) -> Answer {
    let apps = written_out("apps", "./apps", "");
    let mut all = vec![("cluster/apps.yaml", apps.as_str())];
    all.extend(files);
    let dir = repository(&all);
    let args = ["test", "--repo", ".", "--path", "cluster", "--offline"];
    portolan_in(dir.path().to_str().expect("a path of text"), &args)
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  ports:\n  - port: 80\n";

#[test]
fn a_value_that_a_patch_writes_is_shown_in_the_patch() {
    let answer = test_of(&[
        ("base/service.yaml", SERVICE),
        ("base/kustomization.yaml", "resources: [service.yaml]\n"),
        (
            "apps/kustomization.yaml",
            "resources: [../base]\ncomponents: [../parts/affinity]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: web\n      namespace: shop\n    spec:\n      type: NodePrt\n- target: {kind: Service}\n  patch: |-\n    - op: replace\n      path: /spec/ports/0/port\n      value: 99999\n",
        ),
        (
            "parts/affinity/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: patch.yaml\n",
        ),
        (
            "parts/affinity/patch.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  sessionAffinity: Nonsense\n",
        ),
    ]);
    assert_eq!(answer.code, 1, "{answer}");
    for place in [
        "╭▸ apps/kustomization.yaml:11:7\n",
        "11 │       type: NodePrt\n",
        "╭▸ apps/kustomization.yaml:16:14\n",
        "16 │       value: 99999\n",
        "╭▸ parts/affinity/patch.yaml:7:3\n",
        "7 │   sessionAffinity: Nonsense\n",
    ] {
        assert!(answer.stdout.contains(place), "{place}{answer}");
    }
}

/// A patch of the Flux object that applies a Service, and one that is written by a patch of the Flux object above.
#[test]
fn a_value_that_flux_patches_in_is_shown_in_its_patch() {
    let web = "  postBuild: {substitute: {KIND: NodePrt}}\n  patches:\n  - patch: |\n      apiVersion: v1\n      kind: Service\n      metadata: {name: web, namespace: shop}\n      spec:\n        type: ${KIND}\n";
    let above = "  patches:\n  - target: {kind: Kustomization, name: db}\n    patch: |\n      - op: add\n        path: /spec/patches\n        value:\n        - target: {kind: Service}\n          patch: |\n            - op: add\n              path: /spec/sessionAffinity\n              value: Nonsense\n";
    let dir = repository(&[
        ("cluster/apps.yaml", &written_out("apps", "./apps", above)),
        ("apps/web.yaml", &written_out("web", "./web", web)),
        ("apps/db.yaml", &written_out("db", "./db", "")),
        ("web/service.yaml", SERVICE),
        ("db/service.yaml", &SERVICE.replace("web", "db")),
    ]);
    let args = ["test", "--repo", ".", "--path", "cluster", "--offline"];
    let answer = portolan_in(dir.path().to_str().expect("a path of text"), &args);
    assert_eq!(answer.code, 1, "{answer}");
    for place in [
        "╭▸ apps/web.yaml:16:9\n",
        "16 │         type: ${KIND}\n",
        "╭▸ cluster/apps.yaml:19:22\n",
        "19 │               value: Nonsense\n",
    ] {
        assert!(answer.stdout.contains(place), "{place}{answer}");
    }
}

#[test]
fn what_a_resource_set_makes_and_does_not_build_is_shown_at_its_template() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata:\n  name: tenants\n  namespace: flux-system\nspec:\n  inputs:\n  - tenant: red\n  resources:\n  - apiVersion: kustomize.toolkit.fluxcd.io/v1\n    kind: Kustomization\n    metadata:\n      name: ks-<< inputs.tenant >>\n      namespace: flux-system\n    spec:\n      interval: 1h\n      prune: true\n      path: ./nowhere/<< inputs.tenant >>\n      sourceRef: {kind: GitRepository, name: flux-system}\n";
    let answer = test_of(&[("apps/set.yaml", set)]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(
        answer.stdout.contains("╭▸ apps/set.yaml:10:5\n"),
        "{answer}"
    );
}

#[test]
fn a_value_that_a_resource_set_writes_is_shown_in_its_template() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata:\n  name: tenants\n  namespace: flux-system\nspec:\n  inputs:\n  - tenant: red\n    port: 80\n  resources:\n  - apiVersion: v1\n    kind: Service\n    metadata:\n      name: << inputs.tenant >>\n      namespace: shop\n    spec:\n      selecter: {a: b}\n      ports:\n      - port: << inputs.port >>\n  resourcesTemplate: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: << inputs.tenant >>\n      namespace: shop\n    date: {}\n";
    let answer = test_of(&[("apps/set.yaml", set)]);
    assert_eq!(answer.code, 1, "{answer}");
    for place in [
        "╭▸ apps/set.yaml:17:7\n",
        "17 │       selecter: {a: b}\n",
        "╭▸ apps/set.yaml:26:5\n",
        "26 │     date: {}\n",
    ] {
        assert!(answer.stdout.contains(place), "{place}{answer}");
    }
}

/// A repository, a line of it that is edited, and a field that the edit changes.
struct Layout<'a> {
    files: Vec<(&'a str, String)>,
    edit: (&'a str, &'a str, &'a str),
    /// The object and its field, as `explain` takes them.
    field: &'a str,
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: web\n        image: web:1\n        args:\n        - --one\n        - --two\n";

/// A Kustomization in lines of its own, with more of its spec.
fn written_out(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  interval: 1h\n  prune: true\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
    )
}

/// Checks that the diff names the edited line as the cause, and `explain` the same line as the one that decides.
fn check_agreement(layout: &Layout<'_>) {
    let repository = GitRepository::new();
    for (name, text) in &layout.files {
        repository.write(name, text);
    }
    repository.commit("first");
    let (file, from, to) = layout.edit;
    let line = |text: &str| text.lines().position(|line| line.contains(from));
    let line = line(&repository.read(file)).expect("the line stands there") + 1;
    repository.edit(file, from, to);
    let run = |args: &[&str]| {
        let path = repository.path().to_str().expect("a path of text");
        portolan_in(path, &[args, &["--path", "cluster", "--offline"]].concat())
    };
    let diff = run(&["diff", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&diff.stdout).unwrap_or_default();
    assert!(json["changes"].is_array(), "{diff}");
    let changes = json["changes"].as_array().expect("a list").iter();
    let causes =
        changes.flat_map(|change| change["because"].as_array().cloned().unwrap_or_default());
    let causes: Vec<String> = causes
        .map(|cause| {
            format!(
                "{}:{}",
                cause["file"].as_str().unwrap_or_default(),
                cause["line"]
            )
        })
        .collect();
    let place = format!("{file}:{line}");
    assert!(causes.contains(&place), "because {causes:?}: {diff}");
    let explained = run(&["explain", layout.field]);
    let words = explained.stdout.split_whitespace();
    let places: Vec<&str> = words.filter(|word| word.contains(".yaml:")).collect();
    assert!(places.contains(&place.as_str()), "{place}: {explained}");
    for cause in &causes {
        assert!(places.contains(&cause.as_str()), "{cause}: {explained}");
    }
}

#[test]
fn because_and_explain_agree_on_a_file() {
    check_agreement(&Layout {
        files: vec![
            ("cluster/web.yaml", kustomization("web", "./web")),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
        ],
        edit: ("web/deployment.yaml", "image: web:1", "image: web:2"),
        field: "deploy/web.spec.template.spec.containers[web].image",
    });
}

#[test]
fn because_and_explain_agree_on_an_item_of_a_list() {
    check_agreement(&Layout {
        files: vec![
            ("cluster/web.yaml", kustomization("web", "./web")),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
        ],
        edit: ("web/deployment.yaml", "- --two", "- --three"),
        field: "deploy/web.spec.template.spec.containers[web].args",
    });
}

#[test]
fn because_and_explain_agree_on_a_patch_of_an_overlay() {
    check_agreement(&Layout {
        files: vec![
            ("cluster/web.yaml", kustomization("web", "./overlay")),
            ("web/kustomization.yaml", "resources: [deployment.yaml]\n".to_owned()),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
            (
                "overlay/kustomization.yaml",
                "resources: [../web]\npatches:\n- path: replicas.yaml\n".to_owned(),
            ),
            (
                "overlay/replicas.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 5\n".to_owned(),
            ),
        ],
        edit: ("overlay/replicas.yaml", "replicas: 5", "replicas: 6"),
        field: "deploy/web.spec.replicas",
    });
}

#[test]
fn because_and_explain_agree_on_a_component() {
    check_agreement(&Layout {
        files: vec![
            ("cluster/web.yaml", kustomization("web", "./web")),
            (
                "web/kustomization.yaml",
                "resources: [deployment.yaml]\ncomponents: [../components/many]\n".to_owned(),
            ),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
            (
                "components/many/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - op: replace\n      path: /spec/replicas\n      value: 7\n".to_owned(),
            ),
        ],
        edit: ("components/many/kustomization.yaml", "value: 7", "value: 8"),
        field: "deploy/web.spec.replicas",
    });
}

#[test]
fn because_and_explain_agree_on_a_patch_inside_of_a_patch() {
    let patches = "  patches:\n  - target: {kind: Kustomization}\n    patch: |\n      - op: add\n        path: /spec/patches\n        value:\n        - target: {kind: Deployment}\n          patch: |\n            - op: replace\n              path: /spec/replicas\n              value: 7\n";
    check_agreement(&Layout {
        files: vec![
            ("cluster/apps.yaml", written_out("apps", "./apps", patches)),
            ("apps/web.yaml", kustomization("web", "./web")),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
        ],
        edit: ("cluster/apps.yaml", "value: 7", "value: 8"),
        field: "deploy/web.spec.replicas",
    });
}

#[test]
fn because_and_explain_agree_on_a_generated_artifact() {
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: parts, namespace: flux-system}\nspec:\n  sources:\n  - {alias: all, kind: GitRepository, name: flux-system}\n  artifacts:\n  - name: part\n    copy:\n    - {from: \"@all/web/**\", to: \"@artifact/copied/\"}\n";
    let web = kustomization("web", "./copied").replace(
        "{kind: GitRepository, name: flux-system}",
        "{kind: ExternalArtifact, name: part}",
    );
    check_agreement(&Layout {
        files: vec![
            ("cluster/generator.yaml", generator.to_owned()),
            ("cluster/web.yaml", web),
            ("web/deployment.yaml", DEPLOYMENT.to_owned()),
        ],
        edit: ("web/deployment.yaml", "replicas: 1", "replicas: 2"),
        field: "deploy/web.spec.replicas",
    });
}

#[test]
fn because_and_explain_agree_on_an_input_of_a_resource_set() {
    let set = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: flux-system}\nspec:\n  inputs:\n  - size: large\n  resourcesTemplate: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: made, namespace: shop}\n    data:\n      size: << inputs.size >>\n";
    check_agreement(&Layout {
        files: vec![("cluster/set.yaml", set.to_owned())],
        edit: ("cluster/set.yaml", "- size: large", "- size: small"),
        field: "cm/made.data.size",
    });
}

#[test]
fn because_and_explain_agree_on_a_template_of_a_chart() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: red\n  size: {{ .Values.size | quote }}\n";
    check_agreement(&Layout {
        files: vec![
            ("cluster/apps.yaml", kustomization("apps", "./apps")),
            (RELEASE.0, RELEASE.1.to_owned()),
            (CHART.0, CHART.1.to_owned()),
            ("deploy/charts/web/templates/map.yaml", template.to_owned()),
        ],
        edit: (
            "deploy/charts/web/templates/map.yaml",
            "colour: red",
            "colour: blue",
        ),
        field: "cm/web.data.colour",
    });
}

#[test]
fn because_and_explain_agree_on_a_literal_of_a_generator() {
    check_agreement(&Layout {
        files: vec![
            ("cluster/web.yaml", kustomization("web", "./web")),
            (
                "web/kustomization.yaml",
                "generatorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n- name: made\n  namespace: shop\n  literals:\n  - colour=red\n".to_owned(),
            ),
        ],
        edit: ("web/kustomization.yaml", "colour=red", "colour=blue"),
        field: "cm/made.data.colour",
    });
}

/// The name of the object ends in a digest of its content, so that it is another one after every edit.
#[test]
fn the_edit_behind_a_generated_object_with_a_digest_in_its_name_is_found() {
    let repository = GitRepository::new();
    repository.write("cluster/web.yaml", &kustomization("web", "./web"));
    let generator =
        "configMapGenerator:\n- name: made\n  namespace: shop\n  files: [settings.yaml]\n";
    repository.write("web/kustomization.yaml", generator);
    repository.write("web/settings.yaml", "colour: red\nsize: 1\n");
    repository.commit("first");
    repository.edit("web/settings.yaml", "size: 1", "size: 2");
    let path = repository.path().to_str().expect("a path of text");
    let diff = portolan_in(path, &["diff", "--path", "cluster", "--offline"]);
    assert!(
        diff.stdout.contains("because web/settings.yaml:2"),
        "{diff}"
    );
}

/// A line that is taken out of a list, or added to it, removes or adds whole objects.
#[test]
fn the_edit_behind_an_object_that_comes_or_goes_is_found() {
    let repository = GitRepository::new();
    repository.write("cluster/web.yaml", &kustomization("web", "./web"));
    let map = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n")
    };
    repository.write(
        "web/kustomization.yaml",
        "resources:\n- kept.yaml\n- gone.yaml\n- last.yaml\n",
    );
    for name in ["kept", "gone", "last", "new"] {
        repository.write(&format!("web/{name}.yaml"), &map(name));
    }
    repository.commit("first");
    repository.edit("web/kustomization.yaml", "- gone.yaml", "- new.yaml");
    let path = repository.path().to_str().expect("a path of text");
    let args = ["diff", "--path", "cluster", "--offline", "-o", "json"];
    let diff = portolan_in(path, &args);
    let json: serde_json::Value = serde_json::from_str(&diff.stdout).unwrap_or_default();
    let changes = json["changes"].as_array().expect("a list");
    let told: Vec<String> = changes
        .iter()
        .map(|change| {
            let cause = &change["because"][0];
            let name = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, file) = (name(&change["change"]), name(&cause["file"]));
            format!("{} {kind} {file}:{}", name(&change["name"]), cause["line"])
        })
        .collect();
    assert_eq!(
        told,
        [
            "gone removed web/kustomization.yaml:3",
            "new added web/kustomization.yaml:3"
        ],
        "{diff}"
    );
}
