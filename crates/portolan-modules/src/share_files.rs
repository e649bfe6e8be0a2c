//! Several files as the content of one share.
//!
//! ```text
//! portolan share files 1\n
//! [{"path": "a/b", "mode": 416, "bytes": 3}, …]\n
//! contents, one behind the other
//! ```
//!
//! A content that does not begin like this is that of a single file. What is read here came from another node, so that
//! nothing of it is believed: paths stay below the directory that they are written into, and nothing is larger than a share.

use std::collections::BTreeMap;
use std::ops::Bound;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::shares::MAX_SHARE_BYTES;

/// What the content of several files begins with.
const BEGINNING: &[u8] = b"portolan share files 1\n";

/// The most files of a share.
pub const MAX_SHARE_FILES: usize = 100;

/// The longest path of a file in a share.
const MAX_PATH: usize = 255;

/// The most bytes that stand before the contents.
const MAX_HEAD: usize = 60 << 10;

/// The most bytes of a share with the list of its files.
pub const MAX_SHARE_CONTENT: usize = MAX_SHARE_BYTES + (64 << 10);

/// Files that are given together, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShareFiles(BTreeMap<Utf8PathBuf, ShareFile>);

/// A file of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareFile {
    /// Its permissions, without setuid, setgid and sticky bits.
    pub mode: u32,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// What a share holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedContent {
    /// One content, without a name.
    Single(Vec<u8>),
    /// Files with their names.
    Files(ShareFiles),
}

/// Why files cannot be shared, or what was shared cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShareFilesError {
    /// There are none.
    #[error("there are no files")]
    NoFiles,
    /// There are too many.
    #[error("there are more than {MAX_SHARE_FILES} files")]
    TooMany,
    /// They are too large.
    #[error("the files have more than {MAX_SHARE_BYTES} bytes together")]
    TooLarge,
    /// A path leads elsewhere, or cannot be the name of a file.
    #[error("`{0}` is not the path of a file below a directory")]
    Path(String),
    /// Two files have one path, or one is where another has a directory.
    #[error("two files have the path `{0}`")]
    Twice(String),
    /// Something else was sent.
    #[error("the list of files is damaged: {0}")]
    Damaged(&'static str),
}

/// A line of the list.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    mode: u32,
    bytes: usize,
}

impl ShareFiles {
    /// The files, sorted by their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&Utf8Path, &ShareFile)> {
        self.0.iter().map(|(path, file)| (path.as_path(), file))
    }

    /// A file by its path.
    pub fn get(&self, path: &Utf8Path) -> Option<&ShareFile> {
        self.0.get(path)
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The bytes of all files together.
    pub fn bytes(&self) -> usize {
        self.0.values().map(|file| file.content.len()).sum()
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When its path is taken or not allowed, or there is too much of it.
    pub fn add(
        &mut self,
        path: &Utf8Path,
        mode: u32,
        content: Vec<u8>,
    ) -> Result<(), ShareFilesError> {
        if !is_below(path) {
            return Err(ShareFilesError::Path(path.to_string()));
        }
        if self.0.len() >= MAX_SHARE_FILES {
            return Err(ShareFilesError::TooMany);
        }
        if self.bytes() + content.len() > MAX_SHARE_BYTES {
            return Err(ShareFilesError::TooLarge);
        }
        if self.is_taken(path) {
            return Err(ShareFilesError::Twice(path.to_string()));
        }
        let mode = mode & 0o777;
        self.0.insert(path.to_owned(), ShareFile { mode, content });
        Ok(())
    }

    /// Whether there is a file of this path, above it or below it.
    fn is_taken(&self, path: &Utf8Path) -> bool {
        let mut above = path.ancestors();
        let after = (Bound::Included(path.to_owned()), Bound::Unbounded);
        above.any(|above| self.0.contains_key(above))
            || self
                .0
                .range(after)
                .any(|(known, _)| known.starts_with(path))
    }

    /// The content of a share with these files.
    ///
    /// # Errors
    /// When there are none, or their list is too long.
    pub fn to_content(&self) -> Result<Vec<u8>, ShareFilesError> {
        if self.0.is_empty() {
            return Err(ShareFilesError::NoFiles);
        }
        let entries = self.0.iter().map(|(path, file)| Entry {
            path: path.to_string(),
            mode: file.mode,
            bytes: file.content.len(),
        });
        let entries: Vec<Entry> = entries.collect();
        let head = serde_json::to_vec(&entries).unwrap_or_default();
        if head.len() > MAX_HEAD {
            return Err(ShareFilesError::TooMany);
        }
        let mut content = BEGINNING.to_vec();
        content.extend(head);
        content.push(b'\n');
        for file in self.0.values() {
            content.extend_from_slice(&file.content);
        }
        Ok(content)
    }
}

impl SharedContent {
    /// Whether a content would be taken for several files.
    pub fn looks_like_files(content: &[u8]) -> bool {
        content.starts_with(BEGINNING)
    }

    /// Reads what another node shared.
    ///
    /// # Errors
    /// When it is a damaged list of files.
    pub fn read(content: Vec<u8>) -> Result<Self, ShareFilesError> {
        let Some(rest) = content.strip_prefix(BEGINNING) else {
            if content.len() > MAX_SHARE_BYTES {
                return Err(ShareFilesError::TooLarge);
            }
            return Ok(Self::Single(content));
        };
        let damaged = ShareFilesError::Damaged;
        let end = rest
            .iter()
            .take(MAX_HEAD + 1)
            .position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| damaged("it has no end"))?;
        let (head, bodies) = rest.split_at(end);
        let mut bodies = bodies.get(1..).unwrap_or_default();
        let entries: Vec<Entry> =
            serde_json::from_slice(head).map_err(|_| damaged("it cannot be read"))?;
        let mut files = ShareFiles::default();
        for entry in entries {
            let body = bodies.split_at_checked(entry.bytes);
            let (body, rest) = body.ok_or_else(|| damaged("a file is shorter than it says"))?;
            bodies = rest;
            files.add(Utf8Path::new(&entry.path), entry.mode, body.to_vec())?;
        }
        if !bodies.is_empty() {
            return Err(damaged("there is more than it says"));
        }
        if files.count() == 0 {
            return Err(ShareFilesError::NoFiles);
        }
        Ok(Self::Files(files))
    }
}

