//! The JSON of manifests, indexes and descriptors, written in one form: fields in the order of the specification.

use std::collections::BTreeMap;

use portolan_digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Media types of the OCI image specification, and Docker's that are converted to them.
pub mod media_type {
    /// An index of manifests.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// A manifest.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// The config of an image.
    pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// The config of what is no image.
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// A layer without compression.
    pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
    /// A layer with gzip.
    pub const TAR_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// A layer with zstd.
    pub const TAR_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// Docker's index.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Docker's manifest.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

    /// Returns the OCI media type of a layer; `None` for what is no layer that could be copied.
    pub fn layer(of: &str) -> Option<&'static str> {
        match of {
            TAR | "application/vnd.docker.image.rootfs.diff.tar" => Some(TAR),
            TAR_GZIP | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Some(TAR_GZIP),
            TAR_ZSTD | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Some(TAR_ZSTD),
            _ => None,
        }
    }
}

/// The name, length and kind of a content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What kind of content it is.
    pub media_type: String,
    /// Its digest.
    #[serde(serialize_with = "digest_out", deserialize_with = "digest_in")]
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// The platform that an index entry is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// What kind of artifact it is, where it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Free notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// An operating system, an architecture and perhaps its variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// `linux`, `windows`, …
    pub os: String,
    /// `v7`, `v8`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The manifest of an image or of what refers to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// What kind of manifest it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What kind of artifact it is, where it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The config.
    pub config: Descriptor,
    /// The layers, lowest first.
    pub layers: Vec<Descriptor>,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Free notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// An index of manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// What kind of index it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The manifests.
    pub manifests: Vec<Descriptor>,
    /// Free notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// A platform that is not written `os/architecture` or `os/architecture/variant`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a platform such as `linux/amd64` or `linux/arm/v7`")]
pub struct PlatformError(String);

impl Descriptor {
    /// The descriptor of a content.
    pub fn of(media_type: &str, content: &[u8]) -> Self {
        Self::new(media_type, Digest::of(content), content.len() as u64)
    }

    /// A descriptor without notes.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            platform: None,
            artifact_type: None,
            annotations: None,
        }
    }
}

impl Index {
    /// An index of manifests.
    pub fn new(manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::INDEX.to_owned()),
            manifests,
            annotations: None,
        }
    }
}

impl Platform {
    /// Whether an image for `other` runs where this one is wanted: a variant that one of them does not name is no difference.
    pub fn takes(&self, other: &Self) -> bool {
        let same_variant = match (&self.variant, &other.variant) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        self.os == other.os && self.architecture == other.architecture && same_variant
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant
            .as_ref()
            .map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl std::str::FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_name = |part: &&str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        match parts.as_slice() {
            [os, architecture, rest @ ..] if rest.len() < 2 && parts.iter().all(is_name) => {
                Ok(Self {
                    architecture: (*architecture).to_owned(),
                    os: (*os).to_owned(),
                    variant: rest.first().map(|variant| (*variant).to_owned()),
                })
            }
            _ => Err(PlatformError(text.to_owned())),
        }
    }
}

/// The text of one of our own documents.
pub(crate) fn to_json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("own documents have text keys and finite numbers")
}

/// The same value with the keys of every map sorted. Whether `serde_json` does that by itself depends on what else is compiled.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<String, Value> = map.into_iter().collect();
            Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

pub(crate) fn digest_out<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(digest)
}

pub(crate) fn digest_in<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
    String::deserialize(from)?
        .parse()
        .map_err(serde::de::Error::custom)
}
