//! The base image: its config, its unchanged layers, and its directories and links.

mod archive;
mod content;
mod files;

use std::io::{self, Read};

use portolan_digest::{Digest, Hasher};
use serde_json::{Map, Value};

use crate::blob::BlobSource;
use crate::entry::{Entry, Node};
use crate::scan::merge::with_parents;
use crate::wire::{Descriptor, Index, Manifest, Platform, media_type};

pub use content::{ImageContent, ImageFile, read_image};
pub use files::{FileIndex, LayerFiles};

/// The longest manifest, index or config: what registries take.
const MAX_DOCUMENT_BYTES: u64 = 8 << 20;

/// The longest layer, without compression.
const MAX_LAYER_BYTES: u64 = 1 << 40;

/// The largest window of zstd, as a power of two: 32 MiB, above what builders of images use.
const MAX_ZSTD_WINDOW: u32 = 25;

/// How deep indexes may nest.
const MAX_INDEXES: usize = 4;

/// An image to build on.
#[derive(Debug, Clone)]
pub struct Base {
    /// The digest that it was asked for by: that of a manifest, or of an index with one for the platform.
    pub digest: Digest,
    /// Its layers with OCI media types, lowest first.
    pub layers: Vec<Descriptor>,
    /// Its directories and links.
    pub files: FileIndex,
    pub(crate) config: Map<String, Value>,
}

/// Keeps the names of layers by `diff_id`.
pub trait LayerFilesCache {
    /// Returns what was kept for a `diff_id`.
    fn get(&self, diff_id: &Digest) -> Option<LayerFiles>;

    /// Keeps the names of a layer.
    fn put(&self, diff_id: &Digest, files: &LayerFiles);
}

/// Keeps nothing.
impl LayerFilesCache for () {
    fn get(&self, _: &Digest) -> Option<LayerFiles> {
        None
    }

    fn put(&self, _: &Digest, _: &LayerFiles) {}
}

