//! Paths as text: cleaned and joined without access to the file system, as Go's `path` package does.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Removes `.` and resolves `..` by text; `..` at the root stays at the root.
///
/// ```
/// assert_eq!(portolan_vfs::clean("/a/./b/../c".into()), "/a/c");
/// assert_eq!(portolan_vfs::clean("/../a".into()), "/a");
/// ```
pub fn clean(path: &Utf8Path) -> Utf8PathBuf {
    if is_clean(path.as_str()) {
        return path.to_owned();
    }
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

/// Whether cleaning would change nothing; names that begin with a dot are left to the longer way.
fn is_clean(path: &str) -> bool {
    let bytes = path.as_bytes();
    let mut pairs = bytes.iter().zip(bytes.iter().skip(1));
    bytes.first() == Some(&b'/')
        && pairs.all(|(one, next)| *one != b'/' || !matches!(next, b'/' | b'.'))
        && (bytes.len() == 1 || bytes.last() != Some(&b'/'))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_however_they_are_written() {
        let check = |written: &str, cleaned: &str| {
            assert_eq!(clean(written.into()), cleaned, "{written}");
            assert_eq!(clean(cleaned.into()), cleaned, "clean stays clean");
        };
        check("/", "/");
        check("", "/");
        check("//a", "/a");
        check("/a/", "/a");
        check("/a//b", "/a/b");
        check("/a/./b/.", "/a/b");
        check("/a/..", "/");
        check("/a/.hidden/b.yaml", "/a/.hidden/b.yaml");
        check("a/b", "/a/b");
    }
}
