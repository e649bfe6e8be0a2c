//! Variables whose values are in files of the Repository that they come from.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bed::{Bed, bed, eventually};

const REPOSITORY: &str = "/api/v1alpha/repositories/main";
const SPACE: &str = "/api/v1alpha/namespaces/default";

fn git(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
}

fn commit(root: &Path) -> String {
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "change"]);
    git(root, &["rev-parse", "HEAD"])
}

impl Bed {
    async fn with_node(&self, name: &str, os: &str) {
        let node = json!({
            "apiVersion": "v1alpha", "kind": "Node", "metadata": {"name": name, "labels": {"os": os}}, "spec": {},
        });
        assert_eq!(self.post("/api/v1alpha/nodes", node).await.0, 201);
    }

    async fn is_at(&self, commit: &str) {
        eventually(|| async { self.get(REPOSITORY).await.1["status"]["commit"] == commit }).await;
    }

    async fn why_not(&self, part: &str) {
        eventually(|| async {
            let (_, found) = self.get(REPOSITORY).await;
            let error = found["status"]["error"].as_str().unwrap_or_default();
            error.contains(part)
        })
        .await;
    }

    /// A variable of a node, as `fleet vars explain` has it.
    async fn explained(&self, node: &str, key: &str) -> Value {
        let (status, list) = self.get(&format!("{SPACE}/nodes/{node}/variables")).await;
        assert_eq!(status, 200, "{list:#}");
        let mut items = list["items"].as_array().expect("a list").iter();
        let found = items.find(|item| item["key"] == key);
        found.cloned().unwrap_or_default()
    }
}

const OBJECTS: &str = "\
apiVersion: v1alpha
kind: Variable
metadata: {name: os}
spec:
  merge: deep
  files:
  - path: vars/all.yaml
  - path: vars/{{ node.labels.os }}.yaml
  - {path: 'vars/nodes/{{ node.name }}.yaml', optional: true}
---
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {all: true}
  vars: {port: 0, limits: {}}
  steps:
  - {name: note, print: {message: '{{ vars.port }}'}}
";