/// Why an image cannot be built on.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// A blob could not be read or is broken.
    #[error("cannot read the blob `{digest}` of the base image")]
    Read {
        /// The blob.
        digest: Digest,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// A document is not what it should be.
    #[error("the {what} `{digest}` of the base image is not valid")]
    Parse {
        /// `manifest`, `index` or `config`.
        what: &'static str,
        /// The blob.
        digest: Digest,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A blob is not what its digest says.
    #[error("the blob `{0}` of the base image has another digest")]
    Digest(Digest),
    /// The index has no image for the platform.
    #[error("the base image has no `{wanted}`; it has {found}")]
    Platform {
        /// The platform asked for.
        wanted: Platform,
        /// Those that are there.
        found: String,
    },
    /// A layer of a kind that cannot be copied.
    #[error("the base image has a layer of the kind `{0}`, which cannot be built on")]
    MediaType(String),
    /// Config and manifest do not agree.
    #[error("the base image has {layers} layers and {diff_ids} diff_ids")]
    Layers {
        /// Layers of the manifest.
        layers: usize,
        /// Those of the config.
        diff_ids: usize,
    },
    /// Two entries that are one in the image.
    #[error("`/{first}` and `/{second}` are the same file through a link of the base image")]
    SamePlace {
        /// One path.
        first: String,
        /// The other.
        second: String,
    },
    /// A file where a link of the base image leads into a directory.
    #[error("`/{0}` is a file, and a link of the base image leads through it")]
    Clash(String),
    /// Links that lead in circles.
    #[error("`/{0}` leads over links of the base image that go round in circles")]
    Circle(String),
}

impl Base {
    /// Reads the image of a digest for a platform. Layers are read only if their names are not kept.
    pub fn read(
        blobs: &dyn BlobSource,
        digest: &Digest,
        platform: &Platform,
        cache: &dyn LayerFilesCache,
    ) -> Result<Self, BaseError> {
        let manifest = manifest(blobs, digest, platform)?;
        let config_digest = &manifest.config.digest;
        let config: Map<String, Value> =
            parse("config", config_digest, &document(blobs, config_digest)?)?;
        let diff_ids = diff_ids(&config);
        if diff_ids.len() != manifest.layers.len() {
            return Err(BaseError::Layers {
                layers: manifest.layers.len(),
                diff_ids: diff_ids.len(),
            });
        }
        let mut files = FileIndex::default();
        let mut layers = Vec::with_capacity(diff_ids.len());
        for (layer, diff_id) in manifest.layers.iter().zip(&diff_ids) {
            let kind = media_type::layer(&layer.media_type)
                .ok_or_else(|| BaseError::MediaType(layer.media_type.clone()))?;
            let names = match cache.get(diff_id) {
                Some(names) => names,
                None => {
                    let names = layer_files(blobs, &layer.digest, kind, diff_id)?;
                    cache.put(diff_id, &names);
                    names
                }
            };
            files.add(&names);
            layers.push(Descriptor::new(kind, layer.digest, layer.size));
        }
        Ok(Self {
            digest: *digest,
            layers,
            files,
            config,
        })
    }

    /// Puts entries where they belong in this image: through its links, in the order of paths again.
    pub fn place(&self, entries: &[Entry]) -> Result<Vec<Entry>, BaseError> {
        let mut placed = Vec::with_capacity(entries.len());
        for entry in entries {
            let is_directory = entry.node == Node::Directory;
            let path = self
                .files
                .resolve(&entry.path, is_directory)
                .ok_or_else(|| BaseError::Circle(entry.path.clone()))?;
            if !path.is_empty() {
                placed.push((
                    &entry.path,
                    Entry {
                        path,
                        ..entry.clone()
                    },
                ));
            }
        }
        placed.sort_by(|(_, a), (_, b)| a.path.cmp(&b.path));
        let mut unique: Vec<(&String, Entry)> = Vec::with_capacity(placed.len());
        for (from, entry) in placed {
            match unique.last() {
                Some((first, last)) if last.path == entry.path => {
                    if entry.node != Node::Directory || last.node != Node::Directory {
                        return Err(BaseError::SamePlace {
                            first: (*first).clone(),
                            second: from.clone(),
                        });
                    }
                }
                _ => unique.push((from, entry)),
            }
        }
        let entries = unique.into_iter().map(|(_, entry)| entry).collect();
        with_parents(entries).map_err(BaseError::Clash)
    }
}

/// Finds the manifest for a platform, through indexes if there are any.
fn manifest(
    blobs: &dyn BlobSource,
    digest: &Digest,
    platform: &Platform,
) -> Result<Manifest, BaseError> {
    let mut digest = *digest;
    for _ in 0..MAX_INDEXES {
        let content = document(blobs, &digest)?;
        let parsed: Value = parse("manifest", &digest, &content)?;
        if parsed.get("manifests").is_none() {
            return parse("manifest", &digest, &content);
        }
        let index: Index = parse("index", &digest, &content)?;
        let takes = |descriptor: &&Descriptor| {
            descriptor
                .platform
                .as_ref()
                .is_none_or(|found| platform.takes(found))
        };
        digest = match index.manifests.iter().find(takes) {
            Some(descriptor) => descriptor.digest,
            None => {
                let platforms = index
                    .manifests
                    .iter()
                    .filter_map(|found| found.platform.as_ref());
                let names: Vec<String> = platforms.map(|found| format!("`{found}`")).collect();
                return Err(BaseError::Platform {
                    wanted: platform.clone(),
                    found: if names.is_empty() {
                        "none".to_owned()
                    } else {
                        names.join(", ")
                    },
                });
            }
        };
    }
    let source = io::Error::new(io::ErrorKind::InvalidData, "indexes nest too deep");
    Err(BaseError::Read { digest, source })
}

fn parse<T: serde::de::DeserializeOwned>(
    what: &'static str,
    digest: &Digest,
    content: &[u8],
) -> Result<T, BaseError> {
    serde_json::from_slice(content).map_err(|source| BaseError::Parse {
        what,
        digest: *digest,
        source,
    })
}

/// Reads a short blob, checked against its digest.
fn document(blobs: &dyn BlobSource, digest: &Digest) -> Result<Vec<u8>, BaseError> {
    let failed = |source| BaseError::Read {
        digest: *digest,
        source,
    };
    let mut content = Vec::new();
    let reader = blobs.open(digest).map_err(failed)?;
    reader
        .take(MAX_DOCUMENT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > MAX_DOCUMENT_BYTES {
        let why = format!("it is longer than {MAX_DOCUMENT_BYTES} bytes");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
    }
    if Digest::of(&content) != *digest {
        return Err(BaseError::Digest(*digest));
    }
    Ok(content)
}

fn diff_ids(config: &Map<String, Value>) -> Vec<Digest> {
    let list = config
        .get("rootfs")
        .and_then(|rootfs| rootfs.get("diff_ids"))
        .and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// Reads the names of a layer; both its digests are checked on the way.
fn layer_files(
    blobs: &dyn BlobSource,
    digest: &Digest,
    kind: &str,
    diff_id: &Digest,
) -> Result<LayerFiles, BaseError> {
    let (names, plain) = read_layer(blobs, digest, kind, |tar| names_of(tar))?;
    if plain != *diff_id {
        return Err(BaseError::Digest(*diff_id));
    }
    Ok(names)
}

/// Reads a layer without its compression; the digest of what is compressed is checked.
pub(crate) fn read_layer<T>(
    blobs: &dyn BlobSource,
    digest: &Digest,
    kind: &str,
    read: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> Result<T, BaseError> {
    let failed = |source| BaseError::Read {
        digest: *digest,
        source,
    };
    let mut packed = Hashed::new(blobs.open(digest).map_err(failed)?);
    let done = match kind {
        media_type::TAR_GZIP => read(&mut flate2::read::MultiGzDecoder::new(&mut packed)),
        media_type::TAR_ZSTD => {
            let mut decoder = zstd::Decoder::new(&mut packed).map_err(failed)?;
            decoder.window_log_max(MAX_ZSTD_WINDOW).map_err(failed)?;
            read(&mut decoder)
        }
        _ => read(&mut packed),
    }
    .map_err(failed)?;
    io::copy(&mut packed, &mut io::sink()).map_err(failed)?;
    if packed.hasher.finish() != *digest {
        return Err(BaseError::Digest(*digest));
    }
    Ok(done)
}

/// The names in a tar, and the digest of all of it.
fn names_of(tar: impl Read) -> io::Result<(LayerFiles, Digest)> {
    let mut hashed = Hashed::new(tar.take(MAX_LAYER_BYTES));
    let names = LayerFiles::read(&mut hashed)?;
    io::copy(&mut hashed, &mut io::sink())?;
    Ok((names, hashed.hasher.finish()))
}

/// Takes the digest of what is read through it.
struct Hashed<R> {
    reader: R,
    hasher: Hasher,
}

impl<R> Hashed<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            hasher: Hasher::default(),
        }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..length]);
        Ok(length)
    }
}
