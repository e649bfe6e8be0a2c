//! What each format makes of one pull request.

mod sides;

use portolan_diff::render::{
    Colour, MARKDOWN_LIMIT, TerminalOptions, github, html, json, markdown, side_by_side, unified,
};
use portolan_diff::{Options, Report, StripAttributes, diff};

use sides::{compared, pull_request, pull_request_report};

#[test]
fn the_terminal_shows_old_values_above_new_ones() {
    insta::assert_snapshot!(unified(&pull_request_report(), &TerminalOptions::default()));
}

#[test]
fn a_wide_terminal_shows_them_side_by_side() {
    let options = TerminalOptions {
        width: 120,
        ..Default::default()
    };
    insta::assert_snapshot!(side_by_side(&pull_request_report(), &options));
}

#[test]
fn colour_marks_what_comes_and_goes() {
    let options = TerminalOptions {
        colour: Colour::Always,
        ..Default::default()
    };
    let text = unified(&pull_request_report(), &options);
    assert!(text.contains("\u{1b}[31m-   128Mi\u{1b}[0m"), "{text}");
    assert!(text.contains("\u{1b}[32m+   256Mi\u{1b}[0m"), "{text}");
}

#[test]
fn json_has_the_promised_keys() {
    insta::assert_snapshot!(json(&pull_request_report()));
}

#[test]
fn markdown_counts_and_folds() {
    insta::assert_snapshot!(markdown(&pull_request_report(), MARKDOWN_LIMIT));
}

#[test]
fn html_is_one_page_without_scripts() {
    let page = html(&pull_request_report(), "diff of <main>");
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    insta::assert_snapshot!(page);
}

#[test]
fn annotations_name_file_and_line() {
    insta::assert_snapshot!(github(&pull_request_report(), "fleet/"));
}

#[test]
fn nothing_that_differs_is_said_in_every_format() {
    let (old, _) = pull_request();
    let report = diff(&old, &old, &Options::default());
    assert_eq!(report, Report::default());
    assert_eq!(
        unified(&report, &TerminalOptions::default()),
        "no differences\n"
    );
    assert_eq!(
        json(&report),
        "{\n  \"apiVersion\": \"portolan.dev/v1alpha1\",\n  \"kind\": \"DiffReport\",\n  \"changes\": [],\n  \"images\": [],\n  \"dangers\": [],\n  \"failures\": [],\n  \"equalInputs\": 0,\n  \"stripped\": 0,\n  \"notCovered\": []\n}\n"
    );
    assert_eq!(
        markdown(&report, MARKDOWN_LIMIT),
        "<!-- portolan diff -->\n### no differences\n"
    );
}

#[test]
fn stripped_attributes_are_no_change_but_their_restart_is_told() {
    let object = |checksum: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{template: {{metadata: {{annotations: {{checksum/config: {checksum}}}}}}}}}}}"
        )
    };
    let options = Options {
        strip: StripAttributes::new(["common"]),
        ..Options::default()
    };
    let side = |checksum| [sides::kustomization("apps", &object(checksum))];
    let report = diff(&side("a"), &side("b"), &options);
    assert!(report.changes.is_empty());
    insta::assert_snapshot!(unified(&report, &TerminalOptions::default()), @r"
    1 restart

    Deployment web rolls 1 pod

    1 object differs only in labels and annotations that are left out; --no-strip shows them
    ");
}

/// Every text that a format prints, by its name.
fn every_format(report: &Report) -> [(&'static str, String); 7] {
    let plain = TerminalOptions {
        full: true,
        width: 300,
        ..Default::default()
    };
    let coloured = TerminalOptions {
        colour: Colour::Always,
        ..plain
    };
    [
        ("unified", unified(report, &plain)),
        ("coloured", unified(report, &coloured)),
        ("side by side", side_by_side(report, &plain)),
        ("json", json(report)),
        ("markdown", markdown(report, MARKDOWN_LIMIT)),
        ("html", html(report, "diff")),
        ("github", github(report, "")),
    ]
}

#[test]
fn planted_secrets_are_in_no_format() {
    let secret = |value: &str, encoded: &str| {
        format!(
            r#"
apiVersion: v1
kind: Secret
metadata: {{name: planted, namespace: apps, annotations: {{kubectl.kubernetes.io/last-applied-configuration: '{{"data":"{encoded}"}}'}}}}
data: {{password: {encoded}}}
stringData: {{token: "{value}", values.yaml: "db:\n  password: {value}-nested\n"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: spread, namespace: apps}}
data:
  url: postgres://app:{value}@db
  nested: "x {value}-nested y"
  encoded: {encoded}
  "{value}": key
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: apps}}
spec: {{template: {{spec: {{containers: [{{name: web, image: "registry.example/{value}/web:1", args: ["--password={value}"]}}]}}}}}}
"#
        )
    };
    let old = secret("planted-4711", "cGxhbnRlZC00NzEx");
    let new = secret("planted-0815", "cGxhbnRlZC0wODE1");
    let nothing = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}";
    for (before, after) in [
        (old.as_str(), new.as_str()),
        (nothing, new.as_str()),
        (old.as_str(), nothing),
    ] {
        let report = compared(before, after);
        assert!(!report.is_empty());
        for (format, text) in every_format(&report) {
            for planted in [
                "planted-4711",
                "planted-0815",
                "cGxhbnRlZC00",
                "cGxhbnRlZC0w",
            ] {
                assert!(!text.contains(planted), "{format} shows {planted}:\n{text}");
            }
        }
    }
}

#[test]
fn hostile_values_stay_text_in_every_format() {
    let config = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  page: {}\n",
            portolan_yaml::to_json(&portolan_yaml::Node::string(value)).expect("JSON")
        )
    };
    let hostile =
        "```\n</details><script>alert(1)</script>\n````\n::error::x\n@everyone \u{1b}[2J | `a`";
    let report = compared(&config("calm"), &config(hostile));
    for (format, text) in every_format(&report) {
        let raw_escape = format != "coloured" && text.contains('\u{1b}');
        assert!(!raw_escape, "{format} moves the terminal");
        if format == "html" {
            assert!(!text.contains("<script>"), "{text}");
        }
        if format == "github" {
            assert_eq!(
                text.lines()
                    .filter(|line| line.starts_with("::error"))
                    .count(),
                0
            );
        }
    }
}
