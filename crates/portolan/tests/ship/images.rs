//! The images that a build makes: what stands beside them, their digests and their times.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use crate::portolan::project::{Project, WEB, statuses};

/// Blobs of the documents that refer to an image, as text.
fn referrers(project: &Project, digest: &str) -> Vec<String> {
    let blob = |digest: &str| {
        let path = format!(
            ".portolan/blobs/sha256/{}",
            digest.trim_start_matches("sha256:")
        );
        fs::read_to_string(project.path(&path)).expect("a blob")
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let index = json(&fs::read_to_string(project.path(".portolan/index.json")).expect("an index"));
    let tag = digest.replace(':', "-");
    let named = index["manifests"].as_array().into_iter().flatten();
    let mut lists =
        named.filter(|entry| entry["annotations"]["org.opencontainers.image.ref.name"] == tag);
    let list = json(&blob(
        lists.next().expect("a list")["digest"]
            .as_str()
            .expect("a digest"),
    ));
    let manifests = list["manifests"].as_array().expect("manifests").iter();
    let documents = manifests.map(|manifest| {
        let manifest = json(&blob(manifest["digest"].as_str().expect("a digest")));
        assert_eq!(manifest["subject"]["digest"], digest);
        blob(manifest["layers"][0]["digest"].as_str().expect("a digest"))
    });
    documents.collect()
}

#[test]
fn an_image_has_its_provenance_beside_it_and_a_bill_of_materials_on_request() {
    let project = Project::new(&format!(
        "{WEB}  - {{name: tool, image: registry.example/tool, command: {{run: [sh, -c, 'echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html]}}}}\n"
    ));
    let (plain, code) = project.build(&[]);
    assert_eq!(code, 0, "{plain:#}");
    let digest = |result: &Value, at: usize| {
        result["artifacts"][at]["digest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    };
    let [web] = &referrers(&project, &digest(&plain, 0))[..] else {
        unreachable!("one document");
    };
    assert!(
        web.contains("\"name\":\"registry.example/shop/web\"")
            && web.contains("https://slsa.dev/provenance/v1"),
        "{web}"
    );
    assert!(!web.contains("gitCommit"), "it is in no repository: {web}");
    assert_eq!(referrers(&project, &digest(&plain, 1)).len(), 1);
    let (with, _) = project.build(&["--sbom"]);
    assert_eq!(statuses(&with), [("web", "cached"), ("tool", "cached")]);
    assert_eq!(digest(&with, 0), digest(&plain, 0), "the image is the same");
    let documents = referrers(&project, &digest(&with, 0));
    assert_eq!(documents.len(), 2);
    assert!(
        documents[1].contains("\"fileName\":\"/index.html\""),
        "{}",
        documents[1]
    );
    // What refers to an image stays as long as the image.
    project.run(&["ship", "gc", "--max-age", "0s"]);
    assert_eq!(referrers(&project, &digest(&with, 0)).len(), 2);
    // The revision of a clean repository is part of it, without the password in its address.
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(args)
            .current_dir(project.directory.path())
            .output();
        assert!(done.expect("git").status.success(), "{args:?}");
    };
    for args in [
        &["init", "-q"][..],
        &["config", "user.email", "a@b"],
        &["config", "user.name", "a"],
        &[
            "remote",
            "add",
            "origin",
            "https://user:planted-4711@git.example/shop.git",
        ],
        &["add", "."],
        &["commit", "-qm", "a"],
    ] {
        git(args);
    }
    let elsewhere = Project {
        directory: tempfile::tempdir().expect("a directory"),
        env: Vec::new(),
    };
    let copied = Command::new("cp")
        .arg("-r")
        .arg(project.path("."))
        .arg(elsewhere.path("."))
        .status();
    assert!(copied.expect("cp").success());
    fs::remove_dir_all(elsewhere.path(".portolan")).expect("removed");
    let (committed, _) = elsewhere.build(&["web"]);
    let [known] = &referrers(&elsewhere, &digest(&committed, 0))[..] else {
        unreachable!("one document");
    };
    assert!(
        known.contains("gitCommit") && known.contains("git.example/shop.git"),
        "{known}"
    );
    assert!(!known.contains("planted"), "{known}");
}

#[test]
fn gc_keeps_what_is_named_and_removes_the_rest() {
    let project = Project::new(WEB);
    project.build(&[]);
    project.write("web/index.html", "another page");
    project.build(&[]);
    let answer = project.run(&["ship", "gc", "--max-age", "0s", "-o", "json"]);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer}"));
    assert!(json["blobs"].as_u64() >= Some(3), "{json}");
    assert_eq!(json["runs"], 1);
    let (again, _) = project.build(&[]);
    assert_eq!(statuses(&again), [("web", "built")], "its record is gone");
    let elsewhere = project.run(&["ship", "gc", "--store", "web"]);
    assert!(
        elsewhere.code == 2 && elsewhere.stderr.contains("is no store"),
        "{elsewhere}"
    );
}

#[test]
fn another_directory_umask_and_order_give_the_same_image() {
    let digest = |project: &Project| {
        let (result, code) = project.build(&[]);
        assert_eq!(code, 0, "{result:#}");
        result["artifacts"][0]["digest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    };
    let first = Project::new(WEB);
    for name in ["a", "b", "c/d", "c/e"] {
        first.write(&format!("web/{name}"), name);
    }
    let wanted = digest(&first);
    let second = Project::new(WEB);
    for name in ["c/e", "c/d", "b", "a"] {
        second.write(&format!("web/{name}"), name);
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(second.path(&format!("web/{name}")), mode).expect("a mode");
    }
    fs::set_permissions(second.path("web/c"), fs::Permissions::from_mode(0o700)).expect("a mode");
    assert_eq!(digest(&second), wanted);
}

/// A repository with one commit at a known time.
fn commit(project: &Project) {
    for args in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "web", "portolan.yaml"],
        &["commit", "--quiet", "--message", "first"],
    ] {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=Tester",
                "-c",
                "user.email=tester@example.com",
            ])
            .args(args)
            .env("GIT_COMMITTER_DATE", "2026-01-31T00:00:00Z")
            .current_dir(project.path("."))
            .status();
        assert!(done.expect("git").success(), "{args:?}");
    }
}

#[test]
fn files_have_the_time_of_a_date_or_of_the_commit() {
    let artifact = |name: &str, mtime: &str| {
        format!(
            "  - {{name: {name}, image: registry.example/{name}, oci: {{context: web, mtime: {mtime}}}}}\n"
        )
    };
    let document = artifact("commit", "commit")
        + &artifact("date", "2026-01-31")
        + &artifact("seconds", "1769817600")
        + &artifact("epoch", "epoch");
    let project = Project::new(&document);
    let (none, code) = project.build(&[]);
    assert_eq!(
        (code, &none["artifacts"][0]["status"]),
        (1, &"failed".into())
    );
    assert_eq!(
        none["artifacts"][0]["error"],
        "`mtime: commit` needs a git repository with a commit, and `git`"
    );
    commit(&project);
    let (all, code) = project.build(&[]);
    assert_eq!(code, 0, "{all:#}");
    let digest = |at: usize| all["artifacts"][at]["digest"].as_str().expect("a digest");
    assert_eq!((digest(0), digest(1)), (digest(1), digest(2)));
    assert_ne!(digest(2), digest(3));
}
