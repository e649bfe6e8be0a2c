//! Helm charts, loaded and rendered exactly as Helm does, without Helm.
//!
//! ```text
//! directory, archive ──▶ Chart ─┐
//! values, --set      ──▶ Tree ──┼─▶ template() ──▶ Rendered: manifests, hooks, CRDs, notes
//! release, cluster   ───────────┘
//! ```
//!
//! The entry point is [`template`]: a [`Chart`] is loaded once, its templates are parsed once, and it is rendered
//! with any number of values from any number of threads.
//!
//! This crate fetches nothing, starts nothing and writes nothing; it knows charts, but nothing about clusters, Flux
//! or kustomize.

#![warn(missing_docs)]

mod capabilities;
mod chart;
mod dependency;
mod documents;
mod engine;
mod head;
pub mod lock;
mod manifest;
mod never_read;
mod output;
mod package;
mod parallel;
mod profile;
mod release;
mod release_name;
mod render;
mod repo_index;
mod reported_version;
mod snapshot;
pub mod storage;
mod unread;
pub mod values;

pub use capabilities::Capabilities;
pub use chart::Chart;
pub use dependency::Plan;
pub use engine::{Lookup, TemplateError};
pub use manifest::{Hook, HookEvent, Manifest, ManifestError};
pub use never_read::{NeverRead, never_read};
pub use output::{NoSuchTemplate, OutputOptions};
pub use package::{
    ArchiveError, ChartFile, Content, Dependency, ImportValues, LoadError, Lock, MAX_CHART_BYTES,
    MAX_CHART_FILE_BYTES, MAX_CHART_FILES, MAX_SUBCHART_DEPTH, Maintainer, Metadata, Package,
    PackedPackage,
};
pub use parallel::on_one_thread;
pub use portolan_budget::{Budget, Exceeded, Limits, Stop};
pub use portolan_gotmpl::LookupQuery;
pub use profile::Profile;
pub use release::{MAX_NAME_BYTES, NameError, Release};
pub use release_name::ReleaseName;
pub use render::{Crd, Error, Rendered, TemplateInput, template};
pub use repo_index::{IndexEntry, IndexError, RepoIndex};
pub use reported_version::{BadKubeVersion, ReportedVersion};
pub use snapshot::{Snapshot, SnapshotError, lookup_list};
pub use unread::{MAX_TRIED, unread_values};
pub use values::schema::{MAX_FETCHED_SCHEMAS, SchemaFetchError, SchemaSource};
