//! `kustomize build`, natively: the same bytes as kustomize 5.8, no global state, so builds run side by side.
//!
//! [`build`] turns a directory into a [`ResourceSet`], [`to_yaml`] prints it. Files come through a
//! [`portolan_vfs::Vfs`]; remote bases and Helm charts through the traits [`Fetch`] and [`ChartRenderer`], which others
//! implement. This crate knows nothing of Flux, git or clusters, and starts no program.
//!
//! ```
//! use portolan_kustomize::{Options, build, to_yaml};
//!
//! let files: portolan_vfs::Memory = [
//!     ("/kustomization.yaml", "namePrefix: my-\nresources: [service.yaml]\n"),
//!     ("/service.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"),
//! ]
//! .into_iter()
//! .collect();
//! let set = build("/".into(), &files, &Options::default())?;
//! assert_eq!(to_yaml(&set)?, "apiVersion: v1\nkind: Service\nmetadata:\n  name: my-web\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod alias;
mod build;
mod chart;
mod config;
mod cost;
mod decode;
mod deprecation;
mod directory;
mod error;
mod fetch;
mod field;
mod fieldspec;
mod generate;
mod hash;
mod id;
mod index;
mod json;
mod jsonpatch;
mod kustomization;
mod loader;
mod merge;
mod namereference;
mod options;
mod order;
mod plugin;
mod provenance;
mod read;
mod regexp;
mod remark;
mod resource;
mod schema;
mod selector;
mod set;
mod transform;
mod yamltext;

pub use build::{build, to_yaml};
pub use chart::{Chart, ChartArgs, ChartRenderer};
pub use deprecation::Deprecation;
pub use error::Error;
pub use fetch::{Fetch, FetchError, RepoSpec};
pub use id::{Gvk, ResourceId};
pub use loader::MAX_DIRECTORIES;
pub use options::{LoadRestrictor, Options, Reorder};
pub use read::MAX_DEPTH;
pub use resource::{Origin, Resource};
pub use set::ResourceSet;