/// Whether a path names a file below a directory, in one way only.
fn is_below(path: &Utf8Path) -> bool {
    let text = path.as_str();
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    text.len() <= MAX_PATH && !text.chars().any(char::is_control) && text.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Result<ShareFiles, ShareFilesError> {
        let mut files = ShareFiles::default();
        for path in paths {
            files.add(Utf8Path::new(path), 0o640, path.as_bytes().to_vec())?;
        }
        Ok(files)
    }

    #[test]
    fn files_are_read_as_they_were_shared() {
        let mut made = files(&["tls/key.pem", "tls/cert.pem", "empty"]).expect("files");
        made.add(Utf8Path::new("run"), 0o4755, b"\n\0".to_vec())
            .expect("a file");
        let content = made.to_content().expect("content");
        let read = SharedContent::read(content).expect("read");
        assert_eq!(read, SharedContent::Files(made.clone()));
        assert_eq!(made.get("run".into()).map(|file| file.mode), Some(0o755));
        let single = SharedContent::read(b"token".to_vec());
        assert_eq!(single, Ok(SharedContent::Single(b"token".to_vec())));
    }

    #[test]
    fn no_path_leads_elsewhere_and_none_is_there_twice() {
        for path in ["/a", "../a", "a/../b", "a//b", ".", "", "a/.", "a\nb", "a/"] {
            assert_eq!(
                files(&[path]),
                Err(ShareFilesError::Path(path.to_owned())),
                "{path:?}"
            );
        }
        for paths in [["a", "a"], ["a", "a/b"], ["a/b", "a"]] {
            let twice = Err(ShareFilesError::Twice(paths[1].to_owned()));
            assert_eq!(files(&paths), twice, "{paths:?}");
        }
        assert!(files(&["a", "ab", "a.b/c"]).is_ok());
    }

    #[test]
    fn too_much_and_damaged_lists_are_refused() {
        let many: Vec<String> = (0..=MAX_SHARE_FILES)
            .map(|number| number.to_string())
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(files(&many), Err(ShareFilesError::TooMany));
        let mut large = files(&["a"]).expect("a file");
        let added = large.add("b".into(), 0o600, vec![0; MAX_SHARE_BYTES]);
        assert_eq!(added, Err(ShareFilesError::TooLarge));
        assert_eq!(
            ShareFiles::default().to_content(),
            Err(ShareFilesError::NoFiles)
        );
        let content = files(&["a", "b"])
            .expect("files")
            .to_content()
            .expect("content");
        for damaged in [
            &content[..content.len() - 1],
            &[&content[..], b"x"].concat(),
            BEGINNING,
            &[BEGINNING, b"[]\n"].concat(),
            &[BEGINNING, b"{}\n"].concat(),
            &[BEGINNING, br#"[{"path":"../x","mode":1,"bytes":0}]"#, b"\n"].concat(),
            &[
                BEGINNING,
                br#"[{"path":"x","mode":1,"bytes":18446744073709551615}]"#,
                b"\n",
            ]
            .concat(),
        ] {
            assert!(SharedContent::read(damaged.to_vec()).is_err());
        }
    }
}
