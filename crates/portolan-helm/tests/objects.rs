//! What templates see of Helm's own objects, as helm 3.17.3 prints them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use portolan_helm::{Chart, ChartFile, OutputOptions, Package, Release, TemplateInput, template};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\nannotations: {a: b}\nmaintainers: [{name: me, url: u}]\n";

fn rendered(text: &str) -> String {
    let file = |name: &str, text: &str| ChartFile::new(name.to_owned(), text.as_bytes());
    let files = vec![file("Chart.yaml", CHART), file("templates/t.yaml", text)];
    let chart = Chart::new(Package::from_files(files).unwrap());
    let input = TemplateInput::new(Release::new("rel", "default"));
    let output = template(&chart, &input).unwrap();
    let text = output.to_text(&OutputOptions::default()).unwrap();
    let (_, text) = text.split_once(".yaml\n").unwrap();
    text.to_owned()
}

#[test]
fn lists_of_helms_own_structs_have_their_go_type() {
    let types = rendered(
        r#"t: '{{ printf "%T" .Chart.Maintainers }} {{ typeOf .Chart.Dependencies }} {{ kindOf .Chart.Maintainers }}'"#,
    );
    assert_eq!(
        types,
        "t: '[]*chart.Maintainer []*chart.Dependency slice'\n"
    );
}

#[test]
fn toml_of_a_chart_has_the_fields_of_its_metadata() {
    let toml = rendered("t: |\n{{ toToml .Chart | indent 2 }}");
    let lines: Vec<&str> = toml.lines().map(str::trim).collect();
    assert_eq!(lines[1], r#"Name = "web""#);
    assert!(!toml.contains("Metadata"), "{toml}");
    let tables: Vec<_> = lines.iter().filter(|line| line.starts_with('[')).collect();
    assert_eq!(tables, [&"[[Maintainers]]", &"[Annotations]"]);
}

#[test]
fn the_version_of_helm_has_the_fields_of_helm_3() {
    assert_eq!(
        rendered("{{ toYamlPretty .Capabilities.HelmVersion }}"),
        "version: v3.17.3\ngitcommit: e4da49785aa6e6ee2b86efd5dd9e43400318262b\ngittreestate: clean\ngoversion: go1.23.7\n"
    );
}
