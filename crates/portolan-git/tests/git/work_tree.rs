//! Where a work tree differs from a commit, asked of the index.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_git::Repository;
use portolan_vfs::{DirEntry, Disk, FileKind, Vfs, VfsError};

use crate::workshop::Workshop;

/// A disk whose files must not be read.
struct Unread(Disk);

impl Vfs for Unread {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        unreachable!("{path} was read")
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        self.0.list(directory)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        self.0.kind(path)
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        self.0.canonicalize(path)
    }
}

fn small() -> Workshop {
    let workshop = Workshop::new();
    for path in [
        "README.md",
        "apps/a.yaml",
        "apps/b.yaml",
        "infra/deep/c.yaml",
    ] {
        workshop.write(path, "kind: A\n");
    }
    workshop.commit("first");
    workshop
}

fn touched_below(workshop: &Workshop, base: &str, directory: &str) -> Vec<String> {
    let repository = Repository::discover(&workshop.path()).unwrap();
    let base = repository.resolve(base).unwrap();
    let disk = Disk::open(&workshop.path().join(directory)).unwrap();
    let touched = repository
        .touched_since(base, directory.into(), &disk)
        .unwrap();
    let touched = touched.expect("there is an index").into_iter();
    touched.map(Utf8PathBuf::into_string).collect()
}

fn touched(workshop: &Workshop, base: &str) -> Vec<String> {
    touched_below(workshop, base, "")
}

#[test]
fn a_clean_work_tree_is_vouched_for_without_reading_it() {
    let workshop = small();
    // The index must be younger than the files for its word to count.
    let past = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
    for path in [
        "README.md",
        "apps/a.yaml",
        "apps/b.yaml",
        "infra/deep/c.yaml",
    ] {
        let file = fs::File::open(workshop.path().join(path)).unwrap();
        file.set_modified(past).unwrap();
    }
    workshop.git(&["update-index", "-q", "--refresh"]);
    let repository = Repository::discover(&workshop.path()).unwrap();
    let head = repository.resolve("HEAD").unwrap();
    let disk = Unread(Disk::open(&workshop.path()).unwrap());
    let touched = repository.touched_since(head, "".into(), &disk).unwrap();
    assert!(touched.unwrap().is_empty());
}

#[test]
fn files_that_were_edited_staged_added_or_taken_away_are_touched() {
    let workshop = small();
    workshop.write("apps/a.yaml", "kind: B\n");
    workshop.write("apps/b.yaml", "kind: C\n");
    workshop.git(&["add", "apps/b.yaml"]);
    workshop.write("new.yaml", "");
    workshop.write("more/deep/new.yaml", "");
    fs::remove_file(workshop.path().join("README.md")).unwrap();
    assert_eq!(
        touched(&workshop, "HEAD"),
        [
            "/README.md",
            "/apps/a.yaml",
            "/apps/b.yaml",
            "/more",
            "/new.yaml"
        ]
    );
}

#[test]
fn commits_since_then_count_too() {
    let workshop = small();
    workshop.write("infra/deep/c.yaml", "kind: B\n");
    workshop.commit("second");
    workshop.git(&["rm", "-rq", "apps"]);
    workshop.commit("third");
    assert_eq!(
        touched(&workshop, "HEAD~2"),
        ["/apps", "/infra/deep/c.yaml"]
    );
    assert_eq!(touched(&workshop, "HEAD~1"), ["/apps"]);
    assert!(touched(&workshop, "HEAD").is_empty());
}

/// Git cannot tell by size and time alone what was written while it wrote the index.
#[test]
fn an_edit_of_the_same_size_in_the_same_moment_is_found() {
    let workshop = small();
    for round in 0..20 {
        workshop.write("apps/a.yaml", &format!("kind: {round:04}\n"));
        workshop.git(&["add", "-A"]);
        workshop.write("apps/a.yaml", &format!("kind: {:04}\n", round + 1000));
        assert_eq!(touched(&workshop, "HEAD"), ["/apps/a.yaml"], "{round}");
    }
}

#[test]
fn a_file_that_was_written_again_with_the_same_content_is_not_touched() {
    let workshop = small();
    workshop.write("apps/a.yaml", "kind: A\n");
    assert!(touched(&workshop, "HEAD").is_empty());
}

#[test]
fn a_file_that_became_a_link_or_a_directory_is_touched() {
    let workshop = small();
    let path = workshop.path();
    fs::remove_file(path.join("apps/a.yaml")).unwrap();
    std::os::unix::fs::symlink("b.yaml", path.join("apps/a.yaml")).unwrap();
    fs::remove_file(path.join("README.md")).unwrap();
    workshop.write("README.md/x", "");
    assert_eq!(touched(&workshop, "HEAD"), ["/README.md", "/apps/a.yaml"]);
}

#[test]
fn only_what_lies_below_the_directory_counts() {
    let workshop = small();
    workshop.write("README.md", "new");
    workshop.write("infra/deep/c.yaml", "new");
    assert_eq!(touched_below(&workshop, "HEAD", "infra"), ["/deep/c.yaml"]);
    assert!(touched_below(&workshop, "HEAD", "apps").is_empty());
}

#[test]
fn unfinished_merges_are_touched() {
    let workshop = small();
    workshop.git(&["checkout", "-q", "-b", "other"]);
    workshop.write("apps/a.yaml", "kind: Other\n");
    workshop.commit("other");
    workshop.git(&["checkout", "-q", "main"]);
    workshop.write("apps/a.yaml", "kind: Main\n");
    workshop.commit("main");
    let merged = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "merge",
            "other",
        ])
        .current_dir(workshop.path())
        .output()
        .unwrap();
    assert!(!merged.status.success(), "it conflicts");
    assert_eq!(touched(&workshop, "HEAD"), ["/apps/a.yaml"]);
}

#[test]
fn without_an_index_nothing_is_known() {
    let workshop = small();
    fs::remove_file(workshop.path().join(".git/index")).unwrap();
    let repository = Repository::discover(&workshop.path()).unwrap();
    let head = repository.resolve("HEAD").unwrap();
    let disk = Disk::open(&workshop.path()).unwrap();
    let touched = repository.touched_since(head, "".into(), &disk).unwrap();
    assert_eq!(touched, None);
}
