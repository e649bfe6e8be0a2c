//! Whole files: read in their format, decrypted, and written back as `sops decrypt` writes them.

use portolan_yaml::{Dialect, Errors, Node};
use sha2::{Digest, Sha512};

use crate::cipher::SealedValue;
use crate::document::{Mac, Opened, check_mac, is_sops};
use crate::error::SopsError;
use crate::keys::Keys;
use crate::secret::Secret;
use crate::{dotenv, json_text, yaml_text};

/// The format of an encrypted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// YAML, of one or more documents.
    Yaml,
    /// JSON.
    Json,
    /// `KEY=value` lines.
    Dotenv,
    /// Any other file, sealed whole in a JSON envelope.
    Binary,
}

impl Format {
    /// The format that sops takes a file to have by its name.
    pub fn of_path(path: &str) -> Self {
        match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("yaml" | "yml") => Self::Yaml,
            Some("json") => Self::Json,
            Some("env") => Self::Dotenv,
            _ => Self::Binary,
        }
    }

    /// The format of encrypted bytes by the look of their code, or `None` when they are not encrypted.
    ///
    /// This is how Flux finds encrypted files in a Secret's `data`; the name tells a JSON file from an envelope.
    pub fn detect(name: &str, bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        if text.contains("sops_mac=ENC[") {
            Some(Self::Dotenv)
        } else if text.contains("\"mac\": \"ENC[") {
            let json = Self::of_path(name) == Self::Json;
            Some(if json { Self::Json } else { Self::Binary })
        } else {
            text.contains("mac: ENC[").then_some(Self::Yaml)
        }
    }
}

/// Decrypts a file.
///
/// ```no_run
/// # fn example(text: &[u8], keys: &portolan_sops::Keys) -> Result<(), portolan_sops::SopsError> {
/// use portolan_sops::{Format, Mac, decrypt_file};
///
/// let plain = decrypt_file(text, Format::of_path("app.env"), keys, Mac::Check)?;
/// assert_eq!(format!("{plain:?}"), "[redacted]");
/// # Ok(())
/// # }
/// ```
pub fn decrypt_file(
    bytes: &[u8],
    format: Format,
    keys: &Keys,
    mac: Mac,
) -> Result<Secret, SopsError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| wrong(format.name(), 0, "it is not text in UTF-8"))?;
    match format {
        Format::Yaml => yaml(text, keys, mac),
        Format::Json => json(text, keys, mac),
        Format::Dotenv => env(text, keys, mac),
        Format::Binary => binary(text, keys, mac),
    }
}

fn yaml(text: &str, keys: &Keys, mac: Mac) -> Result<Secret, SopsError> {
    let documents = read_yaml(text).map_err(|errors| {
        let first = errors.first();
        wrong("YAML", first.at.line, &first.message)
    })?;
    let opened = Opened::new(documents.first(), keys)?;
    let plain = opened.documents(&documents, mac)?;
    Ok(Secret::new(yaml_text::write(
        text,
        &documents,
        &plain,
        &opened.cipher,
    )?))
}

fn json(text: &str, keys: &Keys, mac: Mac) -> Result<Secret, SopsError> {
    let document = read_json(text)?;
    let plain = Opened::new(Some(&document), keys)?.documents(&[document], mac)?;
    Ok(Secret::new(
        plain.first().map(json_text::write).unwrap_or_default(),
    ))
}

fn env(text: &str, keys: &Keys, mac: Mac) -> Result<Secret, SopsError> {
    let document = dotenv::read(text)?;
    let opened = Opened::new(Some(&document), keys)?;
    let plain = opened.documents(&[document], mac)?;
    // Comments stand at the top of the file, where the path is empty.
    let comment = |sealed: &SealedValue<'_>| {
        let bytes = opened.cipher.open(sealed, ":")?;
        String::from_utf8(bytes.to_vec()).ok()
    };
    Ok(Secret::new(
        plain
            .first()
            .map(|plain| dotenv::write(text, plain, comment))
            .unwrap_or_default(),
    ))
}

/// A sealed file may hold any bytes, which no tree can: it is opened by itself.
fn binary(text: &str, keys: &Keys, mac: Mac) -> Result<Secret, SopsError> {
    let document = read_json(text)?;
    let Opened { metadata, cipher } = Opened::new(Some(&document), keys)?;
    let data = document
        .get("data")
        .ok_or_else(|| wrong("a binary envelope", 0, "`data` is missing"))?;
    let (path, at) = ("data".to_owned(), data.at);
    let sealed = data.as_str().unwrap_or_default();
    if sealed.is_empty() {
        return Ok(Secret::new(Vec::new()));
    }
    let sealed = SealedValue::parse(sealed).ok_or(SopsError::NotSealed {
        path: path.clone(),
        at,
    })?;
    let plain = cipher
        .open(&sealed, "data:")
        .ok_or(SopsError::Damaged { path, at })?;
    if mac == Mac::Check {
        check_mac(&metadata, &cipher, Sha512::new_with_prefix(&*plain))?;
    }
    Ok(Secret::new(plain.to_vec()))
}

/// All documents. A file that is one `List` is read as its items, which lack the metadata of the file: it is then read
/// as the one document it is.
fn read_yaml(text: &str) -> Result<Vec<Node>, Errors> {
    let documents = portolan_yaml::parse(text, Dialect::Kustomize)?;
    if documents.first().is_some_and(is_sops) {
        return Ok(documents);
    }
    Ok(vec![portolan_yaml::parse_one(text, Dialect::Kustomize)?])
}

fn read_json(text: &str) -> Result<Node, SopsError> {
    portolan_yaml::from_json(text).map_err(|error| wrong("JSON", error.at.line, &error.message))
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
            Self::Dotenv => "dotenv",
            Self::Binary => "a binary envelope",
        }
    }
}

fn wrong(format: &'static str, line: u32, problem: &str) -> SopsError {
    SopsError::Format {
        format,
        line,
        problem: problem.to_owned(),
    }
}
