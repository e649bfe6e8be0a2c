//! `portolan template`: the template engine alone.

mod portolan;

use std::fs;

use portolan::{portolan, portolan_with_input};

#[test]
fn values_are_seen_as_in_a_chart() {
    let dir = tempfile::tempdir().unwrap();
    let values = dir.path().join("values.yaml");
    fs::write(&values, "name: harbour\nports: [80, 443]\n").unwrap();
    let text =
        "{{ .Values.name | upper }}{{ range .Values.ports }} {{ . }}{{ end }}{{ .Values.none }}\n";
    let answer = portolan_with_input(
        &["template", "-", "--values", values.to_str().unwrap()],
        text,
    );
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (0, "HARBOUR 80 443\n"),
        "{answer}"
    );
}

#[test]
fn an_error_is_drawn_at_its_place_in_the_words_of_go() {
    insta::assert_snapshot!(portolan_with_input(&["template", "-"], "a\n{{ .Values.x.y }}\n"), @r#"
    exit 1
    --- stderr
    error: template: <stdin>:2:10: executing "<stdin>" at <.Values.x.y>: nil pointer evaluating interface {}.y
      ╭▸ <stdin>:2:11
      │
    2 │ {{ .Values.x.y }}
      ╰╴          ━
    "#);
}

#[test]
fn chance_follows_from_the_file_unless_it_is_to_be_real() {
    let text = "{{ randAlphaNum 24 }}";
    let once = portolan_with_input(&["template", "-"], text);
    assert_eq!(
        once.stdout,
        portolan_with_input(&["template", "-"], text).stdout
    );
    let live = portolan_with_input(&["template", "-", "--live-random"], text);
    assert_ne!(
        live.stdout,
        portolan_with_input(&["template", "-", "--live-random"], text).stdout
    );
}

#[test]
fn a_loop_without_end_is_stopped() {
    let text = r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#;
    let answer = portolan_with_input(&["template", "-"], text);
    assert_eq!(answer.code, 1, "{answer}");
}

#[test]
fn a_file_that_is_missing_is_exit_2() {
    assert_eq!(portolan(&["template", "missing.tmpl"]).code, 2);
}

#[test]
fn a_chart_renders_the_same_twice_unless_chance_is_real() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().to_str().unwrap();
    fs::create_dir(dir.path().join("templates")).unwrap();
    fs::write(
        dir.path().join("Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 0.1.0\n",
    )
    .unwrap();
    fs::write(
        dir.path().join("templates/a.yaml"),
        "a: {{ randAlphaNum 24 }} {{ now | unixEpoch }}\n",
    )
    .unwrap();
    let render =
        |flags: &[&str]| portolan(&[&["helm", "template", "r", chart], flags].concat()).stdout;
    assert_eq!(render(&[]), render(&[]));
    assert!(render(&[]).contains("a: "));
    assert_ne!(render(&["--live-random"]), render(&["--live-random"]));
}

#[test]
fn a_limit_is_named_by_its_error_and_can_be_raised() {
    let text = "{{ range until 100000 }}{{ end }}";
    let answer = portolan_with_input(&["template", "-", "--limit", "steps=50000"], text);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(
        answer.stderr.contains("needs more than 50000 steps")
            && answer.stderr.contains("--limit steps=N"),
        "{answer}"
    );
    let raised = [
        "template",
        "-",
        "--limit",
        "steps=50000",
        "--limit",
        "steps=5000000",
    ];
    assert_eq!(portolan_with_input(&raised, text).code, 0);
    assert_eq!(
        portolan_with_input(&["template", "-", "--limit", "size=1"], text).code,
        2
    );
}
