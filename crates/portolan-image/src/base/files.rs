//! Which directories and links a base image has.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::base::archive::Archive;

/// The most names of a layer, and the most bytes of all of them.
const MAX_NAMES: usize = 4_000_000;
const MAX_NAME_BYTES: usize = 512 << 20;

/// How many links a path may lead over.
const MAX_LINKS: usize = 40;

/// What a path of an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// A directory.
    #[serde(rename = "d")]
    Directory,
    /// A symbolic link and what it says.
    #[serde(rename = "l")]
    Link(String),
    /// Anything else.
    #[serde(rename = "f")]
    Other,
    /// Nothing any more: the layers below had it.
    #[serde(rename = "w")]
    Removed,
    /// A directory that hides what the layers below had in it.
    #[serde(rename = "o")]
    Opaque,
}

/// The names of one layer, to be kept by its `diff_id`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LayerFiles {
    names: Vec<(String, Kind)>,
}

/// The directories and links of an image: all layers together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileIndex {
    names: BTreeMap<String, Kind>,
}

impl LayerFiles {
    /// Reads the names of a tar. Names that are not UTF-8 are left out: no entry of ours can meet them.
    pub fn read(tar: impl Read) -> io::Result<Self> {
        let mut archive = Archive::new(tar);
        let mut names = Vec::new();
        let mut bytes = 0;
        while let Some(found) = archive.next()? {
            let Some(path) = cleaned(&found.path) else {
                continue;
            };
            bytes += path.len() + found.target.len();
            if names.len() == MAX_NAMES || bytes > MAX_NAME_BYTES {
                let why = "it has more names than an image may have";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            names.extend(named(path, found.kind, found.target));
        }
        Ok(Self { names })
    }

    /// The text to keep.
    pub fn to_bytes(&self) -> Vec<u8> {
        crate::wire::to_json(self)
    }

    /// Reads what [`LayerFiles::to_bytes`] wrote; `None` for anything else, which only means that the layer is read again.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A path without `./` and `/` before and behind it; `None` for the root, for what leads out of it and what is no text.
pub(super) fn cleaned(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_inside = !parts.is_empty() && !parts.contains(&"..");
    is_inside.then(|| parts.join("/"))
}

/// A name of a layer; whiteouts are turned into what they mean.
fn named(path: String, kind: u8, target: Vec<u8>) -> Option<(String, Kind)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if name == ".wh..wh..opq" {
        return Some((directory.to_owned(), Kind::Opaque));
    }
    if let Some(removed) = name.strip_prefix(".wh.") {
        // `.wh..wh.plnk` and its like are notes of one file system.
        let is_note = removed.starts_with(".wh.") || removed.is_empty();
        let below = if directory.is_empty() {
            removed.to_owned()
        } else {
            format!("{directory}/{removed}")
        };
        return (!is_note).then_some((below, Kind::Removed));
    }
    let kind = match kind {
        b'5' => Kind::Directory,
        b'2' => Kind::Link(String::from_utf8(target).ok()?),
        _ => Kind::Other,
    };
    Some((path, kind))
}

impl FileIndex {
    /// Lays a layer over what is there.
    pub fn add(&mut self, layer: &LayerFiles) {
        // What a layer removes was in the layers below, in whatever order it says so.
        for (path, kind) in &layer.names {
            match kind {
                Kind::Removed => self.remove(path),
                Kind::Opaque => self.remove_below(path),
                _ => {}
            }
        }
        for (path, kind) in &layer.names {
            match kind {
                Kind::Removed | Kind::Opaque => continue,
                Kind::Directory => {}
                Kind::Link(_) | Kind::Other => {
                    if self.names.get(path) == Some(&Kind::Directory) {
                        self.remove_below(path);
                    }
                }
            }
            self.names.insert(path.clone(), kind.clone());
            self.add_parents(path);
        }
    }

    /// Some layers do not name the directories of their files.
    fn add_parents(&mut self, path: &str) {
        for directory in crate::entry::ancestors(path) {
            if self.names.contains_key(directory) {
                return;
            }
            self.names.insert(directory.to_owned(), Kind::Directory);
        }
    }

    fn remove(&mut self, path: &str) {
        self.names.remove(path);
        self.remove_below(path);
    }

    fn remove_below(&mut self, path: &str) {
        if path.is_empty() {
            self.names.clear();
            return;
        }
        let prefix = format!("{path}/");
        let below: Vec<String> = self
            .names
            .range(prefix.clone()..)
            .map(|(name, _)| name)
            .take_while(|name| name.starts_with(&prefix))
            .cloned()
            .collect();
        for name in below {
            self.names.remove(&name);
        }
    }

    /// Whether a path is a directory, links not followed.
    pub fn is_directory(&self, path: &str) -> bool {
        self.names.get(path) == Some(&Kind::Directory)
    }

    /// Follows the links in the directories of a path, and for a directory in its last name too.
    ///
    /// Returns `None` if they lead in circles.
    pub fn resolve(&self, path: &str, is_directory: bool) -> Option<String> {
        let mut left: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut resolved: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = left.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    resolved.pop();
                    continue;
                }
                _ => {}
            }
            resolved.push(name);
            if left.is_empty() && !is_directory {
                break;
            }
            let Some(Kind::Link(target)) = self.names.get(&resolved.join("/")) else {
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            resolved.pop();
            if target.starts_with('/') {
                resolved.clear();
            }
            left.extend(target.rsplit('/').map(str::to_owned));
        }
        Some(resolved.join("/"))
    }
}
