//! Paths as text: cleaning and joining without asking the file system, as Go's `path` package does.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Removes `.` and resolves `..` by text; `..` at the root stays at the root.
///
/// ```
/// assert_eq!(portolan_vfs::clean("/a/./b/../c".into()), "/a/c");
/// assert_eq!(portolan_vfs::clean("/../a".into()), "/a");
/// ```
pub fn clean(path: &Utf8Path) -> Utf8PathBuf {
    let mut out = Utf8PathBuf::from("/");
    for component in path.components() {
        match component {
            Utf8Component::Normal(name) => out.push(name),
            Utf8Component::ParentDir => {
                out.pop();
            }
            Utf8Component::CurDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => {}
        }
    }
    out
}

/// Joins a path as written in a file to the directory of that file and cleans the result.
///
/// ```
/// assert_eq!(portolan_vfs::resolve("/a/b".into(), "../c"), "/a/c");
/// assert_eq!(portolan_vfs::resolve("/a/b".into(), "/x"), "/x");
/// ```
pub fn resolve(directory: &Utf8Path, written: &str) -> Utf8PathBuf {
    clean(&directory.join(written))
}

/// The path from `directory` to `target`, with `..` where needed.
///
/// ```
/// assert_eq!(portolan_vfs::relative("/a/b".into(), "/a/c/d".into()), "../c/d");
/// ```
pub fn relative(directory: &Utf8Path, target: &Utf8Path) -> Utf8PathBuf {
    let from: Vec<_> = directory.components().collect();
    let to: Vec<_> = target.components().collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let ups = std::iter::repeat_n("..", from.len() - shared);
    ups.chain(to.iter().skip(shared).map(Utf8Component::as_str))
        .collect()
}
