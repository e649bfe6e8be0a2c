//! Digests of what is at a path, equal for what is there and what was predicted to be there.

use portolan_digest::{Digest, Hasher};

use crate::ahead::Attributes;

/// The digest of nothing.
pub(crate) fn of_absent() -> Digest {
    digest("absent", None, &Attributes::default())
}

/// The digest of a file, by its content and by what a step manages of its attributes.
pub(crate) fn of_file(content: &[u8], attributes: &Attributes) -> Digest {
    digest("file", Some(content), attributes)
}

/// The digest of a directory.
pub(crate) fn of_directory(attributes: &Attributes) -> Digest {
    digest("directory", None, attributes)
}

/// The digest of a link.
pub(crate) fn of_link(target: &str) -> Digest {
    digest("link", Some(target.as_bytes()), &Attributes::default())
}

/// The digest of a kind of thing that has no content to compare.
pub(crate) fn of_kind(kind: &str) -> Digest {
    digest(kind, None, &Attributes::default())
}

fn digest(kind: &str, content: Option<&[u8]>, attributes: &Attributes) -> Digest {
    let mut hasher = Hasher::default();
    let mut add = |part: Option<&[u8]>| {
        // The length with each part, so that no two lists of parts give the same bytes.
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(part.unwrap_or_default());
    };
    add(Some(kind.as_bytes()));
    add(content);
    let mode = attributes.mode.map(|mode| format!("{mode:o}"));
    add(mode.as_ref().map(String::as_bytes));
    add(attributes.owner.as_ref().map(String::as_bytes));
    add(attributes.group.as_ref().map(String::as_bytes));
    hasher.finish()
}
