//! A Kubernetes cluster as Portolan sees it: what it serves, its Helm releases, its objects, what changes.
//!
//! ```text
//! kubeconfig, service account ──▶ Cluster ──┬─▶ pages of metadata (256 at a time)
//!                                           ├─▶ Helm records, one at a time
//!                                           ├─▶ what is served, the deprecated-request metric
//!                                           └─▶ watch: metadata of what changes
//! ```
//!
//! The crate moves bytes and metadata; what they mean is for the jobs above. It asks for metadata wherever metadata is
//! enough, in pages, so that the size of a cluster shows in time and never in memory.

mod access;
mod cluster;
mod credential_plugin;
mod error;
mod metadata;
mod pages;

mod discovery;
mod helm;
mod kstatus;
mod metric;
mod watch;

pub use access::Access;
pub use cluster::Cluster;
pub use credential_plugin::{RUN_PLUGIN, run_plugin};
pub use discovery::Resource;
pub use error::{ClusterError, ErrorKind};
pub use helm::{Driver, RecordRef, newest_deployed};
pub use kstatus::{Stage, Status, kstatus};
pub use kube;
pub use metadata::{ManagedBy, Metadata, object_key};
pub use metric::{DeprecatedRequest, deprecated_requests};
pub use pages::{PAGE_SIZE, Query};
pub use watch::{Event, Watch};
