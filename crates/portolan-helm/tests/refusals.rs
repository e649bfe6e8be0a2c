//! What is said of charts that are refused, word for word as helm 3.17.3 says it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use portolan_helm::{Chart, ChartFile, Package, Profile, Release, TemplateInput, template};

/// The refusal of a chart that has one template beside its `Chart.yaml`.
fn refusal(text: &str, profile: Profile) -> String {
    let file = |name: &str, text: &str| ChartFile::new(name.to_owned(), text.as_bytes());
    let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let files = vec![file("Chart.yaml", chart), file("templates/t.yaml", text)];
    let chart = Chart::new(Package::from_files(files).unwrap());
    let mut input = TemplateInput::new(Release::new("rel", "default"));
    input.profile = profile;
    template(&chart, &input).unwrap_err().to_string()
}

#[test]
fn lines_of_comments_do_not_count_in_helm_3() {
    let text = "{{/*\nof\nno use\n*/}}\n{{- define \"x\" -}}\n{{ if }}";
    assert_eq!(
        refusal(text, Profile::Helm3),
        "parse error at (web/templates/t.yaml:3): missing value for if"
    );
    assert_eq!(
        refusal(text, Profile::Helm4),
        "parse error at (web/templates/t.yaml:6): missing value for if"
    );
}

#[test]
fn a_field_of_the_wrong_type_is_told_with_the_struct_it_lies_in() {
    let told = |text: &str| {
        let refusal = refusal(text, Profile::Helm3);
        let (_, field) = refusal.split_once("Go struct field ").unwrap();
        field.to_owned()
    };
    assert_eq!(told("kind: [A]"), "SimpleHead.kind of type string");
    assert_eq!(
        told("metadata: {name: [a], annotations: [b]}"),
        ".metadata.annotations of type map[string]string"
    );
    assert_eq!(
        told("metadata: {name: {}}"),
        ".metadata.name of type string"
    );
}

/// As helm 4.2.4 prints it.
#[test]
fn helm_4_tells_of_each_template_that_was_running() {
    let text = "{{ define \"x\" }}{{ .Values.a.b }}{{ end }}{{ include \"x\" . }}";
    let expected = "\
web/templates/t.yaml:1:45
  executing \"web/templates/t.yaml\" at <include \"x\" .>:
    error calling include:
web/templates/t.yaml:1:26
  executing \"x\" at <.Values.a.b>:
    nil pointer evaluating interface {}.b";
    assert_eq!(refusal(text, Profile::Helm4), expected);
    let expected = "\
web/templates/t.yaml:1:3
  executing \"web/templates/t.yaml\" at <include \"y\" .>:
    error calling include:
template: no template \"y\" associated with template \"gotpl\"";
    assert_eq!(refusal("{{ include \"y\" . }}", Profile::Helm4), expected);
    // What a function says stays in one line.
    assert_eq!(
        refusal("{{ index .Values \"a\" \"b\" }}", Profile::Helm4),
        refusal("{{ index .Values \"a\" \"b\" }}", Profile::Helm3)
    );
}
