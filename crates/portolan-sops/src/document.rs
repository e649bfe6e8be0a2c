//! Decrypts a whole tree: every value by the rule, then checks the authentication code over all of them.

use std::fmt::Write as _;

use portolan_yaml::{Entry, List, Map, Node, Scalar, Style, Tag, Value};
use sha2::{Digest, Sha512};

use crate::cipher::{Cipher, SealedValue};
use crate::error::SopsError;
use crate::keys::Keys;
use crate::metadata::Metadata;
use crate::number;

/// The map beside the values that tells how they are encrypted.
pub(crate) const METADATA_KEY: &str = "sops";
/// How deep maps and lists may lie in one another.
const MAX_DEPTH: usize = 256;
/// What the hash starts with when only encrypted values count, so that the two ways never give the same code.
const MAC_ONLY_ENCRYPTED_START: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
    0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// What to do about the code over all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mac {
    /// It must fit: the document is as `sops` wrote it.
    Check,
    /// It is not looked at: the document has been changed since, as kustomize does before Flux decrypts. Every value
    /// is still authenticated with its path.
    Ignore,
}

/// Whether a document is encrypted by sops: it has a `sops` map with a code.
pub fn is_sops(document: &Node) -> bool {
    let mac = document
        .at_path(&[METADATA_KEY, "mac"])
        .filter(|mac| !mac.is_null());
    mac.and_then(Node::as_scalar)
        .is_some_and(|mac| !mac.text.is_empty())
}

/// Decrypts a document; the result has no `sops` map.
pub fn decrypt(document: &Node, keys: &Keys, mac: Mac) -> Result<Node, SopsError> {
    let mut documents = decrypt_documents(std::slice::from_ref(document), keys, mac)?;
    documents.pop().ok_or(SopsError::NotEncrypted)
}

/// Decrypts the documents of one file together: they share one data key and one code.
pub fn decrypt_documents(
    documents: &[Node],
    keys: &Keys,
    mac: Mac,
) -> Result<Vec<Node>, SopsError> {
    Opened::new(documents.first(), keys)?.documents(documents, mac)
}

/// A document's metadata with the cipher that its data key makes.
pub(crate) struct Opened {
    pub(crate) metadata: Metadata,
    pub(crate) cipher: Cipher,
}

impl Opened {
    /// Reads the metadata of a file's first document and opens its data key.
    pub(crate) fn new(first: Option<&Node>, keys: &Keys) -> Result<Self, SopsError> {
        let sops = first
            .and_then(|first| first.get(METADATA_KEY))
            .ok_or(SopsError::NotEncrypted)?;
        let metadata = Metadata::read(sops)?;
        let data_key = keys.open(&metadata.seals)?;
        let cipher = Cipher::new(&data_key).ok_or(SopsError::DataKey)?;
        Ok(Self { metadata, cipher })
    }

    /// Decrypts the documents of the file.
    pub(crate) fn documents(&self, documents: &[Node], mac: Mac) -> Result<Vec<Node>, SopsError> {
        let mut walk = Walk::new(&self.metadata, &self.cipher);
        let plain = documents
            .iter()
            .map(|document| walk.document(document))
            .collect::<Result<_, _>>()?;
        match mac {
            Mac::Check => check_mac(&self.metadata, &self.cipher, walk.hash)?,
            Mac::Ignore => {}
        }
        Ok(plain)
    }
}

/// A copy of a document without its `sops` map.
pub(crate) fn without_metadata(document: &Node) -> Node {
    let mut copy = document.clone();
    if let Some(map) = copy.as_map_mut() {
        map.remove(METADATA_KEY);
    }
    copy
}

