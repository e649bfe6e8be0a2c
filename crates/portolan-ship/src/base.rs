//! Base images of registries, pulled into the store once and pinned by digest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_digest::Digest;
use portolan_image::{BlobSink, BlobSource, Descriptor, Index, Platform};
use portolan_layout::Run;
use portolan_oci::{
    Descriptor as RemoteDescriptor, Manifest, ManifestContent, OciError, Pointer, Reference,
    ReferenceError, Registry,
};
use tokio::runtime::Handle;

use crate::document::{ArtifactSource, BaseImage, CommandOutput, Ship};
use crate::parts::{is_index, parts};

/// Images of registries that others are built on.
#[derive(Debug)]
pub struct BaseImages {
    registry: Arc<Registry>,
    /// Which digest a name stands for.
    pins: Mutex<BTreeMap<String, Digest>>,
    /// One at a time: several artifacts may be built on the same image.
    turn: Mutex<()>,
}

/// Why a base image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BaseImageError {
    /// Its name names no image.
    #[error("`{name}` is not an image")]
    Reference {
        /// The name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: ReferenceError,
    },
    /// The registry does not give it.
    #[error("cannot pull the base image `{name}`")]
    Registry {
        /// The name.
        name: String,
        /// Why.
        #[source]
        source: OciError,
    },
    /// It cannot be kept.
    #[error("cannot keep the base image `{name}`")]
    Keep {
        /// The name.
        name: String,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// It has none for a platform.
    #[error("the base image `{name}` has none for `{platform}`")]
    Platform {
        /// The name.
        name: String,
        /// The platform.
        platform: String,
    },
}

impl BaseImages {
    /// Images that come by a client; names stand for the digests of these pins.
    pub fn new(registry: Arc<Registry>, pins: BTreeMap<String, Digest>) -> Self {
        Self {
            registry,
            pins: Mutex::new(pins),
            turn: Mutex::default(),
        }
    }

    /// Which digest each name stands for, those included that were found out since.
    pub fn pins(&self) -> BTreeMap<String, Digest> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.clone()
    }

    /// Asks a registry which digest a name stands for now, and pins it.
    pub async fn look_up(&self, name: &str) -> Result<Digest, BaseImageError> {
        let reference = read(name)?;
        let manifest = self.registry.manifest(&reference).await;
        let manifest = manifest.map_err(|source| BaseImageError::Registry {
            name: name.to_owned(),
            source,
        })?;
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.insert(name.to_owned(), manifest.digest);
        Ok(manifest.digest)
    }

    /// The digest of an image, which is in the store then for these platforms. Opens no connection if it is there and its
    /// digest is known. Must not be called on a thread of the runtime.
    pub(crate) fn get(
        &self,
        name: &str,
        platforms: &[Platform],
        run: &Run<'_>,
    ) -> Result<Digest, BaseImageError> {
        let reference = read(name)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match &reference.pointer {
            Some(Pointer::Digest(digest)) => Some(*digest),
            _ => self.pins().get(name).copied(),
        };
        if let Some(digest) = known.filter(|digest| is_there(digest, platforms, run)) {
            return Ok(digest);
        }
        let wanted = match known {
            Some(digest) => reference.repository.digest(digest),
            None => reference.clone(),
        };
        let pull = Pull {
            images: self,
            name,
            reference: wanted,
            platforms,
            run,
        };
        let digest = Handle::current().block_on(pull.pull())?;
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.insert(name.to_owned(), digest);
        Ok(digest)
    }
}

