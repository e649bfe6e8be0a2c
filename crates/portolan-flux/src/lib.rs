//! A Flux repository, rendered as Flux would.
//!
//! ```text
//! files ──▶ Repo ──▶ Cluster ──walk──▶ Kustomizations ──▶ HelmReleases ──▶ objects, each with its origin
//! ```
//!
//! The entry point is [`Repo::open`]; [`cluster_unit`] is the engine unit that renders a cluster and adds the units
//! that it needs: one per Kustomization, chart and release. The result of a unit depends only on its inputs, never on
//! the order in which units run.
//!
//! This crate knows Flux's rules. The format crates render charts and overlays; implementations of [`SourceStore`]
//! and kustomize's `Fetch` fetch remote ones, and a [`Decrypt`] decrypts encrypted ones.

#![warn(missing_docs)]

pub mod api;

mod discover;
mod repo;
mod version;

mod cluster;
mod demand;
mod selection;

mod kustomization;
mod source;
mod walk;

mod release;
mod render;
mod stream;

mod compare;
mod problem;
mod session;

pub use cluster::Cluster;
pub use compare::changed_value::{BeforeAfter, ChangedValue, Named};
pub use compare::inputs::{InputDifference, InputKind, InputText, Inputs, input_differences};
pub use compare::not_rendered::NotRendered;
pub use compare::pair::{Pair, pair_unit, unskipped_pair_unit};
pub use demand::{Demand, Depth, Name, Wanted};
pub use discover::{DiscoverError, Root, UnknownRoot, repository_root};
pub use kustomization::build::{BuildError, Built, set_owner_labels as set_kustomization_labels};
pub use kustomization::variables::{SubstitutionError, UnsetVariable};
pub use problem::advice::on_files as advice_on_files;
pub use problem::coverage::not_covered;
pub use problem::rule::{
    CLUSTER_NOT_COVERED, DEPENDENCY_MISSING, MISSING_DATA, NOT_KNOWN_HERE, RULES,
};
pub use problem::unread_value::unread_values;
pub use problem::written::named_files;
pub use problem::{MADE_IN_CLUSTER, problems};
pub use release::chart::{ChartError, Location, OciReference, ValuesFiles};
pub use release::loaded_chart::LoadedChart;
pub use release::release_name::{release_name, release_namespace};
pub use release::values::{Composed, ValuesError};
pub use release::{ReleaseError, set_owner_labels as set_release_labels};
pub use render::{RenderedRelease, Rendering, cluster_unit, streamed_unit};
pub use repo::{OpenError, Repo, RepoOptions};
pub use selection::{OBJECT, OwnerKinds, Selectable, SelectableOwner, Selection, owner_gvk};
pub use session::{Session, Work};
pub use source::artifact::{Artifact, ArtifactError};
pub use source::mapped_sources::{BadSourcePattern, MappedSources, SourcePattern};
pub use source::outside::{
    Access, Advised, ChartArchive, Decrypt, OutsideCause, OutsideError, SourceStore,
};
pub use stream::{EmitterOutput, OutputSink, Retention};
pub use version::chosen::{Chosen, ChosenBy};
pub use version::flux_version::{BadFluxVersion, FluxVersion};
pub use version::profile::Profile;
pub use version::settings::{VersionSettings, VersionSettingsError};
pub use walk::expansion::Expansion;
pub use walk::index::{Emitter, Index};
pub use walk::resource_set::{ResourceSetError, set_owner_labels as set_resource_set_labels};
pub use walk::{Walk, Walked};
