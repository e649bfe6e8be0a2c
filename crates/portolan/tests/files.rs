//! Files are written where they belong, special files are not read, and a full disk is told as such.

mod portolan;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use portolan::repository::{HARBOR, kustomization, repository};
use portolan::{Answer, portolan_in};
use tempfile::TempDir;

/// A cluster whose Kustomization and objects have names that lead elsewhere.
fn hostile() -> TempDir {
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: '..'}\n---\napiVersion: v1\nkind: ../../../Evil\nmetadata: {name: ../../../evil, namespace: .}\n";
    repository(&[
        (
            "cluster/apps.yaml",
            &kustomization("'../../../../../evil'", "./apps"),
        ),
        ("apps/objects.yaml", object),
    ])
}

fn build_to(dir: &TempDir, target: &Path) -> Answer {
    let args = ["build", "--path", "cluster", "--repo", ".", "--output-dir"];
    let args: Vec<&str> = args
        .into_iter()
        .chain([target.to_str().expect("is a text")])
        .collect();
    portolan_in(dir.path().to_str().expect("is a text"), &args)
}

/// Every file and link below a directory.
fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = vec![directory.to_owned()];
    while let Some(next) = queue.pop() {
        for entry in fs::read_dir(&next).expect("is a directory") {
            let entry = entry.expect("can be listed");
            if entry.file_type().expect("is there").is_dir() {
                queue.push(entry.path());
            } else {
                let path = entry.path();
                let path = path.strip_prefix(directory).expect("lies below");
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_name_in_a_repository_leads_out_of_the_output_directory() {
    let repository = hostile();
    let place = tempfile::tempdir().expect("can be made");
    let target = place.path().join("a/b/c/out");
    let answer = build_to(&repository, &target);
    assert!(!answer.stderr.contains("please report"), "{answer}");
    let all = below(place.path());
    assert_eq!(all.len(), 3, "{all:?} {answer}");
    assert!(
        all.iter().all(|path| path.starts_with("a/b/c/out/")),
        "{all:?}"
    );
}

#[test]
fn a_link_in_the_output_directory_is_named_and_not_followed() {
    let place = tempfile::tempdir().expect("can be made");
    let (target, beside) = (place.path().join("out"), place.path().join("beside"));
    fs::create_dir_all(&target).expect("can be made");
    fs::create_dir_all(&beside).expect("can be made");
    symlink(&beside, target.join("production")).expect("can be made");
    let target = target.to_str().expect("is a text");
    let answer = portolan_in(HARBOR, &["build", "hr", "--output-dir", target]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains(&format!("`{target}/production` is a symbolic link")),
        "{answer}"
    );
    assert!(answer.stderr.contains("hint: remove it"), "{answer}");
    assert_eq!(below(&beside), [""; 0]);
}

#[test]
fn an_output_directory_that_cannot_be_made_is_the_users_error() {
    let place = tempfile::tempdir().expect("can be made");
    let target = place.path().join("file/out");
    fs::write(place.path().join("file"), "x").expect("can be written");
    let target = target.to_str().expect("is a text");
    let answer = portolan_in(HARBOR, &["build", "hr", "--output-dir", target]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains(&format!("cannot write `{target}`")),
        "{answer}"
    );
    assert!(!answer.stderr.contains("please report"), "{answer}");
}

/// Runs with standard output on a device that is always full.
fn to_full_device(args: &[&str]) -> Answer {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(args)
        .current_dir(HARBOR)
        .stdin(Stdio::null())
        .stdout(full)
        .output();
    Answer::of(&output.expect("the binary was built with this test"))
}

#[test]
fn a_full_disk_is_told_with_a_way_out() {
    for args in [
        &["build", "all"][..],
        &["get", "ks", "-o", "json"],
        &["version"],
        &["build", "ks", "--events", "-"],
    ] {
        let answer = to_full_device(args);
        assert_eq!(answer.code, 2, "{args:?} {answer}");
        assert!(
            answer.stderr.contains("cannot write to standard output"),
            "{args:?} {answer}"
        );
        assert!(answer.stderr.contains("hint: free some space"), "{answer}");
        assert!(!answer.stderr.contains("please report"), "{answer}");
    }
    for args in [&["--help"][..], &["build", "--help"], &["--version"]] {
        let answer = to_full_device(args);
        assert_eq!(answer.code, 2, "{args:?} {answer}");
        assert!(answer.stderr.contains("standard output"), "{answer}");
    }
    let events = ["build", "ks", "--events", "/dev/full"];
    let answer = portolan_in(HARBOR, &events);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("cannot write to `/dev/full`"),
        "{answer}"
    );
    let file = ["build", "ks", "--output-file", "/dev/full"];
    let answer = portolan_in(HARBOR, &file);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("hint: free some space"), "{answer}");
}

#[test]
fn a_pipe_in_a_repository_is_refused_by_name() {
    let dir = repository(&[
        ("cluster/apps.yaml", &kustomization("apps", "./apps")),
        ("apps/kustomization.yaml", "resources: [pipe.yaml]\n"),
    ]);
    let pipe = dir.path().join("apps/pipe.yaml");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("is installed").success());
    let root = dir.path().to_str().expect("is a text");
    for args in [
        &["build", "--path", "cluster", "--repo", "."][..],
        &["kustomize", "build", "apps"],
        &["audit", "files", "apps"],
    ] {
        let answer = portolan_in(root, args);
        assert_ne!(answer.code, 0, "{args:?} {answer}");
        let all = format!("{}{}", answer.stdout, answer.stderr);
        assert!(all.contains("pipe.yaml"), "{args:?} {answer}");
        assert!(all.contains("not a regular file"), "{args:?} {answer}");
    }
}
