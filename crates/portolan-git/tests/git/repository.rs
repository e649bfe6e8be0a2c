//! Finding repositories, naming commits, comparing them.

use portolan_git::{ChangeKind, GitError, Repository};

use crate::workshop::{Workshop, git};

#[test]
fn a_repository_is_found_from_a_directory_inside_it() {
    let workshop = Workshop::new();
    workshop.write("a/b/c.yaml", "x");
    let repository = Repository::discover(&workshop.path().join("a/b")).unwrap();
    assert_eq!(repository.work_tree(), Some(workshop.path().as_path()));
}

#[test]
fn a_linked_work_tree_has_its_own_root() {
    let workshop = Workshop::new();
    let id = workshop.commit("first");
    workshop.git(&["worktree", "add", "-q", "linked"]);
    let linked = workshop.path().join("linked");
    let repository = Repository::discover(&linked).unwrap();
    assert_eq!(repository.work_tree(), Some(linked.as_path()));
    assert_eq!(repository.resolve("HEAD").unwrap().to_string(), id);
}

#[test]
fn a_directory_outside_any_repository_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = camino::Utf8Path::from_path(directory.path()).unwrap();
    let error = Repository::discover(path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{path}` is not in a git repository")
    );
}

#[test]
fn branches_tags_ids_and_expressions_lead_to_commits() {
    let workshop = Workshop::new();
    let first = workshop.commit("first");
    workshop.git(&["tag", "-a", "v1", "-m", "annotated"]);
    let second = workshop.commit("second");
    let repository = Repository::discover(&workshop.path()).unwrap();
    let check = |revision: &str, expected: &str| {
        assert_eq!(
            repository.resolve(revision).unwrap().to_string(),
            expected,
            "{revision}"
        );
    };
    check("HEAD", &second);
    check("main", &second);
    check("refs/heads/main", &second);
    check("HEAD~1", &first);
    check("v1", &first);
    check(&first, &first);
    check(&first[..10], &first);
}

/// In CI only the pull request's branch is checked out; the base branch exists as `origin/main` alone.
#[test]
fn a_branch_that_only_the_remote_has_is_found() {
    let workshop = Workshop::new();
    let id = workshop.commit("first");
    workshop.git(&["update-ref", "refs/remotes/origin/base", &id]);
    let repository = Repository::discover(&workshop.path()).unwrap();
    assert_eq!(repository.resolve("base").unwrap().to_string(), id);
}

#[test]
fn an_unknown_revision_is_answered_with_the_nearest_names() {
    let workshop = Workshop::new();
    workshop.commit("first");
    workshop.git(&["branch", "release-1.2"]);
    let repository = Repository::discover(&workshop.path()).unwrap();
    let error = repository.resolve("relase-1.2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`relase-1.2` is not a revision of the repository, but `release-1.2`"
    );
}

#[test]
fn a_shallow_clone_is_named_when_history_is_missing() {
    let workshop = Workshop::new();
    workshop.commit("first");
    workshop.commit("second");
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", workshop.path());
    git(
        clone.path(),
        &["clone", "-q", "--depth", "1", &url, "shallow"],
    );
    let path = clone.path().join("shallow");
    let repository = Repository::discover(camino::Utf8Path::from_path(&path).unwrap()).unwrap();
    assert!(repository.is_shallow());
    let error = repository.resolve("HEAD~1").unwrap_err().to_string();
    assert!(error.contains("the clone is shallow"), "{error}");
}

#[test]
fn the_merge_base_is_the_commit_where_branches_part() {
    let workshop = Workshop::new();
    let base = workshop.commit("base");
    workshop.git(&["checkout", "-q", "-b", "feature"]);
    workshop.commit("feature");
    workshop.git(&["checkout", "-q", "main"]);
    workshop.commit("main moves on");
    let repository = Repository::discover(&workshop.path()).unwrap();
    let resolve = |name: &str| repository.resolve(name).unwrap();
    let found = repository.merge_base(resolve("main"), resolve("feature"));
    assert_eq!(found.unwrap().to_string(), base);
}

#[test]
fn branches_without_shared_history_have_no_merge_base() {
    let workshop = Workshop::new();
    workshop.commit("one");
    workshop.git(&["checkout", "-q", "--orphan", "other"]);
    workshop.commit("another beginning");
    let repository = Repository::discover(&workshop.path()).unwrap();
    let resolve = |name: &str| repository.resolve(name).unwrap();
    let error = repository
        .merge_base(resolve("main"), resolve("other"))
        .unwrap_err();
    assert!(matches!(
        error,
        GitError::NoMergeBase { shallow: false, .. }
    ));
}

#[test]
fn changed_paths_are_files_sorted_by_path_and_renames_are_two_changes() {
    let workshop = Workshop::new();
    workshop.write("apps/a.yaml", "a");
    workshop.write("apps/deep/er/b.yaml", "b");
    workshop.write("c.yaml", "the same text that moves");
    workshop.write("untouched", "x");
    workshop.commit("first");
    workshop.write("apps/a.yaml", "changed");
    workshop.write("new/dir/d.yaml", "d");
    workshop.git(&["rm", "-qr", "apps/deep"]);
    workshop.git(&["mv", "c.yaml", "moved.yaml"]);
    workshop.commit("second");
    let repository = Repository::discover(&workshop.path()).unwrap();
    let old = repository.resolve("HEAD~1").unwrap();
    let new = repository.resolve("HEAD").unwrap();
    let changes = repository.changed_paths(old, new).unwrap();
    let changes: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.kind)).collect();
    assert_eq!(
        changes,
        [
            ("apps/a.yaml", ChangeKind::Modified),
            ("apps/deep/er/b.yaml", ChangeKind::Removed),
            ("c.yaml", ChangeKind::Removed),
            ("moved.yaml", ChangeKind::Added),
            ("new/dir/d.yaml", ChangeKind::Added),
        ]
    );
}

#[test]
fn a_changed_path_that_is_not_utf8_is_an_error_that_names_it() {
    use std::os::unix::ffi::OsStrExt as _;
    let workshop = Workshop::new();
    workshop.commit("first");
    let name = std::ffi::OsStr::from_bytes(b"bad-\xff");
    std::fs::write(workshop.path().as_std_path().join(name), "x").unwrap();
    workshop.commit("second");
    let repository = Repository::discover(&workshop.path()).unwrap();
    let old = repository.resolve("HEAD~1").unwrap();
    let new = repository.resolve("HEAD").unwrap();
    let error = repository.changed_paths(old, new).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the name `bad-\u{fffd}` in the tree is not UTF-8"
    );
}
