//! Where an image comes from: an in-toto statement with SLSA's provenance, version 1.

use portolan_digest::Digest;
use serde_json::{Value, json};

use crate::wire::{sorted, to_json};

/// What an image was made of and by.
#[derive(Debug, Clone, Copy)]
pub struct ProvenanceSubject<'a> {
    /// The name of the image without tag and digest.
    pub name: &'a str,
    /// The digest of the image.
    pub image: &'a Digest,
    /// The key that everything went into.
    pub key: &'a Digest,
    /// The image that it is built on: its name and its digest.
    pub base: Option<(&'a str, &'a Digest)>,
    /// The address and revision of the git repository.
    pub git: Option<(&'a str, &'a str)>,
    /// The program that built it and its version.
    pub builder: (&'a str, &'a str),
}

/// Writes the provenance of an image. It holds no time and nothing of the machine, so that it is the same for the same inputs.
pub fn provenance(subject: &ProvenanceSubject<'_>) -> Vec<u8> {
    let mut dependencies = Vec::new();
    if let Some((name, digest)) = subject.base {
        let uri = format!("docker://{name}");
        dependencies.push(json!({"uri": uri, "digest": {"sha256": digest.hex()}}));
    }
    if let Some((address, revision)) = subject.git {
        let uri = format!("git+{address}");
        dependencies.push(json!({"uri": uri, "digest": {"gitCommit": revision}}));
    }
    let (builder, version) = subject.builder;
    let statement: Value = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": subject.name, "digest": {"sha256": subject.image.hex()}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://portolan.dev/build/oci/v1",
                "externalParameters": {"inputDigest": subject.key.to_string()},
                "resolvedDependencies": dependencies,
            },
            "runDetails": {"builder": {"id": builder, "version": {"portolan": version}}},
        },
    });
    to_json(&sorted(statement))
}
