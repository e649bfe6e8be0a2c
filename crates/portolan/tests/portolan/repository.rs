//! Repositories made for one test.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// The example repository.
pub(crate) const HARBOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/harbor");

/// A directory with these files.
pub(crate) fn repository(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory can be made");
    for (name, text) in files {
        write(dir.path(), name, text);
    }
    dir
}

/// Writes a file and the directories above it.
pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("it can be made");
    fs::write(path, text).expect("it can be written");
}

/// A Kustomization that builds a path of the repository.
pub(crate) fn kustomization(name: &str, path: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec: {{path: {path}, prune: true, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
    )
}
