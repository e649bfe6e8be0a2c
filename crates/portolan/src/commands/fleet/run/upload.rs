//! Sends the files of a book to a server: those that it does not have, by digest and in parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8PathBuf;
use portolan_digest::Digest;
use portolan_server::{FleetClient, FleetError, FleetMethod};
use serde_json::{Value, json};

/// Bytes of a part, as the server wants them.
const PART_BYTES: usize = 256 << 10;

/// Sends what the server does not have. Gives the digests of all files, by their paths.
pub(super) async fn send_files(
    client: &FleetClient,
    path: &str,
    files: &BTreeMap<Utf8PathBuf, Arc<[u8]>>,
) -> Result<BTreeMap<String, String>, FleetError> {
    let digests: BTreeMap<String, String> = files
        .iter()
        .map(|(path, content)| (path.to_string(), Digest::of(content).hex()))
        .collect();
    if digests.is_empty() {
        return Ok(digests);
    }
    let mut unknown: Vec<&String> = digests.values().collect();
    unknown.sort();
    unknown.dedup();
    let body = json!({"missing": unknown}).to_string();
    let answer = client
        .request(FleetMethod::Post, path, &[], Some(&body))
        .await?;
    let missing = answer["missing"].as_array().cloned().unwrap_or_default();
    for (name, digest) in &digests {
        let content = files.get(Utf8PathBuf::from(name).as_path());
        if let Some(content) = content.filter(|_| missing.contains(&Value::from(digest.as_str()))) {
            send_file(client, path, digest, content).await?;
        }
    }
    Ok(digests)
}

async fn send_file(
    client: &FleetClient,
    path: &str,
    digest: &str,
    content: &[u8],
) -> Result<(), FleetError> {
    let parts: Vec<&[u8]> = if content.is_empty() {
        vec![content]
    } else {
        content.chunks(PART_BYTES).collect()
    };
    for (number, part) in parts.iter().enumerate() {
        let body = json!({
            "digest": digest, "part": number, "parts": parts.len(), "content": STANDARD.encode(part),
        });
        client
            .request(FleetMethod::Post, path, &[], Some(&body.to_string()))
            .await?;
    }
    Ok(())
}
