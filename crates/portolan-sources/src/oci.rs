//! Artifacts from OCI registries: the content of Flux's `OCIRepository` and of Helm's OCI charts.

use std::sync::Arc;

use portolan_oci::{
    Descriptor, Digest, DockerConfig, Manifest, ManifestContent, OciError, Platform, Pointer,
    Reference, Registry, RegistryOptions, Repository, Transport,
};
use portolan_vfs::Memory;
use regex::Regex;

use crate::error::Naming as _;
use crate::sources::{PinRequest, pinned_digest};
use crate::version_choice::{is_exact, newest};
use crate::{Access, ArchiveError, Limits, Pin, PinKind, SourceError, Sources, unpack};

/// An artifact of a registry.
#[derive(Debug, Clone)]
pub struct OciRequest {
    /// `oci://host/name`.
    pub url: String,
    /// Which of its versions.
    pub reference: OciRef,
    /// The layer to take, by media type; the first layer when none is named.
    pub media_type: Option<String>,
    /// How to reach the registry.
    pub access: Access,
}

/// Which version of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OciRef {
    /// One content.
    Digest(Digest),
    /// The newest tag in a range, among those that a regular expression lets through.
    Semver {
        /// The version range.
        range: String,
        /// `semverFilter`.
        filter: Option<String>,
    },
    /// A tag.
    Tag(String),
}

/// An artifact's layer.
#[derive(Debug, Clone)]
pub struct OciArtifact {
    /// The chosen tag; empty when only a digest was asked for.
    pub tag: String,
    /// The manifest's digest: what Flux calls the revision.
    pub digest: Digest,
    /// The layer's digest.
    pub layer_digest: Digest,
    /// The layer's content, mostly a gzip-compressed tar.
    pub content: Vec<u8>,
}

/// A tag, or a digest without one.
pub(crate) enum ChosenTag {
    Tag(String),
    Digest(Digest),
}

pub(crate) struct Layer {
    pub(crate) digest: Digest,
    pub(crate) content: Vec<u8>,
}

/// The version a chart's tag stands for: tags cannot hold the `+` of build metadata, so Helm writes `_`.
pub(crate) fn tag_version(tag: &str) -> String {
    tag.replace('_', "+")
}

// === impl OciRequest ===

impl OciRequest {
    fn pin_request(&self) -> PinRequest {
        let url = self.url.trim_end_matches('/');
        let reference = match &self.reference {
            OciRef::Digest(digest) => format!("digest:{digest}"),
            OciRef::Tag(tag) => format!("tag:{tag}"),
            OciRef::Semver {
                range,
                filter: None,
            } => format!("semver:{range}"),
            OciRef::Semver {
                range,
                filter: Some(filter),
            } => format!("semver:{range} filter:{filter}"),
        };
        PinRequest {
            key: format!("oci {url} {reference}"),
            what: format!("artifact `{url}` {reference}"),
            is_fixed: match &self.reference {
                OciRef::Digest(_) => true,
                OciRef::Tag(tag) => is_exact(tag),
                OciRef::Semver { .. } => false,
            },
            url: self
                .url
                .parse::<Repository>()
                .ok()
                .map(|repository| format!("oci://{repository}")),
        }
    }
}

// === impl OciArtifact ===

impl OciArtifact {
    /// The files of the layer.
    pub fn files(&self, limits: &Limits) -> Result<Memory, ArchiveError> {
        unpack(&self.content, limits)
    }
}

impl Sources {
    /// Brings an artifact's layer.
    pub async fn oci_artifact(&self, request: &OciRequest) -> Result<OciArtifact, SourceError> {
        let wanted = request.pin_request();
        let _turn = self.turn(&wanted.key).await;
        let repository = request.url.parse::<Repository>().of(&wanted.what)?;
        let find = async {
            let chosen = self
                .choose_tag(
                    &repository,
                    &request.reference,
                    &request.access,
                    &wanted.what,
                )
                .await?;
            self.pin_artifact(&repository, chosen, &request.access, &wanted.what)
                .await
        };
        let pin = self.pin(&wanted, find).await?;
        let media_types: Vec<&str> = request.media_type.as_deref().into_iter().collect();
        let layer = self
            .pinned_layer(
                &pin,
                &repository,
                &media_types,
                &request.access,
                &wanted.what,
            )
            .await?;
        Ok(OciArtifact {
            digest: pinned_digest(&pin, &wanted.what)?,
            tag: pin.version,
            layer_digest: layer.digest,
            content: layer.content,
        })
    }

    /// Decides which tag a reference means.
    pub(crate) async fn choose_tag(
        &self,
        repository: &Repository,
        reference: &OciRef,
        access: &Access,
        what: &str,
    ) -> Result<ChosenTag, SourceError> {
        let (range, filter) = match reference {
            OciRef::Digest(digest) => return Ok(ChosenTag::Digest(*digest)),
            OciRef::Tag(tag) => return Ok(ChosenTag::Tag(tag.clone())),
            OciRef::Semver { range, filter } => (range, filter),
        };
        let bad = |text: &str, reason: String| SourceError::BadRange {
            what: what.to_owned(),
            range: text.to_owned(),
            reason,
        };
        let filter = filter
            .as_deref()
            .map(|text| Regex::new(text).map_err(|error| bad(text, error.to_string())));
        let filter = filter.transpose()?;
        let registry = self.registry(access, repository, what)?;
        let mut tags = registry.tags(repository).await.of(what)?;
        tags.retain(|tag| filter.as_ref().is_none_or(|filter| filter.is_match(tag)));
        let versions: Vec<String> = tags.iter().map(|tag| tag_version(tag)).collect();
        let chosen = newest(versions.iter().map(String::as_str), range)
            .map_err(|reason| bad(range, reason))?;
        let chosen = chosen.ok_or_else(|| SourceError::NoVersion {
            what: what.to_owned(),
            range: range.clone(),
        })?;
        Ok(ChosenTag::Tag(chosen.replace('+', "_")))
    }

