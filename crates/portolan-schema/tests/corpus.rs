//! Valid objects give no violation: what real helm and kustomize printed for real charts and overlays, and every object
//! of real Flux repositories.
//!
//! Runs over the shared corpus when it is there and says so when it is not. What is listed as wrong was looked at: an
//! API server refuses it too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use portolan_object::{KubeVersion, Object, Origin, expand_lists};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Node, parse_bytes};

/// Everything below a directory that is YAML.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn documents(path: &Path) -> Vec<Node> {
    let bytes = std::fs::read(path).expect("a readable file");
    parse_bytes(&bytes, Dialect::Helm).unwrap_or_default()
}

/// `file: Kind/name: violation` for every violation of one file's objects.
fn violations(catalogue: &Catalogue, path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let objects = documents(path)
        .into_iter()
        .flat_map(expand_lists)
        .filter_map(|node| Object::new(node, Origin::default()).ok());
    let mut lines = Vec::new();
    for object in objects {
        if let Verdict::Checked(violations) = catalogue.check(&object) {
            lines.extend(violations.iter().map(|violation| {
                format!("{name}: {}/{}: {violation}", object.kind(), object.name())
            }));
        }
    }
    lines
}

#[test]
fn objects_of_the_corpus_are_valid() {
    let Some(corpus) = portolan_testbed::corpus("") else {
        return;
    };
    let files: Vec<PathBuf> = ["expected/helm", "expected/kustomize", "flux-expected"]
        .into_iter()
        .flat_map(|part| files(&corpus.join(part)))
        .collect();
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 34));
    for path in &files {
        for node in documents(path) {
            catalogue.define(&node);
        }
    }
    let half = files.len() / 2;
    let check = |files: &[PathBuf]| -> BTreeSet<String> {
        files
            .iter()
            .flat_map(|path| violations(&catalogue, path))
            .collect()
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| check(&files[half..]));
        (check(&files[..half]), other.join().expect("no panic"))
    });
    let found: Vec<String> = one.into_iter().chain(other).collect();
    insta::assert_snapshot!("violations_of_the_corpus", found.join("\n"));
}
