//! What is said about an image beside it: where it comes from, and on request which files it holds.
//!
//! Neither changes the image's digest. Both are found by the tag that readers look for, `sha256-…`.

use portolan_digest::Digest;
use portolan_image::{
    Descriptor, Entry, IN_TOTO, ProvenanceSubject, SPDX, SbomSubject, Source, provenance,
    referrers_tag, sbom, write_referrer, write_referrers,
};
use portolan_layout::Run;

use super::{BuildSetup, ShipError};

/// The program that builds, as others know it.
const BUILDER: &str = "https://portolan.dev/ship";

/// What is known of an image that was built.
pub(super) struct Subject<'a> {
    /// Its repository.
    pub(super) repository: &'a str,
    /// Its manifest or index.
    pub(super) image: &'a Descriptor,
    /// The name of everything that it is made of.
    pub(super) key: &'a Digest,
    /// What it is built on.
    pub(super) base: Option<(&'a str, &'a Digest)>,
    /// Its files, and where they are read.
    pub(super) files: Option<(&'a [Entry], &'a dyn Source)>,
}

/// Writes what is said about an image, unless it is there.
pub(super) fn refer(
    subject: &Subject<'_>,
    setup: &BuildSetup,
    run: &Run<'_>,
) -> Result<(), ShipError> {
    let tag = referrers_tag(&subject.image.digest);
    let wants_sbom = setup.writes_sbom && subject.files.is_some();
    let count = 1 + usize::from(wants_sbom);
    let known = setup.store.refs()?.remove(&tag);
    // One that is longer than what is wanted now was written on request before.
    if known.is_some_and(|list| referrer_count(&list, run) >= count) {
        return Ok(());
    }
    let facts = setup.git_facts().filter(|facts| facts.is_clean);
    let git = facts.and_then(|facts| Some((facts.address.as_deref()?, facts.revision.as_str())));
    let statement = provenance(&ProvenanceSubject {
        name: subject.repository,
        image: &subject.image.digest,
        key: subject.key,
        base: subject.base,
        git,
        builder: (BUILDER, env!("CARGO_PKG_VERSION")),
    });
    let mut referrers =
        vec![write_referrer(subject.image, IN_TOTO, &statement, run).map_err(write)?];
    if let Some((entries, source)) = subject.files.filter(|_| wants_sbom) {
        let about = SbomSubject {
            name: subject.repository,
            image: &subject.image.digest,
            base: subject.base.map(|(_, digest)| digest),
            // The same files are the same document, whenever it is written.
            created: 0,
            tool: concat!("portolan-", env!("CARGO_PKG_VERSION")),
        };
        let document = sbom(&about, entries, source).map_err(write)?;
        referrers.push(write_referrer(subject.image, SPDX, &document, run).map_err(write)?);
    }
    let list = write_referrers(referrers, run).map_err(write)?;
    Ok(run.tag(&tag, &list)?)
}

fn write(source: std::io::Error) -> ShipError {
    ShipError::Referrer(source)
}

/// How many documents a list names; none if it cannot be read.
fn referrer_count(list: &Descriptor, run: &Run<'_>) -> usize {
    crate::parts::parts(run, list).map_or(0, |parts| parts.documents.len().saturating_sub(1))
}
