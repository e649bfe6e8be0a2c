//! Decrypts objects and files as kustomize-controller does; without a key, they get placeholders.
//!
//! ```text
//! file that kustomize reads ──▶ whole file, its code checked
//! object of a build ──▶ its sealed values; files sealed inside a Secret's data
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use portolan_flux::api::Decryption;
use portolan_flux::{Decrypt, OutsideError};
use portolan_object::{Digest, placeholder};
use portolan_secret::KnownSecrets;
use portolan_sops::{Format, Keys, Mac, SopsError, decrypt, decrypt_file, is_sops, placeholders};
use portolan_yaml::{Dialect, Node, parse};

/// The annotation or label of objects that are to stay encrypted.
const OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// Opens what is encrypted with the keys at hand.
#[derive(Debug, Default)]
pub struct Opener {
    keys: Keys,
    without_keys: WithoutKeys,
    secrets: Arc<KnownSecrets>,
    left_closed: AtomicUsize,
}

/// What becomes of encrypted values when there is no key at all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKeys {
    /// Placeholders of their type stand for them, so that what is built of them can be judged.
    #[default]
    Placeholders,
    /// They stay as they are written.
    AsWritten,
}

/// Why an object stays closed.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    /// A value of a Secret is an encrypted file that cannot be opened.
    #[error("cannot decrypt the file in `data.{key}`")]
    Value {
        key: String,
        #[source]
        source: SopsError,
    },
}

impl Opener {
    /// Opens with these keys; what is opened becomes one of the known secrets.
    pub fn new(keys: Keys, without_keys: WithoutKeys, secrets: Arc<KnownSecrets>) -> Self {
        Self {
            keys,
            without_keys,
            secrets,
            left_closed: AtomicUsize::new(0),
        }
    }

    /// What becomes of what is encrypted when there is no key.
    pub fn without_keys(&self) -> WithoutKeys {
        self.without_keys
    }

    /// How many objects and files could not be opened because there was no key.
    pub fn left_closed(&self) -> usize {
        self.left_closed.load(Ordering::Relaxed)
    }

    fn leaves_all_as_written(&self) -> bool {
        self.keys.is_empty() && self.without_keys == WithoutKeys::AsWritten
    }

    fn opens_nothing(&self) -> bool {
        let none = self.keys.is_empty();
        if none {
            self.left_closed.fetch_add(1, Ordering::Relaxed);
        }
        none
    }

    /// An object whose own values are sealed. Its code cannot fit any more: kustomize has changed it since.
    fn sealed_object(&self, object: &Node) -> Result<Node, SopsError> {
        if self.opens_nothing() {
            let closed = placeholders(object);
            self.secrets.add_closed(object, &closed);
            return Ok(closed);
        }
        let plain = decrypt(object, &self.keys, Mac::Ignore)?;
        self.secrets.add_opened(object, &plain);
        Ok(plain)
    }

    /// A Secret with values that are sealed files, as generators make them.
    fn sealed_values(&self, object: &Node) -> Result<Option<Node>, OpenError> {
        let mut opened = None;
        let data = object.get("data").and_then(Node::as_map);
        for entry in data.into_iter().flatten() {
            let key = entry.key.as_str();
            // Long values are wrapped by kustomize.
            let text: String = entry
                .value
                .as_str()
                .unwrap_or_default()
                .split_whitespace()
                .collect();
            let Ok(bytes) = STANDARD.decode(text) else {
                continue;
            };
            let Some(format) = Format::detect(key, &bytes) else {
                continue;
            };
            let plain = self
                .bytes(&bytes, format, &format!("{}/{key}", name_of(object)))
                .map_err(|source| OpenError::Value {
                    key: key.to_owned(),
                    source,
                })?;
            let copy = opened.get_or_insert_with(|| object.clone());
            if let Some(data) = copy.get_mut("data").and_then(Node::as_map_mut) {
                data.insert(key.to_owned(), Node::string(STANDARD.encode(plain)));
            }
        }
        Ok(opened)
    }

