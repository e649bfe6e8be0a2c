//! The files of a context as entries of an image.
//!
//! ```text
//! copies ──walk──▶ names, links, files to read ──read in parallel──▶ entries by path ──▶ one digest: the key
//! ```
//!
//! Entries depend only on names, contents, links and execute bits: not on the directory of the context, the umask,
//! the order of names on disk or the date.

mod content;
pub(crate) mod merge;
mod walk;

use portolan_digest::Digest;

use crate::copy::CopySpec;
use crate::entry::{Entry, Node};
use crate::ignore::{Ignore, IgnoreError, IgnoreFileError, read_patterns};
use crate::key::Key;
use crate::memo::Memo;
use crate::notice::{Notice, Refusal};
use crate::source::Source;

/// The most entries of one image.
pub const MAX_ENTRIES: usize = 4_000_000;

/// The longest path of the context or the image: what Linux takes.
pub const MAX_PATH_BYTES: usize = 4096;

/// The longest ignore file.
const MAX_IGNORE_BYTES: u64 = 4 << 20;

/// What a scan needs beside the files.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions<'a> {
    /// Patterns of `.dockerignore`, as [`ignore_patterns`] finds them.
    pub ignore: &'a [String],
    /// Paths of the context that are never copied: where the store is, if it lies inside.
    pub never: &'a [String],
    /// Digests known from before.
    pub memo: &'a Memo,
    /// The time in nanoseconds since 1970: files that changed just now are not remembered.
    pub now: i64,
    /// How many threads read files.
    pub threads: usize,
}

/// The entries of an image and what was noticed on the way.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Sorted by path, each path once, every directory of a path present.
    pub entries: Vec<Entry>,
    /// What is left out of the image or may surprise.
    pub notices: Vec<Notice>,
    /// The digests of the files of this scan, for the next one.
    pub memo: Memo,
}

/// Why the files of a context are not the files of an image.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Names that lead out of the context or the image, or to nothing.
    #[error("cannot copy `{from}` to `{to}`: {why}")]
    Copy {
        /// The path in the context as it was written.
        from: String,
        /// The path in the image as it was written.
        to: String,
        /// What is wrong.
        why: String,
    },
    /// A pattern that cannot be used.
    #[error("cannot use a pattern of the ignore file")]
    Ignore(#[from] IgnoreError),
    /// An ignore file that cannot be read.
    #[error("cannot read `{path}`")]
    IgnoreFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        source: IgnoreFileError,
    },
    /// Files that cannot be in an image, or cannot be read; all of them.
    #[error("{}", told(.0))]
    Refused(Vec<Refusal>),
    /// A file in the place of a directory.
    #[error("`/{path}` is a directory of one copy and a file or link of another")]
    Clash {
        /// The path in the image.
        path: String,
    },
    /// More than [`MAX_ENTRIES`].
    #[error("an image has at most {MAX_ENTRIES} files and directories")]
    TooMany,
}

impl Scan {
    /// The digest of all entries: the same for the same files wherever they lie.
    pub fn digest(&self) -> Digest {
        let mut key = Key::new("entries");
        key.number(self.entries.len() as u64);
        for entry in &self.entries {
            key.entry(entry);
        }
        key.finish()
    }

    /// The number of bytes of all files.
    pub fn size(&self) -> u64 {
        let sizes = self.entries.iter().map(|entry| match entry.node {
            Node::File { size, .. } => size,
            _ => 0,
        });
        sizes.sum()
    }
}

/// Reads the files of a context. What no image can hold is an error that names each of them.
pub fn scan(
    source: &dyn Source,
    copies: &[CopySpec],
    options: &ScanOptions<'_>,
) -> Result<Scan, ScanError> {
    let mut found = walk::Found::default();
    for copy in copies {
        let patterns = options.ignore.iter().chain(&copy.ignore);
        let ignore = Ignore::new(patterns.map(String::as_str))?;
        walk::walk(source, copy, &ignore, options.never, &mut found)?;
    }
    let mut memo = Memo::default();
    content::read(source, &mut found, options, &mut memo);
    if !found.refusals.is_empty() {
        found.refusals.sort_by(|a, b| a.path.cmp(&b.path));
        found.refusals.dedup();
        return Err(ScanError::Refused(found.refusals));
    }
    let entries = merge::merge(found.entries)?;
    let mut notices = found.notices;
    notices.extend(merge::equal_but_for_case(&entries));
    Ok(Scan {
        entries,
        notices,
        memo,
    })
}

/// Finds the patterns that say what of a context is left out: those of `<file>.dockerignore` if there is one, else those of
/// `.dockerignore`, else none.
pub fn ignore_patterns(source: &dyn Source, file: Option<&str>) -> Result<Vec<String>, ScanError> {
    let names = file.map(|file| format!("{file}.dockerignore"));
    for path in names.into_iter().chain([".dockerignore".to_owned()]) {
        let refused = |why: String| {
            ScanError::Refused(vec![Refusal {
                path: path.clone(),
                why,
            }])
        };
        let file = match source.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(refused(format!("cannot be read: {error}"))),
        };
        let mut content = Vec::new();
        std::io::Read::read_to_end(
            &mut std::io::Read::take(file, MAX_IGNORE_BYTES + 1),
            &mut content,
        )
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
        if content.len() as u64 > MAX_IGNORE_BYTES {
            return Err(refused(format!("is longer than {MAX_IGNORE_BYTES} bytes")));
        }
        return read_patterns(&content).map_err(|source| ScanError::IgnoreFile { path, source });
    }
    Ok(Vec::new())
}

/// How many refusals a message names.
const NAMED: usize = 10;

fn told(refusals: &[Refusal]) -> String {
    let mut lines: Vec<String> = refusals
        .iter()
        .take(NAMED)
        .map(ToString::to_string)
        .collect();
    if refusals.len() > NAMED {
        lines.push(format!("and {} more", refusals.len() - NAMED));
    }
    lines.join("; ")
}
