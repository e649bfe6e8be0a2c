//! Builds an image from entries: missing layers, config, manifest.
//!
//! ```text
//! Scan + ImageSpec (+ Base) ──▶ key            what the result depends on, before anything is written
//!                           └─▶ build_image ──▶ layers ──▶ config ──▶ manifest      build_index: several of them
//! ```

use std::collections::BTreeMap;
use std::io::Error as IoError;

use portolan_digest::Digest;

use crate::base::{Base, BaseError};
use crate::blob::{BlobSink, put};
use crate::build_io::BuildIo;
use crate::config::{ConfigSpec, config};
use crate::entry::Entry;
use crate::key::Key;
use crate::layer::{Layer, LayerError, write_layers};
use crate::plan::{LayerOptions, LayerPlan, MAX_LAYERS, plan_layers};
use crate::scan::Scan;
use crate::wire::{Descriptor, Index, Manifest, Platform, media_type, to_json};

/// How an image is made of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpec {
    /// What runs in it.
    pub config: ConfigSpec,
    /// What it runs on.
    pub platform: Platform,
    /// What decides the bytes of layers.
    pub layers: LayerOptions,
    /// How many layers the files are distributed over.
    pub buckets: usize,
}

/// Layers that were written before, by the key of their plan.
pub trait LayerCache {
    /// Returns a layer whose blob is still there.
    fn get(&self, key: &Digest) -> Option<Layer>;

    /// Remembers a layer.
    fn put(&self, key: &Digest, layer: &Layer);
}

/// Remembers nothing.
impl LayerCache for () {
    fn get(&self, _: &Digest) -> Option<Layer> {
        None
    }

    fn put(&self, _: &Digest, _: &Layer) {}
}

/// An image that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// The manifest.
    pub manifest: Descriptor,
    /// All layers, those of the base first.
    pub layers: Vec<Descriptor>,
    /// How many of our layers were written now; the others were there.
    pub written: usize,
}

/// Why an image could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A layer could not be written.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The files do not go with the base.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The base leaves no room.
    #[error("the base image has {0} layers, and an image has at most {MAX_LAYERS}")]
    TooManyLayers(usize),
    /// A config or manifest could not be written.
    #[error("cannot write a {what}")]
    Write {
        /// `config`, `manifest` or `index`.
        what: &'static str,
        /// What the operating system said.
        #[source]
        source: IoError,
    },
}

/// Names an image by everything that its bytes depend on: entries, spec, the base's digest and the builder's version.
pub fn image_key(scan: &Scan, spec: &ImageSpec, base: Option<&Digest>, builder: &str) -> Digest {
    let mut key = Key::new("image");
    key.text(builder);
    key.text(&scan.digest().to_string());
    spec.config.add_to(&mut key);
    key.text(&spec.platform.to_string());
    key.text(&spec.layers.compression.version());
    key.number(spec.layers.modified);
    key.number(spec.buckets as u64);
    key.text(&base.map(ToString::to_string).unwrap_or_default());
    key.finish()
}

/// Builds an image: writes the layers that are not known, the config and the manifest.
pub fn build_image(
    entries: &[Entry],
    spec: &ImageSpec,
    base: Option<&Base>,
    io: &BuildIo<'_>,
) -> Result<BuiltImage, BuildError> {
    let below = base.map_or(&[][..], |base| &base.layers);
    let room = MAX_LAYERS
        .checked_sub(below.len())
        .filter(|room| *room > 0)
        .ok_or(BuildError::TooManyLayers(below.len()))?;
    let placed = base.map(|base| base.place(entries)).transpose()?;
    let entries = placed.as_deref().unwrap_or(entries);
    let is_there = |entry: &Entry| base.is_some_and(|base| base.files.is_directory(&entry.path));
    let plans = plan_layers(entries, spec.buckets.min(room), &spec.layers, is_there);
    let (layers, written) = layers(entries, &plans, spec, io)?;

    let failed = |what| move |source| BuildError::Write { what, source };
    let created = spec.layers.modified;
    let config = config(
        base.map(|base| &base.config),
        below.len(),
        &spec.config,
        &spec.platform,
        &layers,
        created,
    );
    put(io.sink, &config).map_err(failed("config"))?;
    let own = layers
        .into_iter()
        .map(|layer| Descriptor::new(&layer.media_type, layer.blob, layer.size));
    let layers: Vec<Descriptor> = below.iter().cloned().chain(own).collect();
    let manifest = to_json(&Manifest {
        schema_version: 2,
        media_type: Some(media_type::MANIFEST.to_owned()),
        artifact_type: None,
        config: Descriptor::of(media_type::CONFIG, &config),
        layers: layers.clone(),
        subject: None,
        annotations: base.map(|base| {
            let name = "org.opencontainers.image.base.digest".to_owned();
            BTreeMap::from([(name, base.digest.to_string())])
        }),
    });
    put(io.sink, &manifest).map_err(failed("manifest"))?;
    let mut manifest = Descriptor::of(media_type::MANIFEST, &manifest);
    manifest.platform = Some(spec.platform.clone());
    Ok(BuiltImage {
        manifest,
        layers,
        written,
    })
}

/// The layers of all plans, in their order, and how many of them had to be written.
fn layers(
    entries: &[Entry],
    plans: &[LayerPlan],
    spec: &ImageSpec,
    io: &BuildIo<'_>,
) -> Result<(Vec<Layer>, usize), BuildError> {
    let known: Vec<Option<Layer>> = plans.iter().map(|plan| io.cache.get(&plan.key)).collect();
    let missing: Vec<&LayerPlan> = plans
        .iter()
        .zip(&known)
        .filter(|(_, known)| known.is_none())
        .map(|(plan, _)| plan)
        .collect();
    let written = write_layers(entries, &missing, &spec.layers, io)?;
    for (plan, layer) in missing.iter().zip(&written) {
        io.cache.put(&plan.key, layer);
    }
    let count = written.len();
    let mut written = written.into_iter();
    let layers = known
        .into_iter()
        .filter_map(|known| known.or_else(|| written.next()));
    Ok((layers.collect(), count))
}

/// Writes an index of the manifests of several platforms, in the order of the platforms.
pub fn build_index(images: &[Descriptor], sink: &dyn BlobSink) -> Result<Descriptor, BuildError> {
    let mut manifests = images.to_vec();
    manifests.sort_by(|a, b| a.platform.cmp(&b.platform));
    let index = to_json(&Index::new(manifests));
    put(sink, &index).map_err(|source| BuildError::Write {
        what: "index",
        source,
    })?;
    Ok(Descriptor::of(media_type::INDEX, &index))
}
