//! Objects that come from a directory or from Git.

use serde_json::{Value, json};

use crate::bed::{Bed, VARIABLES, bed, eventually};

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn repository(spec: Value) -> Value {
    json!({"apiVersion": "v1alpha", "kind": "Repository", "metadata": {"name": "main"}, "spec": spec})
}

const REPOSITORY: &str = "/api/v1alpha/repositories/main";

impl Bed {
    /// Waits until the status of the repository says something.
    async fn told(&self, field: &str, part: &str) -> Value {
        eventually(|| async {
            let (_, repository) = self.get(REPOSITORY).await;
            repository["status"][field]
                .as_str()
                .is_some_and(|text| text.contains(part))
        })
        .await;
        self.get(REPOSITORY).await.1["status"].clone()
    }
}

fn write(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
}

fn region(value: &str) -> String {
    format!(
        "apiVersion: v1alpha\nkind: Variable\nmetadata: {{name: region}}\nspec: {{values: {{region: {value}}}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_applied_as_its_account_and_a_bad_state_changes_nothing() {
    let bed = bed().await;
    bed.user(
        "git",
        json!([{"verbs": ["create", "update"], "kinds": ["Variable"]}]),
    )
    .await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    write(&root.join("fleet/region.yaml"), &region("north"));
    write(
        &root.join("fleet/role.yaml"),
        "apiVersion: v1alpha\nkind: ClusterRole\nmetadata: {name: x}\nspec: {rules: [{verbs: [get], kinds: [Node]}]}\n",
    );
    let spec = json!({"dir": root, "path": "fleet", "namespace": "default", "serviceAccount": "git", "interval": "1s"});
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository(spec))
            .await
            .0,
        201
    );

    // The account may write variables and nothing else.
    let status = bed
        .told(
            "error",
            "fleet/role.yaml:1: user git may not create ClusterRole",
        )
        .await;
    assert!(
        status["error"]
            .as_str()
            .expect("text")
            .contains("has rights that you do not have"),
        "{status}"
    );
    assert_eq!(
        bed.get(&format!("{VARIABLES}/region")).await.0,
        404,
        "nothing was applied"
    );
    std::fs::remove_file(root.join("fleet/role.yaml")).expect("removed");
    eventually(|| async { bed.get(REPOSITORY).await.1["status"]["objects"] == 1 }).await;
    let (_, object) = bed.get(&format!("{VARIABLES}/region")).await;
    assert_eq!(object["metadata"]["source"]["path"], "fleet/region.yaml");

    // Others cannot change it.
    let mut changed = object.clone();
    changed["spec"]["values"]["region"] = "west".into();
    let (status, refused) = bed.put(&format!("{VARIABLES}/region"), changed).await;
    assert_eq!(
        (status.as_u16(), refused["reason"].as_str()),
        (409, Some("Managed"))
    );
    assert_eq!(
        bed.delete(&format!("{VARIABLES}/region")).await.1["reason"],
        "Managed"
    );

    // A fault anywhere changes nothing anywhere, and is told with file and line.
    write(&root.join("fleet/region.yaml"), &region("south"));
    write(
        &root.join("fleet/bad.yaml"),
        "apiVersion: v1alpha\nkind: Variable\nmetadata: {name: bad}\nspec:\n  vales: {}\n",
    );
    let status = bed
        .told("error", "fleet/bad.yaml:5:3: `spec.vales` is not a field")
        .await;
    assert!(
        status["failedCommit"].is_string() && status["commit"] != status["failedCommit"],
        "{status}"
    );
    assert_eq!(
        bed.get(&format!("{VARIABLES}/region")).await.1["spec"]["values"]["region"],
        "north"
    );
    write(&root.join("fleet/bad.yaml"), &region("x"));
    bed.told("error", "Variable default/region is also at")
        .await;
    std::fs::remove_file(root.join("fleet/bad.yaml")).expect("removed");
    eventually(|| async {
        bed.get(&format!("{VARIABLES}/region")).await.1["spec"]["values"]["region"] == "south"
    })
    .await;

    // A prune needs the right to delete.
    write(
        &root.join("fleet/other.yaml"),
        &region("north").replace("name: region", "name: other"),
    );
    std::fs::remove_file(root.join("fleet/region.yaml")).expect("removed");
    bed.told("error", "user git may not delete Variable region")
        .await;

    // Without its repository an object is anybody's again.
    assert_eq!(bed.delete(REPOSITORY).await.0, 200);
    eventually(|| async { bed.delete(&format!("{VARIABLES}/region")).await.0 == 200 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_repository_is_applied_pruned_and_asked_about_before_it_deletes_much() {
    let bed = bed().await;
    let files = tempfile::tempdir().expect("a directory");
    let root = files.path();
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(args)
            .current_dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git is installed");
        assert!(
            output.status.success(),
            "{args:?} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    for number in 0..15 {
        let text = region("north").replace("name: region", &format!("name: v{number}"));
        write(&root.join(format!("v{number}.yaml")), &text);
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let first = git(&["rev-parse", "HEAD"]);
    let url = format!("file://{}", root.display());
    let mut spec = json!({"url": url, "ref": "main", "namespace": "default", "serviceAccount": "admin", "interval": "1s"});
    assert_eq!(
        bed.post("/api/v1alpha/repositories", repository(spec.clone()))
            .await
            .0,
        201
    );
    bed.told("commit", &first).await;
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(15)
    );

    for number in 1..15 {
        std::fs::remove_file(root.join(format!("v{number}.yaml"))).expect("removed");
    }
    git(&["commit", "-q", "-a", "-m", "second"]);
    let second = git(&["rev-parse", "HEAD"]);
    let status = bed.told("error", "14 of 15 objects would be deleted").await;
    assert_eq!(
        (status["commit"].as_str(), status["failedCommit"].as_str()),
        (Some(first.as_str()), Some(second.as_str()))
    );
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(15)
    );
    spec["allowPruneAt"] = second.as_str().into();
    assert_eq!(
        bed.put(
            &format!("{REPOSITORY}?apply=true"),
            repository(spec.clone())
        )
        .await
        .0,
        200
    );
    bed.told("commit", &second).await;
    eventually(|| async {
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len) == Some(1)
    })
    .await;
    spec["path"] = "nowhere".into();
    assert_eq!(
        bed.put(&format!("{REPOSITORY}?apply=true"), repository(spec))
            .await
            .0,
        200
    );
    bed.told("error", "path `/nowhere` does not exist").await;
    assert_eq!(
        bed.get(VARIABLES).await.1["items"].as_array().map(Vec::len),
        Some(1)
    );
}
