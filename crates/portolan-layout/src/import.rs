//! Imports an image of another layout into the store: the result of a build command, or a base image on disk.

use std::fs::File;
use std::io::{self, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::{Digest, Hasher};
use portolan_image::{BlobSink, Descriptor, Index, Manifest, media_type};
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::refs::{name_of, subject_of};
use crate::run::Run;

/// The longest manifest, index or config.
const MAX_DOCUMENT_BYTES: u64 = 8 << 20;

/// The most blobs of one image.
const MAX_BLOBS: usize = 100_000;

/// How much is copied at once.
const PIECE: usize = 1 << 16;

/// Why an image cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file of the layout cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A document of the layout is not what it should be.
    #[error("`{path}` is not valid")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A blob is not what its name says.
    #[error("the content of `{path}` is {found}")]
    Content {
        /// The file.
        path: Utf8PathBuf,
        /// The digest of what is in it.
        found: Digest,
    },
    /// No image, or more than one without a name to choose by.
    #[error("`{path}` has {count} images, {wanted}")]
    Choice {
        /// The layout.
        path: Utf8PathBuf,
        /// How many there are.
        count: usize,
        /// What was looked for.
        wanted: String,
    },
    /// An image of too many parts.
    #[error("an image has at most {MAX_BLOBS} parts")]
    TooMany,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A blob could not be written.
    #[error("cannot write into the store")]
    Write(#[source] io::Error),
}

impl Run<'_> {
    /// Takes an image of another layout over, with everything it is made of; without a name the layout must have one image.
    pub fn import(&self, layout: &Utf8Path, name: Option<&str>) -> Result<Descriptor, ImportError> {
        let index: Index = document(&layout.join("index.json"))?;
        // Lists of what refers to an image are no images.
        let is_list = |image: &Descriptor| name_of(image).and_then(subject_of).is_some();
        let images = index.manifests.into_iter();
        let images: Vec<Descriptor> = images.filter(|image| !is_list(image)).collect();
        let count = images.len();
        let mut chosen = images.into_iter();
        let image = match name {
            Some(name) => chosen.find(|image| name_of(image) == Some(name)),
            None => chosen.next().filter(|_| count == 1),
        };
        let mut image = image.ok_or_else(|| ImportError::Choice {
            path: layout.to_owned(),
            count,
            wanted: name.map_or("not one".to_owned(), |name| {
                format!("none of them called `{name}`")
            }),
        })?;
        let mut left = vec![image.clone()];
        let mut seen = 0;
        while let Some(part) = left.pop() {
            seen += 1;
            if seen > MAX_BLOBS {
                return Err(ImportError::TooMany);
            }
            let path = layout.join(format!("blobs/sha256/{}", part.digest.hex()));
            match part.media_type.as_str() {
                media_type::INDEX | media_type::DOCKER_INDEX => {
                    left.extend(document::<Index>(&path)?.manifests);
                }
                media_type::MANIFEST | media_type::DOCKER_MANIFEST => {
                    let manifest: Manifest = document(&path)?;
                    left.push(manifest.config);
                    left.extend(manifest.layers);
                }
                _ => {}
            }
            if !self.hold(&part.digest)? {
                self.copy(&path, &part.digest)?;
            }
        }
        image.annotations = None;
        Ok(image)
    }

    fn copy(&self, path: &Utf8Path, digest: &Digest) -> Result<(), ImportError> {
        let failed = |source| ImportError::Read {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mut blob = self.begin().map_err(ImportError::Write)?;
        let mut hasher = Hasher::default();
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).map_err(failed)?;
            let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            hasher.update(bytes);
            blob.write_all(bytes).map_err(ImportError::Write)?;
        }
        let found = hasher.finish();
        if found != *digest {
            let path = path.to_owned();
            return Err(ImportError::Content { path, found });
        }
        blob.commit(digest).map_err(ImportError::Write)
    }
}

fn document<T: DeserializeOwned>(path: &Utf8Path) -> Result<T, ImportError> {
    let mut content = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_DOCUMENT_BYTES).read_to_end(&mut content));
    read.map_err(|source| ImportError::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&content).map_err(|source| ImportError::Parse {
        path: path.to_owned(),
        source,
    })
}