    fn bytes(&self, sealed: &[u8], format: Format, name: &str) -> Result<Vec<u8>, SopsError> {
        if self.opens_nothing() {
            return Ok(self.closed(sealed, format, name));
        }
        let plain = decrypt_file(sealed, format, &self.keys, Mac::Check)?;
        self.remember(sealed, plain.reveal(), format, name);
        Ok(plain.reveal().to_vec())
    }

    /// What stands for a sealed file of this name: the same shape with placeholders, or one placeholder for all.
    fn closed(&self, sealed: &[u8], format: Format, name: &str) -> Vec<u8> {
        let document = |sealed: &Node| {
            let closed = placeholders(sealed);
            self.secrets.add_closed(sealed, &closed);
            portolan_yaml::write_kustomize(&closed).ok()
        };
        let text = match format {
            Format::Yaml | Format::Json => {
                let documents = documents(sealed);
                let closed: Vec<String> = documents.iter().filter_map(document).collect();
                closed.join("---\n")
            }
            Format::Dotenv => closed_lines(&String::from_utf8_lossy(sealed), name),
            Format::Binary => placeholder(&format!("{name}/{}", Digest::of(sealed))),
        };
        text.into_bytes()
    }

    fn remember(&self, sealed: &[u8], plain: &[u8], format: Format, name: &str) {
        if matches!(format, Format::Yaml | Format::Json) {
            for (sealed, plain) in documents(sealed).iter().zip(&documents(plain)) {
                self.secrets.add_opened(sealed, plain);
            }
        } else if let Ok(text) = std::str::from_utf8(plain) {
            self.secrets.add_text(name, text);
        }
    }
}

impl Decrypt for Opener {
    fn object(&self, object: &Node, _: &Decryption) -> Result<Option<Node>, OutsideError> {
        if self.leaves_all_as_written() {
            self.left_closed
                .fetch_add(usize::from(is_sops(object)), Ordering::Relaxed);
            return Ok(None);
        }
        if is_sops(object) {
            return Ok(Some(self.sealed_object(object)?));
        }
        if object.get("kind").and_then(Node::as_str) == Some("Secret") {
            return Ok(self.sealed_values(object)?);
        }
        Ok(None)
    }

    fn file(
        &self,
        path: &Utf8Path,
        content: &[u8],
        _: &Decryption,
    ) -> Result<Option<Vec<u8>>, OutsideError> {
        if self.leaves_all_as_written() {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default();
        let Some(format) = Format::detect(name, content) else {
            return Ok(None);
        };
        if format == Format::Yaml && documents(content).iter().any(opts_out) {
            return Ok(None);
        }
        Ok(Some(self.bytes(content, format, path.as_str())?))
    }

    fn fingerprint(&self) -> Digest {
        let recipients = self.keys.recipients().join("\n");
        Digest::of(format!("{:?}\n{recipients}", self.without_keys).as_bytes())
    }
}

/// An object's kind, namespace and name, as far as they are written.
fn name_of(object: &Node) -> String {
    let text = |path: &[&str]| {
        object
            .at_path(path)
            .and_then(Node::as_str)
            .unwrap_or_default()
    };
    let paths: [&[&str]; 3] = [&["kind"], &["metadata", "namespace"], &["metadata", "name"]];
    paths.map(text).join("/")
}

fn opts_out(document: &Node) -> bool {
    ["annotations", "labels"].iter().any(|field| {
        let value = document.at_path(&["metadata", field, OPT_OUT]);
        value.and_then(Node::as_str) == Some("disabled")
    })
}

fn documents(text: &[u8]) -> Vec<Node> {
    let text = String::from_utf8_lossy(text).into_owned();
    parse(text, Dialect::Kustomize).unwrap_or_default()
}

fn closed_lines(text: &str, name: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("sops_"));
    let closed = lines.map(|line| match line.split_once('=') {
        Some((key, value)) if value.starts_with("ENC[") => {
            format!("{key}={}\n", placeholder(&format!("{name}/{line}")))
        }
        _ if line.starts_with('#') => String::new(),
        _ => format!("{line}\n"),
    });
    closed.collect()
}

#[cfg(test)]
mod tests;
