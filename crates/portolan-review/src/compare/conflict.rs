//! Files with unresolved merge conflicts.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::Vfs;

/// The most files that are named.
const MAX_NAMED: usize = 5;

/// How deep directories are searched.
const MAX_DEPTH: usize = 64;

/// The first files with conflict markers, searched only when something is broken already.
pub(super) fn conflicted(files: &dyn Vfs) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    search(files, Utf8Path::new("/"), MAX_DEPTH, &mut found);
    found
}

fn search(files: &dyn Vfs, directory: &Utf8Path, depth: usize, found: &mut Vec<Utf8PathBuf>) {
    for entry in files.list(directory).unwrap_or_default() {
        let path = directory.join(&entry.name);
        if found.len() == MAX_NAMED || entry.is_symlink || entry.name == ".git" {
            continue;
        }
        if entry.is_directory && depth > 0 {
            search(files, &path, depth - 1, found);
        } else if is_text(&path) && files.read(&path).is_ok_and(|bytes| has_markers(&bytes)) {
            let relative = path.strip_prefix("/").unwrap_or(&path);
            found.push(relative.to_owned());
        }
    }
}

fn is_text(path: &Utf8Path) -> bool {
    matches!(
        path.extension(),
        Some("yaml" | "yml" | "json" | "tpl" | "env" | "conf")
    )
}

fn has_markers(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut opened = false;
    for line in lines {
        opened |= line.starts_with(b"<<<<<<< ");
        if opened && line.starts_with(b">>>>>>> ") {
            return true;
        }
    }
    false
}
