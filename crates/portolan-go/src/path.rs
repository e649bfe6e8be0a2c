//! `path/filepath` as it is on Linux.

/// Returns the shortest path that means the same by its text: `Clean`.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            // Above the root is the root.
            ".." if rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Returns the last element, `.` for an empty path and `/` for one of slashes alone: `Base`.
pub fn base(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match (path, trimmed.rsplit('/').next()) {
        ("", _) => ".",
        (_, None | Some("")) => "/",
        (_, Some(last)) => last,
    }
}

/// Returns all but the last element, cleaned: `Dir`.
pub fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(&path[..end])
}

/// Returns the last element from its last dot on, or nothing if it has none: `Ext`.
pub fn ext(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rfind('.').map_or("", |dot| &last[dot..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        for (path, expected) in [
            ("", "."),
            ("a//b/./c", "a/b/c"),
            ("a/../b", "b"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("/../a/", "/a"),
            ("/", "/"),
            ("./", "."),
            ("../../a", "../../a"),
            ("a/../..", ".."),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_split_as_go_splits_it() {
        for (path, directory, last, extension) in [
            ("", ".", ".", ""),
            ("/", "/", "/", ""),
            ("a/b.tar.gz", "a", "b.tar.gz", ".gz"),
            ("a/b/", "a/b", "b", ""),
            ("a.d/b", "a.d", "b", ""),
            ("/a", "/", "a", ""),
        ] {
            let found = (dir(path), base(path), ext(path));
            assert_eq!(found, (directory.to_owned(), last, extension), "{path}");
        }
    }
}