/// The names of the base images of a document that registries have, each once.
pub fn base_names(ship: &Ship) -> BTreeSet<&str> {
    let bases = ship
        .artifacts
        .iter()
        .filter_map(|artifact| match &artifact.source {
            ArtifactSource::Oci(oci) => Some(&oci.base),
            ArtifactSource::Command(command) => match &command.output {
                CommandOutput::Files(oci) => Some(&oci.base),
                CommandOutput::Image => None,
            },
            ArtifactSource::Dockerfile(_) => None,
        });
    let names = bases.filter_map(|base| match base {
        BaseImage::Registry(name) => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

fn read(name: &str) -> Result<Reference, BaseImageError> {
    name.parse().map_err(|source| BaseImageError::Reference {
        name: name.to_owned(),
        source,
    })
}

/// Whether all of an image is in the store for these platforms.
fn is_there(digest: &Digest, platforms: &[Platform], run: &Run<'_>) -> bool {
    let Some(manifests) = manifests_at_hand(digest, platforms, run) else {
        return false;
    };
    manifests.iter().all(|manifest| {
        parts(run, manifest).is_some_and(|parts| {
            let mut blobs = parts.blobs.iter();
            blobs.all(|blob| run.hold(&blob.digest).unwrap_or(false))
        })
    })
}

/// The manifests of an image in the store, one for each platform.
fn manifests_at_hand(
    digest: &Digest,
    platforms: &[Platform],
    run: &Run<'_>,
) -> Option<Vec<Descriptor>> {
    run.hold(digest).ok().filter(|is_there| *is_there)?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut run.open(digest).ok()?, &mut bytes).ok()?;
    let index: Index = match serde_json::from_slice(&bytes) {
        Ok(index) => index,
        // One image, for whatever platform.
        Err(_) => {
            let kind = portolan_image::media_type::MANIFEST;
            return Some(vec![Descriptor::new(kind, *digest, bytes.len() as u64)]);
        }
    };
    let fits = |platform: &Platform| {
        let mut entries = index.manifests.iter();
        let found = entries.find(|entry| entry.platform.as_ref() == Some(platform));
        found.filter(|entry| !is_index(entry)).cloned()
    };
    platforms.iter().map(fits).collect()
}

/// One pull.
struct Pull<'a> {
    images: &'a BaseImages,
    name: &'a str,
    reference: Reference,
    platforms: &'a [Platform],
    run: &'a Run<'a>,
}

impl Pull<'_> {
    async fn pull(&self) -> Result<Digest, BaseImageError> {
        let root = self.manifest(&self.reference).await?;
        match &root.content {
            ManifestContent::Image(_) => self.image(&root).await?,
            ManifestContent::Index(entries) => {
                for platform in self.platforms {
                    let entry = self.entry(entries, platform)?;
                    let reference = self.reference.repository.digest(entry.digest);
                    let manifest = self.manifest(&reference).await?;
                    self.image(&manifest).await?;
                }
            }
        }
        self.keep(&root.digest, &root.bytes)?;
        Ok(root.digest)
    }

    fn entry<'a>(
        &self,
        entries: &'a [RemoteDescriptor],
        platform: &Platform,
    ) -> Result<&'a RemoteDescriptor, BaseImageError> {
        let fits = |entry: &&RemoteDescriptor| {
            entry.platform.as_ref().is_some_and(|found| {
                found.os == platform.os && found.architecture == platform.architecture
            })
        };
        entries
            .iter()
            .find(fits)
            .ok_or_else(|| BaseImageError::Platform {
                name: self.name.to_owned(),
                platform: platform.to_string(),
            })
    }

    /// Pulls one image whole; its manifest is kept last, so that one that is there is whole.
    async fn image(&self, manifest: &Manifest) -> Result<(), BaseImageError> {
        let ManifestContent::Image(image) = &manifest.content else {
            return Err(BaseImageError::Platform {
                name: self.name.to_owned(),
                platform: "an index in an index".to_owned(),
            });
        };
        for blob in image.config.iter().chain(&image.layers) {
            if !self.run.hold(&blob.digest).unwrap_or(false) {
                self.blob(blob).await?;
            }
        }
        self.keep(&manifest.digest, &manifest.bytes)
    }

    async fn blob(&self, blob: &RemoteDescriptor) -> Result<(), BaseImageError> {
        let mut writer = self.run.begin().map_err(self.not_kept())?;
        let pulled = self
            .images
            .registry
            .blob(&self.reference.repository, blob, |piece| {
                writer.write_all(piece)
            });
        pulled.await.map_err(self.failed())?;
        writer.commit(&blob.digest).map_err(self.not_kept())
    }

    async fn manifest(&self, reference: &Reference) -> Result<Manifest, BaseImageError> {
        let manifest = self.images.registry.manifest(reference).await;
        manifest.map_err(self.failed())
    }

    fn keep(&self, digest: &Digest, bytes: &[u8]) -> Result<(), BaseImageError> {
        let mut writer = self.run.begin().map_err(self.not_kept())?;
        writer.write_all(bytes).map_err(self.not_kept())?;
        writer.commit(digest).map_err(self.not_kept())
    }

    fn failed(&self) -> impl FnOnce(OciError) -> BaseImageError {
        let name = self.name.to_owned();
        move |source| BaseImageError::Registry { name, source }
    }

    fn not_kept(&self) -> impl FnOnce(std::io::Error) -> BaseImageError {
        let name = self.name.to_owned();
        move |source| BaseImageError::Keep { name, source }
    }
}
