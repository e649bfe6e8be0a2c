//! Manifests: an index of images, or one image with its config and layers.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::{Digest, OciError};

/// Media types of manifests.
pub mod media_type {
    /// An index of the OCI kind.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// A manifest of the OCI kind.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An artifact manifest, used for a short time before OCI 1.1.
    pub const OCI_ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";
    /// Docker's kind of index.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Docker's kind of manifest.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// All of them, as sent in `Accept`.
    pub const ALL: [&str; 5] = [
        OCI_INDEX,
        OCI_MANIFEST,
        OCI_ARTIFACT,
        DOCKER_LIST,
        DOCKER_MANIFEST,
    ];
}

/// A manifest as the registry keeps it.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The digest of `bytes`.
    pub digest: Digest,
    /// The exact text, so that it can be kept and checked again.
    pub bytes: Vec<u8>,
    /// What it says.
    pub content: ManifestContent,
}

/// The two shapes of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestContent {
    /// A choice of images.
    Index(Vec<Descriptor>),
    /// One image or artifact.
    Image(Image),
}

/// One image or artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The config blob; artifact manifests have none.
    pub config: Option<Descriptor>,
    /// The layers (or an artifact's blobs) in order.
    pub layers: Vec<Descriptor>,
    /// Free notes.
    pub annotations: BTreeMap<String, String>,
}

/// The name, length and kind of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What kind of content it is.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// The platform an index entry is for.
    pub platform: Option<Platform>,
}

/// An operating system and architecture.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Platform {
    /// `linux`, `windows`, …
    pub os: String,
    /// `amd64`, `arm64`, …
    pub architecture: String,
}

// === impl Manifest ===

impl Manifest {
    /// Reads a manifest's text.
    pub fn parse(subject: &str, bytes: Vec<u8>) -> Result<Self, OciError> {
        let wire: wire::Manifest = serde_json::from_slice(&bytes)
            .and_then(wire::Manifest::checked)
            .map_err(|source| OciError::Parse {
                subject: subject.to_owned(),
                source,
            })?;
        Ok(Self {
            digest: Digest::of(&bytes),
            bytes,
            content: wire.into(),
        })
    }
}

// === impl Platform ===

impl Default for Platform {
    /// What Flux and Helm ask for when nobody says otherwise.
    fn default() -> Self {
        Self {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// The JSON text of manifests.
mod wire {
    use super::{
        BTreeMap, Deserialize, Image as ParsedImage, ManifestContent, Platform, media_type,
    };
    use serde::de::Error as _;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Manifest {
        media_type: Option<String>,
        manifests: Option<Vec<Descriptor>>,
        config: Option<Descriptor>,
        layers: Option<Vec<Descriptor>>,
        blobs: Option<Vec<Descriptor>>,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Descriptor {
        media_type: String,
        #[serde(deserialize_with = "digest")]
        digest: super::Digest,
        size: u64,
        platform: Option<Platform>,
    }

    fn digest<'de, D: serde::Deserializer<'de>>(from: D) -> Result<super::Digest, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }

    impl Manifest {
        /// Refuses what is neither an index nor an image: above all Docker's schema 1, which has no digests to check.
        pub(super) fn checked(self) -> Result<Self, serde_json::Error> {
            if self.manifests.is_some() || self.layers.is_some() || self.blobs.is_some() {
                return Ok(self);
            }
            let kind = self.media_type.as_deref().unwrap_or("unknown media type");
            Err(serde_json::Error::custom(format!(
                "neither an index nor an image (`{kind}`)"
            )))
        }

        fn is_index(&self) -> bool {
            match self.media_type.as_deref() {
                Some(media_type::OCI_INDEX | media_type::DOCKER_LIST) => true,
                Some(_) => false,
                None => self.manifests.is_some(),
            }
        }
    }

    impl From<Manifest> for ManifestContent {
        fn from(wire: Manifest) -> Self {
            if wire.is_index() {
                return Self::Index(descriptors(wire.manifests));
            }
            Self::Image(ParsedImage {
                config: wire.config.map(Into::into),
                layers: descriptors(wire.layers.or(wire.blobs)),
                annotations: wire.annotations.unwrap_or_default(),
            })
        }
    }

    fn descriptors(wire: Option<Vec<Descriptor>>) -> Vec<super::Descriptor> {
        wire.into_iter().flatten().map(Into::into).collect()
    }

    impl From<Descriptor> for super::Descriptor {
        fn from(wire: Descriptor) -> Self {
            Self {
                media_type: wire.media_type,
                digest: wire.digest,
                size: wire.size,
                platform: wire.platform,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ManifestContent, OciError> {
        Manifest::parse("x", text.as_bytes().to_vec()).map(|manifest| manifest.content)
    }

    #[test]
    fn an_image_lists_its_layers_in_order() {
        let digest = Digest::of(b"");
        let text = format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"c","digest":"{digest}","size":2}},
                "layers":[{{"mediaType":"l","digest":"{digest}","size":1}}],"annotations":null}}"#
        );
        let ManifestContent::Image(image) = parse(&text).unwrap() else {
            panic!("not an image")
        };
        assert_eq!(image.config.unwrap().size, 2);
        assert_eq!(image.layers[0].media_type, "l");
    }

    #[test]
    fn schema_1_and_nonsense_are_refused() {
        for bad in [
            r#"{"schemaVersion":1,"fsLayers":[]}"#,
            "[]",
            "{}",
            r#"{"layers":[{"mediaType":"l","digest":"md5:1","size":1}]}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