#[tokio::test(flavor = "multi_thread")]
async fn values_come_from_files_of_the_commit_for_each_system_and_node() {
    let bed = bed().await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    git(root, &["init", "-q", "-b", "main"]);
    write(root, "fleet/objects.yaml", OBJECTS);
    write(
        root,
        "fleet/vars/all.yaml",
        "port: 80\nlimits:\n  files: 10\n  procs: 5\n",
    );
    write(root, "fleet/vars/debian.yaml", "# Debian\nport: 8080\n");
    write(root, "fleet/vars/fedora.yaml", "port: 9090\n");
    write(root, "fleet/vars/nodes/web-1.yaml", "limits: {files: 99}\n");
    let first = commit(root);
    for (node, os) in [("web-1", "debian"), ("web-2", "fedora")] {
        bed.with_node(node, os).await;
    }
    for (path, kind, spec) in [
        (
            "nodegroups",
            "NodeGroup",
            json!({"nodes": ["web-1", "web-2", "web-3"]}),
        ),
        (
            "nodegrants",
            "NodeGrant",
            json!({"groups": ["web"], "namespaces": ["default"]}),
        ),
    ] {
        let object = json!({"apiVersion": "v1alpha", "kind": kind, "metadata": {"name": "web"}, "spec": spec});
        assert_eq!(
            bed.post(&format!("/api/v1alpha/{path}"), object).await.0,
            201
        );
    }
    let url = format!("file://{}", root.display());
    let repository = json!({
        "apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "main"},
        "spec": {"url": url, "ref": "main", "path": "fleet", "namespace": "default", "serviceAccount": "admin", "interval": "1s"},
    });
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository).await.0,
        201
    );
    bed.is_at(&first).await;
    eventually(|| async { !bed.explained("web-2", "port").await.is_null() }).await;

    // The file and the line of each value are told; that of one node stands above those of all.
    let port = bed.explained("web-1", "port").await;
    assert_eq!(port["value"], 8080, "{port:#}");
    let best = &port["candidates"][0];
    assert_eq!(
        (&best["file"], &best["line"], &best["role"]),
        (&json!("fleet/vars/debian.yaml"), &json!(2), &json!("used"))
    );
    assert_eq!(bed.explained("web-2", "port").await["value"], 9090);
    let limits = bed.explained("web-1", "limits").await;
    assert_eq!(limits["value"], json!({"files": 99, "procs": 5}));
    assert_eq!(limits["candidates"][0]["scope"], "node", "{limits:#}");
    assert_eq!(
        limits["origins"],
        json!({
            "files": "Variable os (fleet/vars/nodes/web-1.yaml:1)",
            "procs": "Variable os (fleet/vars/all.yaml:2)",
        })
    );
    let run = format!("{SPACE}/taskbooks/web/run");
    let (status, made) = bed.post(&run, json!({"mode": "check"})).await;
    assert_eq!(status, 201, "{made:#}");

    // A bad file changes nothing, and is told with its line; so is one that everybody needs and that is not there.
    write(root, "fleet/vars/debian.yaml", "port: 1\nport: 2\n");
    commit(root);
    bed.why_not("fleet/vars/debian.yaml:2").await;
    assert_eq!(
        bed.explained("web-1", "port").await["value"],
        8080,
        "at its commit"
    );
    write(root, "fleet/vars/debian.yaml", "port: 8081\n");
    git(root, &["rm", "-q", "fleet/vars/all.yaml"]);
    commit(root);
    bed.why_not("there is no file `fleet/vars/all.yaml`").await;
    write(root, "fleet/vars/all.yaml", "port: 80\n");
    let next = commit(root);
    bed.is_at(&next).await;
    eventually(|| async { bed.explained("web-1", "port").await["value"] == 8081 }).await;

    // A node whose file is missing, or whose name for it is not known, stops runs on it and tells why.
    bed.with_node("web-3", "plan9").await;
    eventually(|| async {
        let (status, refused) = bed.post(&run, json!({"mode": "check"})).await;
        let why = refused["error"].as_str().unwrap_or_default();
        status == 400
            && why.contains("node web-3: Variable os: there is no file `fleet/vars/plan9.yaml`")
    })
    .await;
    let (status, made) = bed
        .post(&run, json!({"nodes": ["web-1", "web-2"], "mode": "check"}))
        .await;
    assert_eq!(status, 201, "{made:#}");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_with_files_comes_from_a_repository_and_stays_inside() {
    let bed = bed().await;
    let variable = |path: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "os"},
            "spec": {"files": [{"path": path}]},
        })
    };
    for (path, expected) in [
        ("vars/all.yaml", "one that is applied comes without files"),
        ("/etc/passwd", "must begin beside the file"),
        ("a/../../b", "`..` at its beginning only"),
        ("{{ vars.x }}.yaml", "can be filled in"),
    ] {
        let (status, refused) = bed
            .post(&format!("{SPACE}/variables"), variable(path))
            .await;
        assert_eq!(status, 422, "{refused:#}");
        assert!(refused.to_string().contains(expected), "{refused:#}");
    }
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    git(root, &["init", "-q", "-b", "main"]);
    let out = OBJECTS.replace("vars/all.yaml", "../../all.yaml");
    write(root, "fleet/objects.yaml", &out);
    commit(root);
    let url = format!("file://{}", root.display());
    let repository = json!({
        "apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "main"},
        "spec": {"url": url, "path": "fleet", "namespace": "default", "serviceAccount": "admin", "interval": "1s"},
    });
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository).await.0,
        201
    );
    bed.why_not("fleet/objects.yaml:7: `../../all.yaml` leads out of the repository")
        .await;
    bed.stop().await;
}

/// Who may write a Variable but not read a Secret does not get at its values that way.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_a_secret_makes_no_variable_of_it() {
    let bed = bed().await;
    let token = bed
        .user(
            "ada",
            json!([{"verbs": ["create", "update"], "kinds": ["Variable"]}]),
        )
        .await;
    let variable = json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "db"},
        "spec": {"secrets": {"password": {"secret": "db", "key": "password"}}},
    });
    let path = format!("{SPACE}/variables");
    let (status, refused) = bed.ask(&token, "POST", &path, Some(variable.clone())).await;
    assert_eq!(status, 403, "{refused:#}");
    assert_eq!(bed.post(&path, variable).await.0, 201);
    bed.stop().await;
}
