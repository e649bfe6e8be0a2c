//! Git repositories at a ref.

use std::path::Path;
use std::process::Command;

use portolan_sources::{Access, GitRef, GitRequest, SourceError};
use portolan_testbed::{HttpServer, git_backend};
use portolan_vfs::Vfs as _;
use tempfile::TempDir;

use crate::desk::{Desk, options};

fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    assert!(done.unwrap().success(), "git {args:?}");
}

/// A repository with tags `v1.0.0` and `v1.1.0` and a later `main`, served over HTTP.
fn remote() -> (TempDir, HttpServer) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    git(&root, &["init", "-q", "-b", "main"]);
    for (content, tag) in [
        ("one", "v1.0.0"),
        ("two", "v1.1.0"),
        ("three", "unreleased"),
    ] {
        std::fs::write(root.join("app.yaml"), content).unwrap();
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", content]);
        git(&root, &["tag", tag]);
    }
    let server = HttpServer::start(move |request| git_backend(&root, request));
    (directory, server)
}

fn request(server: &HttpServer, reference: GitRef) -> GitRequest {
    GitRequest {
        url: format!("{}/.git", server.url()),
        reference,
        access: Access::default(),
        timeout: None,
    }
}

async fn read(desk: &Desk, request: &GitRequest) -> String {
    let found = desk.open().git_tree(request).await.unwrap();
    String::from_utf8(found.tree.read("/app.yaml".into()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_commit_is_chosen_by_branch_tag_range_and_name() {
    let (_directory, server) = remote();
    let desk = Desk::new();
    for (reference, expected) in [
        (GitRef::Branch("main".to_owned()), "three"),
        (GitRef::Tag("v1.0.0".to_owned()), "one"),
        (GitRef::Semver("^1.0".to_owned()), "two"),
        (GitRef::Name("refs/tags/v1.0.0".to_owned()), "one"),
        (GitRef::Default, "three"),
    ] {
        assert_eq!(read(&desk, &request(&server, reference)).await, expected);
    }
}

#[tokio::test]
async fn a_pinned_branch_keeps_its_commit_on_another_machine() {
    let (directory, server) = remote();
    let branch = request(&server, GitRef::Branch("main".to_owned()));
    let sources = Desk::new();
    let sources = sources.open();
    sources.git_tree(&branch).await.unwrap();
    let lock = sources.pins();
    std::fs::write(directory.path().join("app.yaml"), "four").unwrap();
    git(directory.path(), &["commit", "-qam", "four"]);
    git(
        directory.path(),
        &["config", "uploadpack.allowReachableSHA1InWant", "true"],
    );
    assert_eq!(read(&Desk::new(), &branch).await, "four");
    let other_machine = Desk::new();
    let pinned = other_machine.open_with(lock.clone(), options());
    let found = pinned.git_tree(&branch).await.unwrap();
    assert_eq!(found.tree.read("/app.yaml".into()).unwrap(), b"three");
    assert_eq!(found.reference, "main");
    let offline = other_machine.offline_with(lock);
    offline.git_tree(&branch).await.unwrap();
}

#[tokio::test]
async fn offline_refuses_a_repository_that_was_never_fetched() {
    let (_directory, server) = remote();
    let error = Desk::new()
        .offline()
        .git_tree(&request(&server, GitRef::Default))
        .await
        .unwrap_err();
    assert!(matches!(error, SourceError::Offline { .. }), "{error}");
    assert!(server.requests().is_empty());
}
