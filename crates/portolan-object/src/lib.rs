//! Kubernetes objects as every job sees them.
//!
//! An object is a YAML tree that has been found to be a Kubernetes object: it has an [`ObjectId`] (group, version,
//! kind, namespace, name) and an [`Origin`] that says where it came from and what changed it since. Around it stand the
//! things that are asked of objects everywhere and therefore answered once: label selectors, the kinds a Kubernetes
//! release [`served`](served()) and their [`Scope`], where a kind keeps its pod template , which
//! container images it names , and its canonical JSON.
//!
//! The crate knows nothing of files, clusters or the tools that render objects; a tree comes in as a
//! [`portolan_yaml::Node`] and stays one.
//!
//! ```
//! use portolan_object::{Gvk, Scope, scope};
//!
//! let gvk: Gvk = "apps/v1/Deployment".parse()?;
//! assert_eq!(gvk.api_version(), "apps/v1");
//! assert_eq!(scope(&gvk), Some(Scope::Namespaced));
//!
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod gvk;
mod id;
mod origin;

mod scope;
mod served;
mod version;

pub use gvk::{Gvk, GvkError};
pub use id::{IdError, ObjectId};
pub use origin::{Act, Origin, Place, Step};
pub use scope::scope;
pub use served::{Scope, Served, served};
pub use version::{KubeVersion, KubeVersionError};
