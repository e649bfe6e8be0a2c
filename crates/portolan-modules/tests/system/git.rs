//! `git`: checkouts of a repository on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use camino::Utf8PathBuf;
use portolan_modules::PlannedOutcome;
use portolan_testbed::{HttpServer, git_backend};
use serde_json::{Value, json};

use crate::bed::{Bed, faults, is_root, tree};

/// A repository outside the root with a branch `main` and a tag `v1`.
struct Source {
    bed: Bed,
    path: Utf8PathBuf,
}

fn git(directory: &camino::Utf8Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Source {
    fn new() -> Self {
        let bed = Bed::new();
        let path = bed.outside.join("source");
        fs::create_dir(&path).unwrap();
        git(&path, &["init", "-q"]);
        let source = Self { bed, path };
        source.commit("one");
        git(&source.path, &["tag", "-a", "v1", "-m", "first"]);
        source.commit("two");
        source
    }

    fn commit(&self, text: &str) -> String {
        fs::write(self.path.join("file"), text).unwrap();
        git(&self.path, &["add", "-A"]);
        git(&self.path, &["commit", "-q", "-m", text]);
        git(&self.path, &["rev-parse", "HEAD"])
    }

    fn step(&self, reference: &str) -> Value {
        json!({"url": self.path.as_str(), "ref": reference, "path": "/srv/app"})
    }
}

#[test]
fn a_commit_is_checked_out_and_the_plan_names_both() {
    let source = Source::new();
    let bed = &source.bed;
    let first = git(&source.path, &["rev-parse", "v1^{commit}"]);
    let (plan, applied) = bed.converge("git", &source.step("v1"));
    assert!(
        plan.changes()[0]
            .diff
            .contains(&format!("+commit: {first}\n")),
        "{:?}",
        plan.changes()
    );
    assert_eq!(applied.result["commit"], first.as_str());
    assert_eq!(bed.read("srv/app/file"), "one");
    let second = git(&source.path, &["rev-parse", "main"]);
    let (plan, _) = bed.converge("git", &source.step("main"));
    assert_eq!(
        plan.changes()[0].diff,
        format!("-commit: {first}\n+commit: {second}\n")
    );
    assert_eq!(plan.before["commit"], first.as_str());
    let third = source.commit("three");
    bed.converge("git", &source.step("main"));
    assert_eq!(bed.read("srv/app/file"), "three");
    bed.converge("git", &source.step(&second));
    assert_eq!(bed.read("srv/app/file"), "two");
    bed.converge(
        "git",
        &json!({"url": source.path.as_str(), "path": "/srv/app"}),
    );
    assert_eq!(
        git(&bed.root.join("srv/app"), &["rev-parse", "HEAD"]),
        third
    );
    let told = bed.fails("git", &source.step("gone"));
    assert!(told.contains("there is no such branch or tag"), "{told}");
}

#[test]
fn changed_and_untracked_files_fail_with_their_names() {
    let source = Source::new();
    let bed = &source.bed;
    bed.converge("git", &source.step("main"));
    bed.write("srv/app/file", "changed");
    bed.write("srv/app/new file", "untracked");
    let told = bed.fails("git", &source.step("main"));
    assert!(
        told.contains("changed or untracked: file, new file"),
        "{told}"
    );
    let mut step = source.step("v1");
    step["dirty"] = json!("discard");
    let (plan, _) = bed.converge("git", &step);
    assert!(
        plan.changes()[0]
            .diff
            .contains("-changed or untracked: file, new file\n")
    );
    assert_eq!(bed.read("srv/app/file"), "one");
    assert!(!bed.root.join("srv/app/new file").exists());
}

#[test]
fn another_address_is_a_change() {
    let source = Source::new();
    let bed = &source.bed;
    bed.converge("git", &source.step("main"));
    let moved = bed.outside.join("moved");
    fs::rename(&source.path, &moved).unwrap();
    let step = json!({"url": moved.as_str(), "ref": "main", "path": "/srv/app"});
    let (plan, _) = bed.converge("git", &step);
    assert!(
        plan.changes()[0].diff.contains("+url: "),
        "{:?}",
        plan.changes()
    );
}

#[test]
fn a_directory_with_something_else_is_left_alone() {
    let source = Source::new();
    let bed = &source.bed;
    bed.write("srv/app/mine", "x");
    let told = bed.fails("git", &source.step("main"));
    assert!(told.contains("not empty and no checkout"), "{told}");
    fs::remove_file(bed.root.join("srv/app/mine")).unwrap();
    bed.converge("git", &source.step("main"));
}

/// The repository's own settings, links and files must not lead git out of the root.
#[test]
fn nothing_outside_the_root_is_touched() {
    let source = Source::new();
    let bed = &source.bed;
    symlink(&bed.outside, bed.root.join("srv/out")).unwrap();
    let step = json!({"url": source.path.as_str(), "path": "/srv/out/app"});
    let told = bed.fails("git", &step);
    assert!(told.contains("it is a link"), "{told}");
    let elsewhere = bed.outside.join("elsewhere");
    git(
        &bed.outside,
        &["clone", "-q", source.path.as_str(), elsewhere.as_str()],
    );
    fs::create_dir(bed.root.join("srv/app")).unwrap();
    bed.write("srv/app/.git", &format!("gitdir: {elsewhere}/.git\n"));
    let told = bed.fails("git", &source.step("v1"));
    assert!(told.contains("its `.git` is not a directory"), "{told}");
    fs::remove_dir_all(bed.root.join("srv/app")).unwrap();
    bed.converge("git", &source.step("main"));
    git(
        &bed.root.join("srv/app"),
        &["config", "core.worktree", elsewhere.as_str()],
    );
    let outside = tree(&bed.outside);
    bed.converge("git", &source.step("v1"));
    assert_eq!(tree(&bed.outside), outside);
    assert_eq!(bed.read("srv/app/file"), "one");
}

#[test]
fn hooks_are_not_run() {
    let source = Source::new();
    let bed = &source.bed;
    bed.converge("git", &source.step("main"));
    let mark = bed.outside.join("hooked");
    bed.write(
        "srv/app/.git/hooks/post-checkout",
        &format!("#!/bin/sh\ntouch {mark}\n"),
    );
    let hook = bed.root.join("srv/app/.git/hooks/post-checkout");
    fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    bed.converge("git", &source.step("v1"));
    assert!(!mark.exists());
}

#[test]
fn root_runs_no_git_in_a_checkout_of_another_user() {
    if !is_root() {
        return;
    }
    let source = Source::new();
    let bed = &source.bed;
    bed.converge("git", &source.step("main"));
    std::os::unix::fs::chown(bed.root.join("srv/app/.git"), Some(1234), None).unwrap();
    let told = bed.fails("git", &source.step("v1"));
    assert!(told.contains("as: 1234"), "{told}");
}

#[test]
fn submodules_come_along() {
    let source = Source::new();
    let bed = &source.bed;
    let inner = bed.outside.join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    fs::write(inner.join("deep"), "x").unwrap();
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "deep"]);
    let served = bed.outside.clone();
    let server = HttpServer::start(move |request| git_backend(served.as_std_path(), request));
    let add = [
        "submodule",
        "--quiet",
        "add",
        &format!("{}/inner/.git", server.url()),
        "lib",
    ];
    git(&source.path, &add);
    source.commit("with a submodule");
    let url = format!("{}/source/.git", server.url());
    bed.converge(
        "git",
        &json!({"url": url, "ref": "main", "path": "/srv/app"}),
    );
    assert_eq!(bed.read("srv/app/lib/deep"), "x");
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    let with = |key: &str, value: &str| {
        let mut step = json!({"url": "https://h/r", "path": "/srv/app"});
        step[key] = json!(value);
        faults("git", &step)
    };
    assert!(with("url", "ext::sh").contains("not the address"));
    assert!(with("url", "https://u:p@h/r").contains("must not contain a password"));
    assert!(with("ref", "--upload-pack=x").contains("name of a branch"));
    assert!(with("ref", "main~1").contains("name of a branch"));
    assert!(with("dirty", "keep").contains("must be one of fail, discard"));
}

#[test]
fn a_check_of_a_first_checkout_is_a_change() {
    let source = Source::new();
    let plan = source.bed.plan("git", &source.step("main")).unwrap();
    assert!(matches!(plan.outcome, PlannedOutcome::Change(_)));
}
