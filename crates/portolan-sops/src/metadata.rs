//! The `sops` map of a document: encrypted data keys, the rule, and the authentication code over all values.

use portolan_yaml::Node;

use crate::error::SopsError;
use crate::rule::Rule;

/// What a document says about its own encryption.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) seals: Vec<Sealed>,
    pub(crate) rule: Rule,
    pub(crate) mac: String,
    /// Authenticated together with the code, as written.
    pub(crate) last_modified: String,
    pub(crate) mac_only_encrypted: bool,
}

/// The data key, sealed for one age recipient.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) recipient: String,
    pub(crate) armored: String,
}

/// The other kinds of keys that sops knows.
const OTHER_KEYS: &[(&str, &str)] = &[
    ("pgp", "PGP"),
    ("kms", "AWS KMS"),
    ("gcp_kms", "GCP KMS"),
    ("azure_kv", "Azure Key Vault"),
    ("hc_vault", "HashiCorp Vault"),
];

impl Metadata {
    /// Reads the `sops` map.
    pub(crate) fn read(sops: &Node) -> Result<Self, SopsError> {
        let required = |field| {
            text(sops, field).ok_or(SopsError::Metadata {
                field,
                problem: "is missing",
            })
        };
        Ok(Self {
            seals: seals(sops)?,
            rule: Rule::read(sops)?,
            mac: text(sops, "mac").unwrap_or_default(),
            last_modified: required("lastmodified")?,
            mac_only_encrypted: sops.get("mac_only_encrypted").is_some_and(is_true),
        })
    }
}

fn seals(sops: &Node) -> Result<Vec<Sealed>, SopsError> {
    if sops
        .get("key_groups")
        .and_then(Node::as_list)
        .is_some_and(|groups| !groups.is_empty())
    {
        return Err(SopsError::KeyGroups);
    }
    let entries = sops.get("age").and_then(Node::as_list);
    let seals: Vec<Sealed> = entries.into_iter().flatten().filter_map(seal).collect();
    if !seals.is_empty() {
        return Ok(seals);
    }
    let others = others(sops);
    if others.is_empty() {
        Err(SopsError::Metadata {
            field: "age",
            problem: "holds no key",
        })
    } else {
        Err(SopsError::OtherKeys(others.join(", ")))
    }
}

fn seal(entry: &Node) -> Option<Sealed> {
    Some(Sealed {
        recipient: text(entry, "recipient").unwrap_or_default(),
        armored: text(entry, "enc")?,
    })
}

fn others(sops: &Node) -> Vec<&'static str> {
    let has_keys = |field: &str| {
        sops.get(field)
            .and_then(Node::as_list)
            .is_some_and(|keys| !keys.is_empty())
    };
    OTHER_KEYS
        .iter()
        .filter(|(field, _)| has_keys(field))
        .map(|(_, name)| *name)
        .collect()
}

/// A scalar's text, whatever its type: a time that lost its quotes on the way is still the text that was sealed.
pub(crate) fn text(node: &Node, field: &str) -> Option<String> {
    let value = node.get(field)?;
    let text = value.as_scalar()?.text.to_string();
    (!text.is_empty() && !value.is_null()).then_some(text)
}

/// A boolean, or its text: dotenv files know only text.
fn is_true(node: &Node) -> bool {
    node.as_bool()
        .unwrap_or_else(|| node.as_str() == Some("true"))
}
