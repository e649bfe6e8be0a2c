//! Statements about an image that are not part of it: a manifest that names the image as its subject.
//!
//! The image's digest does not depend on them.

use std::io;

use portolan_digest::Digest;

use crate::blob::{BlobSink, put};
use crate::wire::{Descriptor, Index, Manifest, media_type, to_json};

/// The kind of a bill of materials.
pub const SPDX: &str = "application/spdx+json";

/// The kind of a provenance.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The content of a config that says nothing.
const NOTHING: &[u8] = b"{}";

/// Writes a document that refers to an image, and returns the descriptor of its manifest.
pub fn write_referrer(
    subject: &Descriptor,
    artifact_type: &str,
    document: &[u8],
    sink: &dyn BlobSink,
) -> io::Result<Descriptor> {
    put(sink, NOTHING)?;
    put(sink, document)?;
    let subject = Descriptor::new(&subject.media_type, subject.digest, subject.size);
    let manifest = to_json(&Manifest {
        schema_version: 2,
        media_type: Some(media_type::MANIFEST.to_owned()),
        artifact_type: Some(artifact_type.to_owned()),
        config: Descriptor::of(media_type::EMPTY, NOTHING),
        layers: vec![Descriptor::of(artifact_type, document)],
        subject: Some(subject),
        annotations: None,
    });
    put(sink, &manifest)?;
    let mut descriptor = Descriptor::of(media_type::MANIFEST, &manifest);
    descriptor.artifact_type = Some(artifact_type.to_owned());
    Ok(descriptor)
}

/// Writes the list of all that refers to an image, for registries and layouts that do not keep one themselves.
pub fn write_referrers(referrers: Vec<Descriptor>, sink: &dyn BlobSink) -> io::Result<Descriptor> {
    let index = to_json(&Index::new(referrers));
    put(sink, &index)?;
    Ok(Descriptor::of(media_type::INDEX, &index))
}

/// The tag under which that list is found: the digest with `-` for `:`.
pub fn referrers_tag(subject: &Digest) -> String {
    format!("sha256-{}", subject.hex())
}
