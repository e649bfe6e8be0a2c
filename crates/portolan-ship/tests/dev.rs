//! What a changed file means for a project, and how changed files are found.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_ship::{ChangedFiles, DevProject, DirtySet, DocumentError, FileChanges, Ship};
use tokio::time::timeout;

const DOCUMENT: &str = r#"
apiVersion: portolan.dev/v1alpha1
kind: Ship
metadata: {name: shop}
spec:
  artifacts:
  - {name: base, image: r.example/base, oci: {context: ./base}}
  - {name: web, image: r.example/web, oci: {context: web, base: {artifact: base}}}
  - {name: tool, image: r.example/tool, command: {run: [make], dir: tool, inputs: ["src/**"]}}
  dev:
    sync: [{artifact: web, from: "static/**", to: /srv}]
"#;

fn project() -> DevProject {
    let ship = Ship::read(DOCUMENT, &|_| None).expect("a document");
    DevProject::new(Arc::new(ship), "/p".into(), "/p/portolan.yaml".into())
}

fn dirty(paths: &[&str]) -> DirtySet {
    let changes = FileChanges {
        paths: paths.iter().map(Utf8PathBuf::from).collect(),
        is_partial: false,
    };
    project().dirty(&changes)
}

fn names(dirty: &DirtySet) -> Vec<&str> {
    dirty.artifacts.iter().map(String::as_str).collect()
}

#[test]
fn a_file_builds_what_is_made_of_it_and_what_needs_that() {
    assert_eq!(names(&dirty(&["/p/web/main.c"])), ["web"]);
    assert_eq!(names(&dirty(&["/p/base/os"])), ["base", "web"]);
    assert_eq!(names(&dirty(&["/p/tool/src/a/b.c"])), ["tool"]);
    let others = dirty(&["/p/tool/out/b.o", "/p/README.md"]);
    assert_eq!(others, DirtySet::default());
}

#[test]
fn a_file_of_a_sync_rule_is_copied_unless_its_artifact_is_built_anyway() {
    let copied = dirty(&["/p/web/static/css/a.css"]);
    assert_eq!(names(&copied), [""; 0]);
    let files: Vec<&str> = copied.files[&0].iter().map(String::as_str).collect();
    assert_eq!(files, ["static/css/a.css"]);
    // The directory is only there for them.
    assert_eq!(dirty(&["/p/web/static"]), DirtySet::default());
    let both = dirty(&["/p/web/static/a.css", "/p/web/main.c"]);
    assert_eq!(names(&both), ["web"]);
    assert!(both.files.is_empty());
}

#[test]
fn the_document_and_a_change_that_is_only_partly_known_concern_everything() {
    assert!(dirty(&["/p/portolan.yaml"]).document);
    let changes = FileChanges {
        is_partial: true,
        ..FileChanges::default()
    };
    let all = project().dirty(&changes);
    assert!(all.document);
    assert_eq!(names(&all), ["base", "tool", "web"]);
}

/// Every mistake at once, each with its line.
#[test]
fn mistakes_in_the_dev_part_are_told_with_their_place() {
    let text = DOCUMENT.replace(
        "    sync: [{artifact: web, from: \"static/**\", to: /srv}]\n",
        "    sync:\n    - {artifact: wbe, from: \"static/**\", to: srv}\n    - {artifact: web, from: \"[\", to: /srv, afer: [a]}\n    forward:\n    - {resource: configmap/web, port: 80}\n    - {resource: service/web, port: 70000}\n    - {resource: service/web}\n    - {resource: svc/web, port: 80}\n",
    );
    let Err(DocumentError::Faults(faults)) = Ship::read(&text, &|_| None) else {
        panic!("no faults");
    };
    let told: Vec<String> = faults
        .iter()
        .map(|fault| {
            let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})"));
            format!(
                "{}: {}{}",
                fault.at.line,
                fault.message,
                hint.unwrap_or_default()
            )
        })
        .collect();
    let expected = [
        "12: no artifact is called `wbe` (did you mean `web`?)",
        "12: `srv` is no place in a container: it must begin with `/` and have no `..`",
        "13: `[` is no pattern: ",
        "13: `spec.dev.sync[1]` has no field `afer` (did you mean `after`?)",
        "15: `configmap/web` has no ports that can be forwarded (write `KIND/NAME`; KIND is one of pod, service, deployment, statefulset, daemonset, replicaset, job)",
        "16: `spec.dev.forward[1].port`: must be a port, from 1 to 65535",
        "17: `spec.dev.forward[2].port` is missing",
        "18: the local port 80 is used by the rule of line 15 too (name another one: `local: PORT`)",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

fn directory() -> (tempfile::TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().canonicalize().expect("a path");
    let path = Utf8PathBuf::from_path_buf(path).expect("UTF-8");
    for name in ["store", ".git", "web"] {
        fs::create_dir(path.join(name)).expect("a directory");
    }
    (directory, path)
}

async fn next(files: &mut ChangedFiles) -> FileChanges {
    let changes = timeout(Duration::from_secs(20), files.next()).await;
    changes.expect("a change")
}

async fn check(files: &mut ChangedFiles, root: &Utf8Path) {
    for name in ["store/a", ".git/b", "web/c"] {
        fs::write(root.join(name), "text").expect("a file");
    }
    assert_eq!(next(files).await.paths, [root.join("web/c")].into());
    fs::remove_file(root.join("web/c")).expect("removed");
    assert!(next(files).await.paths.contains(&root.join("web/c")));
}

#[tokio::test]
async fn saved_and_removed_files_are_told_but_not_those_of_the_store_and_of_git() {
    let (_held, root) = directory();
    let mut files = ChangedFiles::below(&root, vec![root.join("store")]);
    assert_eq!(files.why_polling(), None);
    check(&mut files, &root).await;
    // As a program does that writes a directory whole.
    fs::create_dir_all(root.join("web/new/deep")).expect("a directory");
    fs::write(root.join("web/new/deep/file"), "text").expect("a file");
    let mut paths = next(&mut files).await.paths;
    while !paths.contains(&root.join("web/new/deep/file")) {
        paths.extend(next(&mut files).await.paths);
    }
}

#[tokio::test]
async fn files_are_compared_if_the_operating_system_does_not_tell() {
    let (_held, root) = directory();
    let mut files = ChangedFiles::compared(&root, vec![root.join("store")], "limits");
    assert_eq!(files.why_polling(), Some("limits"));
    check(&mut files, &root).await;
}

/// One saved file of many: the operating system says which one it is, and nobody looks at the others.
#[tokio::test]
async fn one_saved_file_among_many_is_told_at_once_and_alone() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let count = if is_long { 100_000 } else { 5_000 };
    let (_held, root) = directory();
    for number in 0..count {
        let directory = root.join(format!("web/d{}", number / 1000));
        if number % 1000 == 0 {
            fs::create_dir(&directory).expect("a directory");
        }
        fs::write(directory.join(format!("f{number}")), "").expect("a file");
    }
    let mut files = ChangedFiles::below(&root, vec![root.join("store")]);
    assert_eq!(files.why_polling(), None);
    let file = root.join("web/d2/f2345");
    let began = Instant::now();
    fs::write(&file, "saved").expect("a file");
    let changes = next(&mut files).await;
    // 150 ms are asked for; a loaded machine gets more.
    eprintln!(
        "one of {count} files was told of {:?} after it was saved",
        began.elapsed()
    );
    assert_eq!(changes.paths, [file].into());
    assert!(!changes.is_partial);
}
