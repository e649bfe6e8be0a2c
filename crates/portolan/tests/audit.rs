//! `portolan audit` as a user meets it.

mod portolan;

use std::fs;
use std::path::Path;

use portolan::repository::{kustomization, repository};
use portolan::{portolan, portolan_in, portolan_with_input};

const OLD: &str = "\
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: shop
spec:
  minAvailable: 1
  selector:
    matchLabels: {app: web}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
";

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn json_names_what_is_wrong_where_and_what_to_use() {
    let directory = repository(&[("apps/web.yaml", OLD)]);
    let answer = portolan_in(
        text(directory.path()),
        &["audit", "files", ".", "--target", "1.32", "-o", "json"],
    );
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let finding = &report["findings"][0];
    for (field, value) in [
        ("file", "apps/web.yaml"),
        ("apiVersion", "policy/v1beta1"),
        ("kind", "PodDisruptionBudget"),
        ("namespace", "shop"),
        ("name", "web"),
        ("level", "removed"),
        ("deprecatedIn", "1.21"),
        ("removedIn", "1.25"),
        ("replacement", "policy/v1"),
    ] {
        assert_eq!(finding[field], value, "{field}");
    }
    assert_eq!(finding["line"], 1);
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    assert_eq!(report["checked"]["objects"], 2);
    assert_eq!(report["target"], "1.32");
}

#[test]
fn the_exit_code_follows_the_level() {
    let check = |args: &[&str]| {
        portolan_with_input(
            &[&["audit", "files", "-", "-o", "json"], args].concat(),
            OLD,
        )
        .code
    };
    assert_eq!(check(&["--target", "1.32"]), 1);
    assert_eq!(check(&["--target", "1.22"]), 0);
    assert_eq!(check(&["--target", "1.22", "--fail-on", "deprecated"]), 1);
    assert_eq!(
        check(&["--target", "1.32", "--exit-code", "removed=10"]),
        10
    );
    assert_eq!(check(&["--target", "1.32", "--exit-code", "removed=0"]), 0);
    assert_eq!(check(&["--target", "soon"]), 2);
}

