//! Reading a commit's files without a checkout.

use std::os::unix::fs::symlink;

use camino::Utf8Path;
use portolan_git::{Repository, Tree};
use portolan_vfs::{Disk, FileKind, Vfs, VfsError};

use crate::workshop::Workshop;

fn head(workshop: &Workshop) -> Tree {
    let repository = Repository::discover(&workshop.path()).unwrap();
    let commit = repository.resolve("HEAD").unwrap();
    repository.tree(commit).unwrap()
}

fn read(tree: &dyn Vfs, path: &str) -> String {
    String::from_utf8(tree.read(path.into()).unwrap()).unwrap()
}

#[test]
fn files_are_read_from_the_commit_and_not_from_the_work_tree() {
    let workshop = Workshop::new();
    workshop.write("apps/a.yaml", "committed");
    workshop.commit("first");
    workshop.write("apps/a.yaml", "edited since");
    let tree = head(&workshop);
    assert_eq!(read(&tree, "/apps/a.yaml"), "committed");
    assert_eq!(read(&tree, "/apps/../apps/./a.yaml"), "committed");
}

/// Every directory and file looks the same through the tree and through a checkout.
#[test]
fn a_tree_lists_what_a_checkout_lists() {
    let workshop = Workshop::new();
    for path in ["a/x", "a.b/y", "a-b/z", "zz", "a/deep/er/f"] {
        workshop.write(path, path);
    }
    symlink("deep", workshop.path().join("a/alias")).unwrap();
    symlink("../zz", workshop.path().join("a/file-alias")).unwrap();
    workshop.commit("first");
    let tree = head(&workshop);
    let disk = Disk::open(&workshop.path()).unwrap();
    let mut pending = vec![camino::Utf8PathBuf::from("/")];
    while let Some(directory) = pending.pop() {
        let mut expected = disk.list(&directory).unwrap();
        expected.retain(|entry| entry.name != ".git");
        assert_eq!(tree.list(&directory).unwrap(), expected, "{directory}");
        for entry in expected {
            let path = directory.join(&entry.name);
            assert_eq!(
                tree.canonicalize(&path).unwrap(),
                disk.canonicalize(&path).unwrap()
            );
            if entry.is_directory {
                pending.push(path);
            } else {
                assert_eq!(tree.read(&path).unwrap(), disk.read(&path).unwrap());
            }
        }
    }
}

#[test]
fn links_out_of_the_tree_and_in_circles_are_refused() {
    let workshop = Workshop::new();
    workshop.write("d/keep", "x");
    symlink("/etc/passwd", workshop.path().join("absolute")).unwrap();
    symlink("../../etc/passwd", workshop.path().join("d/up")).unwrap();
    symlink("circle", workshop.path().join("circle")).unwrap();
    workshop.commit("first");
    let tree = head(&workshop);
    for path in ["/absolute", "/d/up", "/circle"] {
        let error = tree.read(path.into()).unwrap_err();
        assert!(matches!(error, VfsError::BadLink(_)), "{path}: {error}");
    }
}

#[test]
fn a_link_to_nothing_does_not_exist() {
    let workshop = Workshop::new();
    symlink("nowhere", workshop.path().join("dangling")).unwrap();
    workshop.commit("first");
    assert_eq!(head(&workshop).kind("/dangling".into()).unwrap(), None);
}

#[test]
fn files_and_directories_are_told_apart() {
    let workshop = Workshop::new();
    workshop.write("d/f", "x");
    workshop.commit("first");
    let tree = head(&workshop);
    assert_eq!(tree.kind("/".into()).unwrap(), Some(FileKind::Directory));
    assert_eq!(tree.kind("/d".into()).unwrap(), Some(FileKind::Directory));
    assert_eq!(tree.kind("/d/f".into()).unwrap(), Some(FileKind::File));
    assert_eq!(tree.kind("/d/f/below".into()).unwrap(), None);
    assert!(matches!(
        tree.read("/d".into()),
        Err(VfsError::IsDirectory(_))
    ));
    assert!(matches!(
        tree.list("/d/f".into()),
        Err(VfsError::NotDirectory(_))
    ));
    assert!(matches!(
        tree.read("/none".into()),
        Err(VfsError::NotFound(_))
    ));
}

#[test]
fn a_submodule_is_an_empty_directory() {
    let inner = Workshop::new();
    inner.write("file", "x");
    inner.commit("first");
    let workshop = Workshop::new();
    workshop.git(&["submodule", "add", "-q", inner.path().as_str(), "sub"]);
    workshop.commit("first");
    let tree = head(&workshop);
    assert!(tree.is_directory("/sub".into()));
    assert!(tree.list("/sub".into()).unwrap().is_empty());
    assert_eq!(tree.kind("/sub/file".into()).unwrap(), None);
}

#[test]
fn a_name_that_is_not_utf8_is_listed_and_refused_when_it_is_read() {
    use std::os::unix::ffi::OsStrExt as _;
    let workshop = Workshop::new();
    workshop.write("good", "x");
    let name = std::ffi::OsStr::from_bytes(b"bad-\xff");
    std::fs::write(workshop.path().as_std_path().join(name), "x").unwrap();
    workshop.commit("first");
    let tree = head(&workshop);
    let entries = tree.list(Utf8Path::new("/")).unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["bad-\u{fffd}", "good"]);
    let answer = tree.read(Utf8Path::new("/bad-\u{fffd}"));
    assert!(matches!(answer, Err(VfsError::NotUtf8(_))));
    assert_eq!(read(&tree, "/good"), "x");
}
