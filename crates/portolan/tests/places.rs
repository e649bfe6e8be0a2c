//! The places that findings name: files of the repository with the right line, whatever printed the object.

mod portolan;

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