    /// Fetches the manifest of a tag and pins its digest.
    pub(crate) async fn pin_artifact(
        &self,
        repository: &Repository,
        chosen: ChosenTag,
        access: &Access,
        what: &str,
    ) -> Result<Pin, SourceError> {
        let (reference, version) = match chosen {
            ChosenTag::Tag(tag) => (repository.tag(&tag).of(what)?, tag),
            ChosenTag::Digest(digest) => (repository.digest(digest), String::new()),
        };
        let manifest = self.fetch_manifest(&reference, access, what).await?;
        Ok(Pin {
            kind: PinKind::Oci,
            url: format!("oci://{repository}"),
            version,
            digest: manifest.digest.to_string(),
        })
    }

    async fn fetch_manifest(
        &self,
        reference: &Reference,
        access: &Access,
        what: &str,
    ) -> Result<Manifest, SourceError> {
        let registry = self.registry(access, &reference.repository, what)?;
        let image = registry.image(reference, &Platform::default()).await;
        let (manifest, _) = image.of(what)?;
        self.cache().put(&manifest.bytes)?;
        Ok(manifest)
    }

    /// The content of the layer that a pinned manifest names.
    pub(crate) async fn pinned_layer(
        &self,
        pin: &Pin,
        repository: &Repository,
        media_types: &[&str],
        access: &Access,
        what: &str,
    ) -> Result<Layer, SourceError> {
        let digest = pinned_digest(pin, what)?;
        let fetch = async {
            let reference = repository.digest(digest);
            self.fetch_manifest(&reference, access, what)
                .await
                .map(drop)
        };
        let manifest = self.content(&digest, what, fetch).await?;
        let manifest = Manifest::parse(what, manifest).of(what)?;
        let layer = choose_layer(&manifest, media_types, what)?;
        let limit = self.limits().artifact_bytes;
        if layer.size > limit {
            return Err(SourceError::TooLarge {
                what: what.to_owned(),
                size: layer.size,
                limit,
            });
        }
        let fetch = self.fetch_layer(repository, layer, access, what);
        let content = self.content(&layer.digest, what, fetch).await?;
        Ok(Layer {
            digest: layer.digest,
            content,
        })
    }

    async fn fetch_layer(
        &self,
        repository: &Repository,
        layer: &Descriptor,
        access: &Access,
        what: &str,
    ) -> Result<(), SourceError> {
        let registry = self.registry(access, repository, what)?;
        let mut incoming = self.cache().incoming()?;
        let mut size = 0;
        let store = |piece: &[u8]| {
            size += piece.len() as u64;
            access.progress.report(size, Some(layer.size));
            incoming.write(piece)
        };
        registry.blob(repository, layer, store).await.of(what)?;
        let stored = incoming.finish_as(&layer.digest)?;
        stored.map_err(|actual| SourceError::Oci {
            what: what.to_owned(),
            source: Box::new(OciError::DigestMismatch {
                subject: repository.to_string(),
                expected: layer.digest,
                actual,
            }),
        })
    }

    fn registry(
        &self,
        access: &Access,
        repository: &Repository,
        what: &str,
    ) -> Result<Registry, SourceError> {
        let own_login = access
            .credentials
            .clone()
            .map(|credentials| Arc::new(DockerConfig::single(repository.registry(), credentials)));
        let logins = own_login
            .or_else(|| access.docker_config.clone())
            .unwrap_or_else(|| Arc::clone(&self.options().docker_config));
        let options = RegistryOptions {
            transport: match (access.plain_http, &access.tls) {
                (true, _) => Transport::Plain,
                // Whoever gives certificates means TLS, on this machine too.
                (false, Some(_)) => Transport::Tls,
                (false, None) => Transport::Auto,
            },
            logins,
            ..RegistryOptions::default()
        };
        Ok(Registry::new(self.client(access, what)?, options))
    }
}

/// The first layer of one of the types, or the first of all when no type is asked for.
fn choose_layer<'a>(
    manifest: &'a Manifest,
    media_types: &[&str],
    what: &str,
) -> Result<&'a Descriptor, SourceError> {
    let layers = match &manifest.content {
        ManifestContent::Image(image) => image.layers.as_slice(),
        ManifestContent::Index(_) => &[],
    };
    let fits = |layer: &&Descriptor| {
        media_types.is_empty() || media_types.contains(&layer.media_type.as_str())
    };
    layers
        .iter()
        .find(fits)
        .ok_or_else(|| SourceError::NoLayer {
            what: what.to_owned(),
            media_type: media_types.first().copied().unwrap_or("*/*").to_owned(),
        })
}

impl From<Reference> for OciRef {
    /// What a written reference asks for; without tag and digest it means `latest`.
    fn from(reference: Reference) -> Self {
        match reference.pointer {
            Some(Pointer::Digest(digest)) => Self::Digest(digest),
            Some(Pointer::Tag(tag)) => Self::Tag(tag),
            None => Self::Tag("latest".to_owned()),
        }
    }
}