#[test]
fn what_cannot_be_read_is_a_finding_and_never_silence() {
    let directory = repository(&[
        ("broken.yaml", "a: [\n"),
        ("template.yaml", "{{ if .x }}\na: b\n{{ end }}\n"),
    ]);
    let answer = portolan_in(
        text(directory.path()),
        &["audit", "files", ".", "-o", "csv"],
    );
    assert_eq!(answer.code, 1);
    assert!(
        answer.stdout.contains("unparsed,broken.yaml:2,"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stdout.contains("unparsed,template.yaml:"),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_table_and_a_summary_are_for_people() {
    let answer = portolan_with_input(
        &["audit", "files", "-", "--target", "1.32", "--from", "1.23"],
        OLD,
    );
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(lines[0].starts_with("KIND"), "{}", answer.stdout);
    assert!(
        lines[1].contains("shop/web")
            && lines[1].contains("removed")
            && lines[1].ends_with("policy/v1")
    );
    assert!(
        answer
            .stderr
            .contains("1 finding, 2 objects in 1 file checked for Kubernetes 1.32"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("1.25 refuses 1 of them first"),
        "{}",
        answer.stderr
    );
}

#[test]
fn every_output_format_is_printed() {
    for (format, expected) in [
        ("wide", "no longer served"),
        ("yaml", "level: removed"),
        ("markdown", "| removed | -:1 |"),
        ("sarif", "\"ruleId\": \"removed\""),
        ("junit", "<failure type=\"removed\""),
        ("github", "::error file=-,line=1,col=1"),
    ] {
        let answer = portolan_with_input(&["audit", "files", "-", "-o", format], OLD);
        assert!(
            answer.stdout.contains(expected),
            "{format}: {}",
            answer.stdout
        );
    }
}

#[test]
fn the_fix_is_a_patch_that_git_applies() {
    let directory = repository(&[("apps/web.yaml", OLD)]);
    let root = text(directory.path());
    let answer = portolan_in(root, &["audit", "files", ".", "--target", "1.32", "--fix"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let patch = directory.path().join("fix.patch");
    fs::write(&patch, &answer.stdout).unwrap();
    let applied = std::process::Command::new("git")
        .args(["apply", "fix.patch"])
        .current_dir(root)
        .status()
        .unwrap();
    assert!(applied.success(), "{}", answer.stdout);
    let fixed = fs::read_to_string(directory.path().join("apps/web.yaml")).unwrap();
    assert_eq!(fixed, OLD.replace("policy/v1beta1", "policy/v1"));
}

/// What a patch looks for by its old API version would not be found any more.
#[test]
fn the_fix_of_a_repository_leaves_alone_what_a_patch_names() {
    let budget = |name: &str| {
        format!(
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  minAvailable: 1\n  selector:\n    matchLabels:\n      app: web\n"
        )
    };
    let patch = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: patched, namespace: shop}\nspec: {minAvailable: 2}\n";
    let directory = repository(&[
        ("clusters/test/apps.yaml", &kustomization("apps", "./apps")),
        (
            "apps/kustomization.yaml",
            "resources: [plain.yaml, patched.yaml]\npatches: [{path: patch.yaml}]\n",
        ),
        ("apps/plain.yaml", &budget("plain")),
        ("apps/patched.yaml", &budget("patched")),
        ("apps/patch.yaml", patch),
    ]);
    let root = text(directory.path());
    let args = [
        "audit",
        "repo",
        "--path",
        "clusters/test",
        "--target",
        "1.32",
    ];
    let answer = portolan_in(root, &[&args[..], &["--fix"]].concat());
    assert_eq!(
        answer.stdout,
        "--- a/apps/plain.yaml\n+++ b/apps/plain.yaml\n@@ -1,4 +1,4 @@\n-apiVersion: policy/v1beta1\n+apiVersion: policy/v1\n kind: PodDisruptionBudget\n metadata:\n   name: plain\n",
        "{answer}"
    );
    assert!(
        answer.stderr.contains("1 of 2 findings needs a person"),
        "{answer}"
    );
}

/// A release whose chart is not there was not looked at: that is said in the text, the JSON and the exit code.
#[test]
fn a_release_that_cannot_be_rendered_is_not_called_checked() {
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ./charts/none\n      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n";
    let directory = repository(&[
        ("clusters/test/apps.yaml", &kustomization("apps", "./apps")),
        ("apps/kustomization.yaml", "resources: [release.yaml]\n"),
        ("apps/release.yaml", release),
    ]);
    let root = text(directory.path());
    let args = ["audit", "repo", "--path", "clusters/test", "--offline"];
    let answer = portolan_in(root, &args);
    assert_eq!(answer.code, 1, "{answer}");
    let summary = "; not checked because they could not be rendered: 1\n";
    assert!(answer.stderr.contains(summary), "{answer}");
    let answer = portolan_in(root, &[&args[..], &["-o", "json"]].concat());
    assert_eq!(answer.code, 1, "{answer}");
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(report["checked"]["releases"], 0, "{answer}");
    let not_checked = serde_json::json!(["HelmRelease shop/web"]);
    assert_eq!(report["notChecked"], not_checked, "{answer}");
    let finding = &report["findings"][0];
    assert_eq!(finding["level"], "unparsed", "{answer}");
    assert_eq!(finding["name"], "web", "{answer}");
}

#[test]
fn a_baseline_accepts_with_a_reason() {
    let directory = repository(&[("web.yaml", OLD)]);
    let root = text(directory.path());
    let written = portolan_in(
        root,
        &[
            "audit",
            "files",
            "web.yaml",
            "--write-baseline",
            "2099-12-31",
            "--reason",
            "moves in spring",
        ],
    );
    fs::write(directory.path().join("accepted.yaml"), &written.stdout).unwrap();
    let answer = portolan_in(
        root,
        &[
            "audit",
            "files",
            "web.yaml",
            "--baseline",
            "accepted.yaml",
            "-o",
            "json",
        ],
    );
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(
        answer.stdout.contains("\"accepted\": \"moves in spring\""),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_users_rule_adds_to_the_table() {
    let rules = "rules:\n- {apiVersion: apps/v1, kind: Deployment, removed: \"1.30\", replacement: example.com/v1 App}\n";
    let directory = repository(&[("web.yaml", OLD), ("rules.yml", rules)]);
    let answer = portolan_in(
        text(directory.path()),
        &[
            "audit",
            "files",
            "web.yaml",
            "--target",
            "1.32",
            "--rules",
            "rules.yml",
            "-o",
            "csv",
        ],
    );
    assert!(
        answer
            .stdout
            .contains("removed,web.yaml:11,apps/v1,Deployment,,web,,1.30,example.com/v1 App,"),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_target_beyond_the_table_warns() {
    let answer = portolan_with_input(&["audit", "files", "-", "--target", "1.99"], "a: b\n");
    assert!(
        answer
            .stderr
            .contains("warning: the table knows Kubernetes up to"),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.code, 0);
}

#[test]
fn the_table_can_be_looked_at() {
    let answer = portolan(&["audit", "table", "--kind", "PodSecurityPolicy"]);
    assert!(
        answer.stdout.contains("- apiVersion: policy/v1beta1\n"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stdout.contains("removed: \"1.25\""),
        "{}",
        answer.stdout
    );
}

/// Whatever is misspelt is told, with what may be meant; it never just means nothing.
#[test]
fn what_is_misspelt_is_refused() {
    let directory = repository(&[("web.yaml", OLD), ("empty/readme.txt", "no manifest")]);
    let audit = |args: &[&str]| portolan_in(text(directory.path()), &[&["audit"], args].concat());
    for (args, words) in [
        (&["files", "wbe.yaml"][..], &["there is no `wbe.yaml`"][..]),
        (
            &["files", ".", "--target", "flx=2.8"],
            &["no component `flx`", "flux"],
        ),
        (
            &["files", ".", "--from", "1.35", "--target", "1.32"],
            &["newer than the target 1.32"],
        ),
        (&["files", ".", "--rules", "none.yaml"], &["none.yaml"]),
        (
            &["files", ".", "--baseline", "web.yaml"],
            &["web.yaml", "no list `accept`"],
        ),
        (
            &[
                "files",
                ".",
                "--write-baseline",
                "2027-02-30",
                "--reason",
                "x",
            ],
            &["`2027-02-30` is not a day"],
        ),
        (
            &["files", ".", "--fail-on", "bad"],
            &["there are deprecated, field"],
        ),
        (
            &["files", ".", "--exit-code", "removed=300"],
            &["`300` is no exit code"],
        ),
        (
            &["table", "--kind", "Ingres"],
            &["no kind `Ingres`", "did you mean `Ingress`"],
        ),
        (
            &["table", "--component", "flx"],
            &["no component `flx`", "flux"],
        ),
        (&["serve", "--ttl", "soon"], &["`soon`"]),
    ] {
        let answer = audit(args);
        assert_eq!(answer.code, 2, "{args:?}: {answer}");
        for word in words {
            assert!(answer.stderr.contains(word), "{args:?}: {answer}");
        }
    }
    let answer = audit(&["files", "empty"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stderr.contains("nothing was checked"), "{answer}");
}
