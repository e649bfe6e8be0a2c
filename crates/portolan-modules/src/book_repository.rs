//! A Git repository that a book includes from, and where its files are among the files of the book.
//!
//! ```text
//! include: {git: https://git.example/books.git, ref: v3}
//!   @git/books@v3-1f0c…/.commit           the commit that the ref is pinned to
//!   @git/books@v3-1f0c…/web/common.yaml   a file of that commit
//! ```
//!
//! With names of their own, they are recorded, sent by digest and read on nodes as all other files of a book are.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use portolan_digest::Hasher;

/// The directory of all repositories among the files of a book.
const DIRECTORY: &str = "@git";

/// The file with the commit that a repository is pinned to.
const COMMIT_FILE: &str = ".commit";

/// The most letters of a repository's name and of a ref that are part of the directory's name.
const MAX_LETTERS: usize = 40;

/// A Git repository at a ref, as a book names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BookRepository {
    /// The address.
    pub url: String,
    /// A tag, a branch, a full name of a ref, or a commit.
    pub reference: String,
}

impl BookRepository {
    /// The directory of the repository among the files of the book.
    pub fn directory(&self) -> Utf8PathBuf {
        let mut hasher = Hasher::default();
        hasher.update(self.url.as_bytes());
        hasher.update(&[0]);
        hasher.update(self.reference.as_bytes());
        let digest = hasher.finish().hex();
        let url = self.url.trim_end_matches('/');
        let name = url.rsplit('/').next().unwrap_or_default();
        let name = plain(name.strip_suffix(".git").unwrap_or(name));
        let short = digest.get(..12).unwrap_or(&digest);
        let reference = plain(&self.reference);
        Utf8Path::new(DIRECTORY).join(format!("{name}@{reference}-{short}"))
    }

    /// The file with the commit that the repository is pinned to.
    pub fn commit_file(&self) -> Utf8PathBuf {
        self.directory().join(COMMIT_FILE)
    }

    /// The directory of the repository that a file of a book is in, and the file's path in it. `None` if it is a file of the
    /// book's own repository.
    pub fn split(path: &Utf8Path) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
        let mut parts = path.components();
        if parts.next() != Some(Utf8Component::Normal(DIRECTORY)) {
            return None;
        }
        let Some(Utf8Component::Normal(name)) = parts.next() else {
            return None;
        };
        let directory = Utf8Path::new(DIRECTORY).join(name);
        Some((directory, parts.as_path().to_owned()))
    }

    /// Whether a path inside a repository is that of the commit.
    pub fn is_commit_file(path: &Utf8Path) -> bool {
        path == COMMIT_FILE
    }
}

/// A text as a part of a file name.
fn plain(text: &str) -> String {
    let letters = text.chars().take(MAX_LETTERS);
    letters
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => letter,
            _ => '-',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(url: &str, reference: &str) -> String {
        let source = BookRepository {
            url: url.to_owned(),
            reference: reference.to_owned(),
        };
        source.directory().into_string()
    }

    #[test]
    fn every_address_and_ref_has_a_directory_of_its_own() {
        let first = directory("https://git.example/books.git", "v3");
        assert!(first.starts_with("@git/books@v3-"), "{first}");
        assert_eq!(first, directory("https://git.example/books.git", "v3"));
        for (url, reference) in [
            ("https://git.example/books.git", "v4"),
            ("https://other.example/books.git", "v3"),
            ("https://git.example/books", "v3"),
        ] {
            assert_ne!(first, directory(url, reference));
        }
        let odd = directory("https://git.example/../..", "../../etc");
        assert_eq!(odd.split('/').count(), 2, "{odd}");
    }

    #[test]
    fn a_path_is_split_at_its_repository() {
        let split = |path: &str| {
            let found = BookRepository::split(Utf8Path::new(path));
            found.map(|(directory, path)| (directory.into_string(), path.into_string()))
        };
        assert_eq!(
            split("@git/a@v1-0/web/x.yaml"),
            Some(("@git/a@v1-0".to_owned(), "web/x.yaml".to_owned()))
        );
        assert_eq!(split("templates/x"), None);
        assert_eq!(split("@git/../x"), None);
    }
}
