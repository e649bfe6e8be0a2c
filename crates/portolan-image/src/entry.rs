//! One file, directory or link of an image, with only the properties that an image holds.
//!
//! The key of a build and the bytes of a layer are made from the same entries, so neither can depend on something
//! that the other does not see.

/// One path of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path in the image, without a leading `/`; never empty, no `.`, `..` or empty part.
    pub path: String,
    /// What is there.
    pub node: Node,
    /// Permissions: 0644 or 0755 unless a copy says otherwise.
    pub mode: u32,
    /// Numbers of the owner and the group.
    pub owner: Owner,
    /// The value of `security.capability`, where a copy keeps it.
    pub capability: Option<Vec<u8>>,
}

/// What is at a path of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Directory,
    /// A file: where its content comes from, and the content's length and SHA-256.
    File {
        /// The path in the [`crate::Source`].
        source: String,
        /// The length in bytes.
        size: u64,
        /// The SHA-256 of the content.
        content: [u8; 32],
    },
    /// A symbolic link and what it says.
    Link(String),
}

/// Numbers of an owner and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

impl Entry {
    /// A directory that nobody gave: root's, and everybody may look into it.
    pub(crate) fn parent(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            node: Node::Directory,
            mode: 0o755,
            owner: Owner::default(),
            capability: None,
        }
    }

    /// The directory that it lies in, `""` for the root.
    pub fn directory(&self) -> &str {
        parent_of(&self.path)
    }
}

/// The directory of a path, `""` for the root.
pub(crate) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Every directory above a path, nearest first, the root left out.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(parent_of(path)), |path| Some(parent_of(path)))
        .take_while(|path| !path.is_empty())
}
