//! Container images made of files: the same bytes from the same files, everywhere.
//!
//! ```text
//! Source ──scan──▶ entries ──plan──▶ layers ──▶ config, manifest, index ──▶ BlobSink
//!                     └▶ key                        └▶ bill of materials, provenance: referrers
//! ```
//!
//! The entry points are [`scan`] and [`build_image`]. This crate opens no connection, starts no process, reads no
//! clock and uses no disk: files come through [`Source`], blobs go to a [`BlobSink`].

#![warn(missing_docs)]

mod base;
mod blob;
mod block;
mod build_io;
mod compression;
mod config;
mod copy;
mod entry;
mod ignore;
mod image;
mod key;
mod layer;
mod memo;
mod memory;
mod notice;
mod plan;
mod provenance;
mod referrer;
mod sbom;
mod scan;
mod source;
mod tar;
mod time;
mod wire;

pub use base::{
    Base, BaseError, FileIndex, ImageContent, ImageFile, LayerFiles, LayerFilesCache, read_image,
};
pub use blob::{BlobSink, BlobSource, BlobWriter, MemoryBlobs};
pub use block::{BlockCache, BlockIndex, BlockPlace, PackedBlock};
pub use build_io::BuildIo;
pub use compression::{CompressError, Compression};
pub use config::ConfigSpec;
pub use copy::{CopySpec, Keep};
pub use entry::{Entry, Node, Owner};
pub use ignore::{Ignore, IgnoreError, IgnoreFileError, MAX_PATTERNS, Matched, read_patterns};
pub use image::{
    BuildError, BuiltImage, ImageSpec, LayerCache, build_image, build_index, image_key,
};
pub use key::Key;
pub use layer::{Layer, LayerError, write_layers};
pub use memo::{Memo, YOUNG};
pub use memory::Memory;
pub use notice::{Notice, Refusal};
pub use plan::{LayerOptions, LayerPlan, MAX_LAYERS, plan_layers};
pub use provenance::{ProvenanceSubject, provenance};
pub use referrer::{IN_TOTO, SPDX, referrers_tag, write_referrer, write_referrers};
pub use sbom::{SbomSubject, sbom};
pub use scan::{MAX_ENTRIES, MAX_PATH_BYTES, Scan, ScanError, ScanOptions, ignore_patterns, scan};
pub use source::{Listed, ListedKind, OpenFile, Source, Stamp};
pub use wire::{Descriptor, Index, Manifest, Platform, PlatformError, media_type};
