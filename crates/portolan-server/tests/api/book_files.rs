//! Files of TaskBooks that are applied: those of other repositories are fetched, those beside the book are not there.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bed::bed;

const BOOKS: &str = "/api/v1alpha/namespaces/default/taskbooks";

fn book(steps: &Value) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "TaskBook", "metadata": {"name": "web"},
        "spec": {"target": {"all": true, "allowEmpty": true}, "steps": steps},
    })
}

fn git(root: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(root)
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{args:?} {output:?}");
}

/// The server calls no address that its administrators did not name.
#[tokio::test(flavor = "multi_thread")]
async fn a_book_includes_from_the_address_of_a_repository_and_from_no_other() {
    let bed = bed().await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    let text = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: common}\nspec:\n  steps:\n  \
                - {name: place, file: {path: /srv/common, template: common.j2}}\n";
    std::fs::write(root.join("common.yaml"), text).expect("written");
    std::fs::write(root.join("common.j2"), "common\n").expect("written");
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "books"]);
    let url = format!("file://{}", root.display());
    let steps =
        json!([{"name": "common", "include": {"git": url, "ref": "main", "path": "common.yaml"}}]);
    assert_eq!(bed.post(BOOKS, book(&steps)).await.0, 201);
    let run = format!("{BOOKS}/web/run");
    let (code, refused) = bed.post(&run, json!({"mode": "check"})).await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["error"].as_str().unwrap_or_default();
    assert!(
        message.contains("only from addresses of its Repositories"),
        "{message}"
    );

    let repository = json!({
        "apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "books"},
        "spec": {"url": url, "suspend": true, "serviceAccount": "admin"},
    });
    let (code, made) = bed.post("/api/v1alpha/repositories", repository).await;
    assert_eq!(code, 201, "{made}");
    let (code, first) = bed.post(&run, json!({"mode": "check"})).await;
    assert_eq!(code, 201, "{first}");
    let (_, again) = bed.post(&run, json!({"mode": "check"})).await;
    assert_eq!(first["spec"]["bookDigest"], again["spec"]["bookDigest"]);
    // The commit is part of what is run.
    std::fs::write(root.join("common.j2"), "other\n").expect("written");
    git(root, &["commit", "-q", "-a", "-m", "other"]);
    let (_, later) = bed.post(&run, json!({"mode": "check"})).await;
    assert_ne!(first["spec"]["bookDigest"], later["spec"]["bookDigest"]);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_book_that_names_files_beside_it_is_refused_when_it_is_applied() {
    let bed = bed().await;
    let steps = json!([{"name": "conf", "file": {"path": "/etc/web", "template": "web.j2"}}]);
    let (code, refused) = bed.post(BOOKS, book(&steps)).await;
    assert_eq!(code, 422, "{refused}");
    assert_eq!(
        refused["error"],
        "TaskBook web names the file `web.j2`, and a book that is applied comes without files"
    );
    assert!(
        refused["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("fleet run -f")),
        "{refused}"
    );
    let steps = json!([{"name": "conf", "file": {"path": "/etc/web", "content": "x"}}]);
    assert_eq!(bed.post(BOOKS, book(&steps)).await.0, 201);
    bed.stop().await;
}
