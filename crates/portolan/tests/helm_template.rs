//! `portolan helm template`: what it is asked beside Helm's own options, and charts that mean harm.

mod portolan;

use camino::{Utf8Path, Utf8PathBuf};
use portolan::{Answer, portolan};
use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    /// A chart of one template.
    fn with_template(template: &str) -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        desk.write(
            "web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        );
        desk.write("web/templates/t.yaml", template);
        desk
    }

    fn path(&self, below: &str) -> Utf8PathBuf {
        let root = Utf8Path::from_path(self.0.path()).expect("a UTF-8 path");
        root.join(below)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }

    fn template(&self, flags: &[&str]) -> Answer {
        let chart = self.path("web");
        portolan(&[&["helm", "template", "r", chart.as_str()], flags].concat())
    }
}

#[test]
fn lookup_is_answered_from_a_directory_of_objects() {
    let desk = Desk::with_template(
        "a: {{ (lookup \"v1\" \"Secret\" \"apps\" \"login\").data.user | b64dec }}\n\
         n: {{ len (lookup \"v1\" \"Secret\" \"apps\" \"\").items }}\n",
    );
    desk.write(
        "export/secrets/login.yaml",
        "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: apps}, data: {user: YW5uYQ==}}\n",
    );
    let export = desk.path("export");
    let answer = desk.template(&["--lookup-dir", export.as_str()]);
    assert_eq!(
        answer.stdout,
        "---\n# Source: web/templates/t.yaml\na: anna\nn: 1\n"
    );
    let without = desk.template(&[]);
    assert_eq!(without.code, 2, "{without}");
    assert!(
        without.stderr.contains("web/templates/t.yaml:1:"),
        "{without}"
    );
}

#[test]
fn flags_of_an_installation_are_taken_or_refused_clearly() {
    let desk = Desk::with_template("a: b\n");
    let taken = [
        "--wait",
        "--timeout",
        "5m",
        "--create-namespace",
        "--dry-run=client",
    ];
    assert_eq!(desk.template(&taken).code, 0);
    for refused in [
        ["--post-renderer", "./x"].as_slice(),
        &["--verify"],
        &["--enable-dns"],
        &["--validate"],
    ] {
        let answer = desk.template(refused);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains(refused[0]), "{answer}");
    }
}

/// Checked against helm 3.17.3, which takes all of these.
#[test]
fn switches_take_values_and_the_last_of_two_flags_counts() {
    let desk = Desk::with_template("v: {{ .Capabilities.KubeVersion }} {{ .Release.IsUpgrade }}\n");
    let versions = ["--kube-version", "1.30.0", "--kube-version", "1.31.0"];
    let answer = desk.template(&versions);
    assert!(answer.stdout.ends_with("v: v1.31.0 false\n"), "{answer}");
    let switches = [
        "--is-upgrade",
        "--is-upgrade=F",
        "--validate=0",
        "--no-hooks=TRUE",
    ];
    let answer = desk.template(&switches);
    assert!(answer.stdout.ends_with(" false\n"), "{answer}");
    let clusters = [
        "--kubeconfig",
        "x",
        "--kube-context=y",
        "--qps",
        "1.5",
        "--keyring",
        "k",
    ];
    assert_eq!(desk.template(&clusters).code, 0);
    let answer = desk.template(&["--is-upgrade=perhaps"]);
    assert!(
        answer
            .stderr
            .contains("`perhaps` is neither true nor false"),
        "{answer}"
    );
}

#[test]
fn links_are_followed_inside_the_work_tree_and_not_out_of_it() {
    let desk = Desk::with_template("{{ include \"shared\" . }}\n");
    desk.write("shared/_shared.tpl", "{{ define \"shared\" }}a: b{{ end }}");
    let link = desk.path("web/templates/shared");
    std::os::unix::fs::symlink("../../shared", &link).expect("a link");
    let answer = desk.template(&[]);
    assert_eq!(
        answer.code, 2,
        "no work tree, so the chart is the border: {answer}"
    );
    std::fs::create_dir(desk.path(".git")).expect("a directory");
    let answer = desk.template(&[]);
    assert!(answer.stdout.ends_with("a: b\n"), "{answer}");
    std::fs::remove_file(&link).expect("the link");
    std::os::unix::fs::symlink("/etc", &link).expect("a link");
    let answer = desk.template(&[]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("templates/shared"), "{answer}");
}

#[test]
fn a_template_without_end_and_values_without_measure_are_refused() {
    let endless = Desk::with_template("{{ range untilStep 0 2000000000 1 }}{{ end }}");
    let answer = endless.template(&[]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("limit"), "{answer}");

    let desk = Desk::with_template("a: b\n");
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs = format!("{laughs}a{level}: &a{level} [{items}]\n");
    }
    desk.write("web/values.yaml", &laughs);
    let answer = desk.template(&[]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("excessive aliasing"), "{answer}");
}
