//! What is in an image: its config, and the files of all its layers together.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value};

use super::archive::Archive;
use super::files::cleaned;
use super::{BaseError, document, parse, read_layer};
use crate::blob::BlobSource;
use crate::wire::{Manifest, media_type};

/// The most files of an image.
const MAX_FILES: usize = 4_000_000;

/// What a removed name begins with.
const WHITEOUT: &str = ".wh.";

/// What hides everything that the layers below had in a directory.
const OPAQUE: &str = ".wh..wh..opq";

/// The content of one image.
#[derive(Debug, Clone, Default)]
pub struct ImageContent {
    /// Its config, whole.
    pub config: Map<String, Value>,
    /// Its files, directories and links by path, without `/` before it.
    pub files: BTreeMap<String, ImageFile>,
    /// The bytes of its layers, as they are sent.
    pub size: u64,
}

/// A file of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFile {
    /// Its permissions.
    pub mode: u32,
    /// The number of its user.
    pub user: u64,
    /// The number of its group.
    pub group: u64,
}

/// Reads an image. `look` gets the content of every file of every layer in pieces, also of those that a later layer removes.
///
/// # Errors
/// When a blob is missing or not what it should be.
pub fn read_image(
    blobs: &dyn BlobSource,
    manifest: &Manifest,
    look: &mut dyn FnMut(&str, &[u8]),
) -> Result<ImageContent, BaseError> {
    let config = &manifest.config.digest;
    let mut content = ImageContent {
        config: parse("config", config, &document(blobs, config)?)?,
        ..ImageContent::default()
    };
    for layer in &manifest.layers {
        let kind = media_type::layer(&layer.media_type)
            .ok_or_else(|| BaseError::MediaType(layer.media_type.clone()))?;
        content.size += layer.size;
        read_layer(blobs, &layer.digest, kind, |tar| {
            let mut archive = Archive::new(tar);
            while let Some(found) = archive.next()? {
                let Some(path) = cleaned(&found.path) else {
                    continue;
                };
                archive.read_content(&mut |piece| look(&path, piece))?;
                content.take(path, found.mode, found.owner)?;
            }
            Ok(())
        })?;
    }
    Ok(content)
}

impl ImageContent {
    fn take(&mut self, path: String, mode: u32, owner: (u64, u64)) -> io::Result<()> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name == OPAQUE {
            self.remove_below(directory);
        } else if let Some(name) = name.strip_prefix(WHITEOUT) {
            let removed = match directory {
                "" => name.to_owned(),
                directory => format!("{directory}/{name}"),
            };
            self.remove_below(&removed);
            self.files.remove(&removed);
        } else if self.files.len() == MAX_FILES {
            let why = "it has more files than an image may have";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        } else {
            let file = ImageFile {
                mode,
                user: owner.0,
                group: owner.1,
            };
            self.files.insert(path, file);
        }
        Ok(())
    }

    fn remove_below(&mut self, directory: &str) {
        let above = format!("{directory}/");
        self.files
            .retain(|path, _| !(directory.is_empty() || path.starts_with(&above)));
    }
}
