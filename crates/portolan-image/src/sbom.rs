//! A bill of materials: every file of an image with its digests, as SPDX 2.3 in JSON.

use std::io;

use portolan_digest::Digest;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use crate::entry::{Entry, Node};
use crate::source::Source;
use crate::time::rfc3339;
use crate::wire::{sorted, to_json};

/// How much is read at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// What a bill of materials is about.
#[derive(Debug, Clone, Copy)]
pub struct SbomSubject<'a> {
    /// The name of the image without tag and digest.
    pub name: &'a str,
    /// The digest of the image.
    pub image: &'a Digest,
    /// The digest of the image that it is built on.
    pub base: Option<&'a Digest>,
    /// The time of the document, in seconds since 1970.
    pub created: u64,
    /// The program that writes it, as in `portolan-0.1.0`.
    pub tool: &'a str,
}

/// Writes the bill of materials of entries. Each file is read once more, because SPDX wants its SHA-1.
pub fn sbom(
    subject: &SbomSubject<'_>,
    entries: &[Entry],
    source: &dyn Source,
) -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    let mut relationships = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")];
    let mut sums = Vec::new();
    for entry in entries {
        let Node::File {
            source: path,
            content,
            ..
        } = &entry.node
        else {
            continue;
        };
        let id = format!("SPDXRef-file-{}", files.len() + 1);
        let sha1 = sha1_of(source, path)?;
        relationships.push(relation("SPDXRef-image", "CONTAINS", &id));
        files.push(json!({
            "SPDXID": id,
            "fileName": format!("/{}", entry.path),
            "checksums": [
                {"algorithm": "SHA1", "checksumValue": sha1},
                {"algorithm": "SHA256", "checksumValue": Digest::from_bytes(content).hex()},
            ],
            "copyrightText": "NOASSERTION",
            "licenseConcluded": "NOASSERTION",
        }));
        sums.push(sha1);
    }
    let mut packages = vec![image_package(subject, sums)];
    if let Some(base) = subject.base {
        packages.push(package("SPDXRef-base", "base image", base, false));
        relationships.push(relation("SPDXRef-image", "DESCENDANT_OF", "SPDXRef-base"));
    }
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": subject.name,
        "documentNamespace": format!("https://portolan.dev/spdx/{}", subject.image.hex()),
        "creationInfo": {"created": rfc3339(subject.created), "creators": [format!("Tool: {}", subject.tool)]},
        "packages": packages,
        "files": files,
        "relationships": relationships,
    });
    Ok(to_json(&sorted(document)))
}

fn relation(from: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to})
}

fn package(id: &str, name: &str, digest: &Digest, has_files: bool) -> Value {
    json!({
        "SPDXID": id,
        "name": name,
        "versionInfo": digest.to_string(),
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": has_files,
        "copyrightText": "NOASSERTION",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "supplier": "NOASSERTION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest.hex()}],
    })
}

fn image_package(subject: &SbomSubject<'_>, mut sums: Vec<String>) -> Value {
    let has_files = !sums.is_empty();
    let mut image = package("SPDXRef-image", subject.name, subject.image, has_files);
    image["primaryPackagePurpose"] = json!("CONTAINER");
    if has_files {
        // SPDX makes the code of a package of the sorted SHA-1s of its files.
        sums.sort_unstable();
        let code = hex(&Sha1::digest(sums.concat()));
        image["packageVerificationCode"] = json!({"packageVerificationCodeValue": code});
        image["licenseInfoFromFiles"] = json!(["NOASSERTION"]);
    }
    image
}

fn sha1_of(source: &dyn Source, path: &str) -> io::Result<String> {
    let mut file = source.open(path)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut state = Sha1::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&state.finalize())),
            Ok(length) => state.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