struct Walk<'a> {
    metadata: &'a Metadata,
    cipher: &'a Cipher,
    hash: Sha512,
    /// The keys down to the current value. Lists add nothing: so the seals are bound to their path.
    path: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(metadata: &'a Metadata, cipher: &'a Cipher) -> Self {
        let mut hash = Sha512::new();
        if metadata.mac_only_encrypted {
            hash.update(MAC_ONLY_ENCRYPTED_START);
        }
        Self {
            metadata,
            cipher,
            hash,
            path: Vec::new(),
        }
    }

    fn document(&mut self, document: &Node) -> Result<Node, SopsError> {
        self.node(&without_metadata(document), MAX_DEPTH)
    }

    fn node(&mut self, node: &Node, depth: usize) -> Result<Node, SopsError> {
        if depth == 0 {
            return Err(SopsError::TooDeep(MAX_DEPTH));
        }
        let value = match &node.value {
            Value::Map(map) => Value::Map(self.map(map, depth)?),
            Value::List(list) => {
                let items = list.iter().map(|item| self.node(item, depth - 1));
                Value::List(List::from_items(items.collect::<Result<_, _>>()?))
            }
            Value::Scalar(Scalar { tag: Tag::Null, .. }) => node.value.clone(),
            Value::Scalar(scalar) => Value::Scalar(self.scalar(scalar, node)?),
        };
        Ok(Node { value, at: node.at })
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<Map, SopsError> {
        let mut entries = Vec::with_capacity(map.len());
        for Entry { key, value } in map {
            self.path.push(key.as_str().to_owned());
            let value = self.node(value, depth - 1)?;
            self.path.pop();
            entries.push(Entry {
                key: key.clone(),
                value,
            });
        }
        Ok(Map::from_entries(entries))
    }

    fn scalar(&mut self, scalar: &Scalar, node: &Node) -> Result<Scalar, SopsError> {
        let encrypted = self.metadata.rule.encrypts(&self.path, &scalar.text);
        let plain = if encrypted {
            self.open(scalar, node)?
        } else {
            scalar.clone()
        };
        if encrypted || !self.metadata.mac_only_encrypted {
            self.hash.update(hashed_form(&plain));
        }
        Ok(plain)
    }

    fn open(&self, scalar: &Scalar, node: &Node) -> Result<Scalar, SopsError> {
        // An empty text is sealed as itself.
        if scalar.tag == Tag::Str && scalar.text.is_empty() {
            return Ok(scalar.clone());
        }
        let (path, at) = (|| self.path.join("."), node.at);
        let sealed = SealedValue::parse(&scalar.text)
            .ok_or_else(|| SopsError::NotSealed { path: path(), at })?;
        let associated = format!("{}:", self.path.join(":"));
        let plain = self
            .cipher
            .open(&sealed, &associated)
            .ok_or_else(|| SopsError::Damaged { path: path(), at })?;
        let kind = sealed.kind;
        typed(kind, &plain).ok_or_else(|| SopsError::Type {
            path: path(),
            kind: kind.to_owned(),
            at,
        })
    }
}

/// Compares the code that the document states with the hash of its plain values.
pub(crate) fn check_mac(
    metadata: &Metadata,
    cipher: &Cipher,
    hash: Sha512,
) -> Result<(), SopsError> {
    let sealed = SealedValue::parse(&metadata.mac).ok_or(SopsError::Mac)?;
    let stated = cipher
        .open(&sealed, &metadata.last_modified)
        .ok_or(SopsError::Mac)?;
    let mut computed = String::new();
    for byte in hash.finalize() {
        let _ = write!(computed, "{byte:02X}");
    }
    if *stated == computed.as_bytes() {
        Ok(())
    } else {
        Err(SopsError::Mac)
    }
}

/// The value of opened bytes, as the type that the seal names.
fn typed(kind: &str, plain: &[u8]) -> Option<Scalar> {
    let text = std::str::from_utf8(plain).ok()?;
    let scalar = |text: String, tag| Scalar {
        text: text.into(),
        tag,
        style: Style::Plain,
    };
    Some(match kind {
        "str" | "bytes" => Scalar::string(text),
        "int" => scalar(number::int(text)?.to_string(), Tag::Int),
        "float" => {
            let text = number::general(number::float(text)?);
            // `1000` was a float once; written to YAML it is read back as a whole number.
            let tag = if number::int(&text).is_some() {
                Tag::Int
            } else {
                Tag::Float
            };
            scalar(text, tag)
        }
        "bool" => match text {
            "True" | "true" | "TRUE" | "t" | "T" | "1" => scalar("true".to_owned(), Tag::Bool),
            "False" | "false" | "FALSE" | "f" | "F" | "0" => scalar("false".to_owned(), Tag::Bool),
            _ => return None,
        },
        "time" => scalar(text.to_owned(), Tag::Timestamp),
        _ => return None,
    })
}

/// What counts of a value in the code over all of them: Go's form of it, not its spelling.
fn hashed_form(scalar: &Scalar) -> String {
    let text = scalar.text.as_str();
    match scalar.tag {
        Tag::Int => number::int(text).map(|value| value.to_string()),
        Tag::Float => number::float(text).map(number::fixed),
        Tag::Bool => {
            let node = Node::new(Value::Scalar(scalar.clone()));
            node.as_bool()
                .map(|value| if value { "True" } else { "False" }.to_owned())
        }
        // A day alone is its midnight.
        Tag::Timestamp if text.len() == 10 => Some(format!("{text}T00:00:00Z")),
        _ => None,
    }
    .unwrap_or_else(|| text.to_owned())
}
