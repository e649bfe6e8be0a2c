//! `portolan helm pull` and `portolan helm dependency build` against a web server of the test's own.

mod portolan;

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::{Compression, write::GzEncoder};
use portolan::{Answer, portolan};
use portolan_testbed::{HttpServer, Reply};
use tempfile::TempDir;

/// A chart's archive of one file.
fn chart(name: &str, version: &str) -> Vec<u8> {
    let text = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    let mut builder = tar::Builder::new(Vec::new());
    let path = format!("{name}/Chart.yaml");
    let added = builder.append_data(&mut header, path, text.as_bytes());
    added.expect("memory takes everything");
    let plain = builder.into_inner().expect("memory takes everything");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn repository() -> HttpServer {
    HttpServer::start(|request| match request.path() {
        "/index.yaml" => Reply::ok(
            "apiVersion: v1\nentries:\n  db:\n  - {version: 2.3.4, urls: [db-2.3.4.tgz]}\n  \
             - {version: 1.0.0, urls: [db-1.0.0.tgz]}\n",
        ),
        "/db-2.3.4.tgz" => Reply::ok(chart("db", "2.3.4")),
        "/db-1.0.0.tgz" => Reply::ok(chart("db", "1.0.0")),
        _ => Reply::status(404),
    })
}

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
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

    fn run(&self, args: &[&str]) -> Answer {
        let cache = self.path("cache");
        let none = self.path("none.json");
        let mut all = args.to_vec();
        all.extend([
            "--cache-dir",
            cache.as_str(),
            "--registry-config",
            none.as_str(),
        ]);
        portolan(&all)
    }
}

#[test]
fn a_chart_is_pulled_by_name_and_range() {
    let server = repository();
    let desk = Desk::new();
    let out = desk.path("out");
    let url = server.url();
    let pull = [
        "helm",
        "pull",
        "db",
        "--repo",
        &url,
        "--version",
        "^1",
        "-d",
        out.as_str(),
    ];
    let answer = desk.run(&pull);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(answer.stdout, format!("{out}/db-1.0.0.tgz\n"));
    assert_eq!(
        std::fs::read(out.join("db-1.0.0.tgz")).unwrap(),
        chart("db", "1.0.0")
    );
}

#[test]
fn a_chart_is_pulled_by_its_address_and_unpacked_once() {
    let server = repository();
    let desk = Desk::new();
    let out = desk.path("out");
    let address = format!("{}/db-2.3.4.tgz", server.url());
    let pull = ["helm", "pull", &address, "--untar", "-d", out.as_str()];
    assert_eq!(desk.run(&pull).stdout, format!("{out}/db\n"));
    assert!(out.join("db/Chart.yaml").is_file());
    let again = desk.run(&pull);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("is there already"), "{again}");
}

#[test]
fn offline_only_what_was_fetched_is_pulled() {
    let server = repository();
    let desk = Desk::new();
    let out = desk.path("out");
    let url = server.url();
    let pull = ["helm", "pull", "db", "--repo", &url, "-d", out.as_str()];
    let offline: Vec<&str> = pull.iter().copied().chain(["--offline"]).collect();
    let refused = desk.run(&offline);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--offline fetches nothing"),
        "{refused}"
    );
    assert_eq!(desk.run(&pull).code, 0);
    assert_eq!(desk.run(&offline).code, 0);
}

#[test]
fn a_chart_without_a_place_is_a_usage_error_with_advice() {
    let answer = Desk::new().run(&["helm", "pull", "stable/db"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("--repo"), "{answer}");
}

#[test]
fn dependencies_are_built_and_locked_and_old_ones_removed() {
    let server = repository();
    let desk = Desk::new();
    let chart_yaml = format!(
        "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {{name: db, version: ^2, repository: '{}'}}\n",
        server.url()
    );
    desk.write("web/Chart.yaml", &chart_yaml);
    std::fs::create_dir(desk.path("web/charts")).unwrap();
    std::fs::write(desk.path("web/charts/db-1.0.0.tgz"), chart("db", "1.0.0")).unwrap();
    let web = desk.path("web");
    let answer = desk.run(&["helm", "dependency", "build", web.as_str()]);
    assert_eq!(answer.code, 0, "{answer}");
    assert_eq!(answer.stdout, format!("{web}/charts/db-2.3.4.tgz\n"));
    assert!(!web.join("charts/db-1.0.0.tgz").exists());
    let lock = std::fs::read_to_string(web.join("Chart.lock")).unwrap();
    assert!(
        lock.contains("version: 2.3.4") && lock.contains("digest: sha256:"),
        "{lock}"
    );
    let again = desk.run(&["helm", "dependency", "build", web.as_str(), "--offline"]);
    assert_eq!(
        again.code, 0,
        "the lock that was written is current: {again}"
    );
}

#[test]
fn a_chart_of_a_repository_is_rendered_without_being_kept() {
    let server = repository();
    let url = server.url();
    let template = [
        "helm",
        "template",
        "r",
        "db",
        "--repo",
        &url,
        "--version",
        "^1",
    ];
    let answer = Desk::new().run(&template);
    assert_eq!(answer.code, 0, "{answer}");
    let missing = [
        "helm",
        "template",
        "r",
        "db",
        "--repo",
        &url,
        "--version",
        "^9",
    ];
    let answer = Desk::new().run(&missing);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("db"), "{answer}");
}

#[test]
fn missing_dependencies_are_brought_when_asked_for() {
    let server = repository();
    let desk = Desk::new();
    let chart_yaml = format!(
        "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {{name: db, version: ^2, repository: '{}'}}\n",
        server.url()
    );
    desk.write("web/Chart.yaml", &chart_yaml);
    let web = desk.path("web");
    let answer = desk.run(&["helm", "template", "r", web.as_str()]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("missing in charts/ directory: db"),
        "{answer}"
    );
    let answer = desk.run(&["helm", "template", "r", web.as_str(), "--dependency-update"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(web.join("charts/db-2.3.4.tgz").exists());
}

#[test]
fn schemas_that_a_chart_refers_to_are_fetched() {
    let server = HttpServer::start(|request| match request.path() {
        "/values.schema.json" => {
            Reply::ok(r#"{"properties": {"port": {"$ref": "parts.json#/port"}}}"#)
        }
        "/parts.json" => Reply::ok(r#"{"port": {"type": "integer"}}"#),
        _ => Reply::status(404),
    });
    let desk = Desk::new();
    desk.write(
        "web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    );
    desk.write("web/templates/a.yaml", "port: {{ .Values.port }}\n");
    let refer = |name: &str| {
        let reference = format!(r#"{{"$ref": "{}/{name}"}}"#, server.url());
        desk.write("web/values.schema.json", &reference);
    };
    let chart = desk.path("web");
    let render = |port: &str| desk.run(&["helm", "template", "rel", chart.as_str(), "--set", port]);
    refer("values.schema.json");
    for helm in ["--helm=3", "--helm=4"] {
        let args = ["helm", "template", "rel", chart.as_str(), helm];
        assert_eq!(
            desk.run(&[&args[..], &["--set", "port=80"]].concat()).code,
            0
        );
        let refused = desk.run(&[&args[..], &["--set", "port=x"]].concat());
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains("port"), "{refused}");
    }
    refer("missing.json");
    let answer = render("port=80");
    assert!(answer.stderr.contains("missing.json"), "{answer}");
}
