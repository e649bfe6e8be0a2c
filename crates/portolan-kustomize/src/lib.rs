//! `kustomize build` in Rust: the same bytes as kustomize 5.8, without global state, so builds can run in parallel.
//!
//! [`build`] turns a directory into a [`ResourceSet`], [`to_yaml`] prints it. Files come through a
//! [`portolan_vfs::Vfs`]; remote bases and Helm charts through the traits [`Fetch`] and [`ChartRenderer`], which
//! other crates implement. This crate knows nothing about Flux, git or clusters, and starts no program.
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

mod build;
mod config;
mod directory;
mod error;
mod generate;
mod load;
mod options;
mod resource;
mod schema;
mod transform;
mod value;

pub use build::{build, to_yaml};
pub use error::{Error, Located};
pub use generate::chart::{Chart, ChartArgs, ChartFailure, ChartRenderer};
pub use load::deprecation::Deprecation;
pub use load::fetch::{Fetch, FetchError, RepoSpec};
pub use load::loader::MAX_DIRECTORIES;
pub use load::read::MAX_DEPTH;
pub use options::{LoadRestrictor, Options, Reorder};
pub use resource::id::{Gvk, ResourceId};
pub use resource::set::ResourceSet;
pub use resource::{Origin, Resource};
