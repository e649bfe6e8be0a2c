//! The documents and blobs that an image in the store is made of.

use std::io::Read;

use portolan_digest::Digest;
use portolan_image::{BlobSource, Descriptor, Index, Manifest, media_type};

/// The longest manifest or index.
const MAX_DOCUMENT_BYTES: u64 = 8 << 20;

/// What an image is made of.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Manifests, those that an index names before the index.
    pub(crate) documents: Vec<(Descriptor, Vec<u8>)>,
    /// Configs and layers, each once.
    pub(crate) blobs: Vec<Descriptor>,
}

/// Finds the parts of an image; `None` if a document is not there.
pub(crate) fn parts(store: &dyn BlobSource, image: &Descriptor) -> Option<Parts> {
    let mut parts = Parts::default();
    let bytes = document(store, &image.digest)?;
    if is_index(image) {
        let index: Index = serde_json::from_slice(&bytes).ok()?;
        for entry in index.manifests {
            let bytes = document(store, &entry.digest)?;
            parts.add_manifest(entry, bytes)?;
        }
        parts.documents.push((image.clone(), bytes));
    } else {
        parts.add_manifest(image.clone(), bytes)?;
    }
    Some(parts)
}

pub(crate) fn is_index(descriptor: &Descriptor) -> bool {
    let kind = descriptor.media_type.as_str();
    matches!(kind, media_type::INDEX | media_type::DOCKER_INDEX)
}

impl Parts {
    fn add_manifest(&mut self, descriptor: Descriptor, bytes: Vec<u8>) -> Option<()> {
        let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
        for blob in std::iter::once(manifest.config).chain(manifest.layers) {
            if !self.blobs.iter().any(|known| known.digest == blob.digest) {
                self.blobs.push(blob);
            }
        }
        self.documents.push((descriptor, bytes));
        Some(())
    }
}

fn document(store: &dyn BlobSource, digest: &Digest) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let blob = store.open(digest).ok()?;
    blob.take(MAX_DOCUMENT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
