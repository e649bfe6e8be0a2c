//! A Flux repository, rendered as Flux would.
//!
//! ```text
//! files ──▶ Repo ──▶ Cluster ──walk──▶ Kustomizations ──▶ HelmReleases ──▶ objects, each with its origin
//! ```
//!
//! The front door is [`Repo::open`]; [`cluster_unit`] is the engine unit that renders a cluster and adds the units it
//! needs: one per Kustomization, chart and release. What a unit gives depends on its inputs only, never on the order in
//! which units happen to run.
//!
//! This crate knows Flux's rules. How charts and overlays are rendered is the business of the format crates, and how
//! remote ones are brought here is that of whoever implements [`SourceStore`] and kustomize's `Fetch`; encrypted ones
//! are opened by a [`Decrypt`].

#![warn(missing_docs)]

mod advice;
mod ancestry;
pub mod api;
mod artifact;
mod artifact_generator;
mod build;
mod changed_value;
mod chart;
mod chart_dependencies;
mod chart_places;
mod chosen;
mod cluster;
mod coverage;
mod culprit;
mod demand;
mod dependencies;
mod discover;
mod drawing;
mod excerpt;
mod expansion;
mod fingerprint;
mod flux_instance;
mod flux_mention;
mod flux_version;
mod generate;
mod glance;
mod hints;
mod index;
mod inputs;
mod likeness;
mod loaded_chart;
mod looked_up;
mod lookup;
mod mapped_sources;
mod memo;
mod metadata;
mod not_rendered;
mod outside;
mod pair;
mod placement;
mod problem;
mod profile;
mod pursuit;
mod refused_value;
mod release;
mod release_lookups;
mod release_name;
mod release_unit;
mod remote_cluster;
mod render;
mod repo;
mod resource_set;
mod rule;
mod selection;
mod session;
mod sketch;
mod sparing;
mod stream;
mod template_lines;
mod trace;
mod tree_charts;
mod unread_value;
mod values;
mod variables;
mod version_settings;
mod walk;
mod written;

pub use advice::on_files as advice_on_files;
pub use artifact::{Artifact, ArtifactError};
pub use build::{BuildError, Built, set_owner_labels as set_kustomization_labels};
pub use changed_value::{ChangedValue, Named, Succession};
pub use chart::{ChartError, Location, OciReference, ValuesFiles};
pub use chosen::{Chosen, ChosenBy};
pub use cluster::Cluster;
pub use coverage::not_covered;
pub use demand::{Demand, Depth, Name, Wanted};
pub use discover::{DiscoverError, Root, UnknownRoot, repository_root};
pub use expansion::Expansion;
pub use flux_version::{BadFluxVersion, FluxVersion};
pub use index::{Emitter, Index};
pub use inputs::{InputDifference, InputKind, InputText, Inputs, input_differences};
pub use loaded_chart::LoadedChart;
pub use mapped_sources::{BadSourcePattern, MappedSources, SourcePattern};
pub use not_rendered::NotRendered;
pub use outside::{
    Access, Advised, ChartArchive, Decrypt, OutsideCause, OutsideError, SourceStore,
};
pub use pair::{Pair, pair_unit, unskipped_pair_unit};
pub use problem::{MADE_IN_CLUSTER, problems};
pub use profile::Profile;
pub use release::{ReleaseError, set_owner_labels as set_release_labels};
pub use release_name::{release_name, release_namespace};
pub use render::{RenderedRelease, Rendering, cluster_unit, streamed_unit};
pub use repo::{OpenError, Repo, RepoOptions};
pub use resource_set::{ResourceSetError, set_owner_labels as set_resource_set_labels};
pub use rule::{CLUSTER_NOT_COVERED, DEPENDENCY_MISSING, MISSING_DATA, RULES};
pub use selection::{OBJECT, OwnerKinds, Selectable, SelectableOwner, Selection, owner_gvk};
pub use session::{Session, Work};
pub use stream::{Afterwards, Given, Outlet};
pub use unread_value::unread_values;
pub use values::{Composed, ValuesError};
pub use variables::{SubstitutionError, UnsetVariable};
pub use version_settings::{VersionSettings, VersionSettingsError};
pub use walk::{Walk, Walked};
pub use written::named_files;
