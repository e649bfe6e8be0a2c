//! A client of a Kubernetes cluster: what it serves, its Helm releases, its objects and their changes.
//!
//! ```text
//! kubeconfig, service account ──▶ Cluster ──┬─▶ pages of metadata (256 at a time)
//!                                           ├─▶ Helm records, one at a time
//!                                           ├─▶ what is served, the deprecated-request metric
//!                                           ├─▶ watch: metadata of what changes
//!                                           ├─▶ Cache: the objects of a kind, kept current by kube's runtime
//!                                           ├─▶ apply, create, patch, delete: without losing changes of others
//!                                           ├─▶ ObjectSet: objects that are applied, waited for and pruned together
//!                                           ├─▶ logs of pods, commands in them, connections to their ports
//!                                           └─▶ Lease, EventRecorder: which process acts, and events for people
//! ```
//!
//! The crate transports objects and metadata; the crates above know what they mean. It requests only metadata where
//! that is enough, in pages, so a larger cluster takes more time but not more memory.

mod access;
mod cluster;
mod credential_plugin;
mod error;
mod metadata;
mod pages;

mod cache;
mod discovery;
mod event;
mod helm;
mod kstatus;
mod lease;
mod metric;
mod served;
mod set;
mod shallow;
mod stream;
mod watch;
mod write;

pub use access::Access;
pub use cache::{Cache, CacheOptions, CacheState};
pub use cluster::Cluster;
pub use credential_plugin::{RUN_PLUGIN, run_plugin};
pub use discovery::Resource;
pub use error::{ClusterError, ErrorKind, FieldConflict};
pub use event::{EventRecorder, EventType, News, Regarding};
pub use helm::{Driver, RecordRef, newest_deployed};
pub use kstatus::{Stage, Status, kstatus};
pub use kube;
pub use lease::{Lease, LeaseOptions};
pub use metadata::{ManagedBy, Metadata, object_key};
pub use metric::{DeprecatedRequest, deprecated_requests};
pub use pages::{PAGE_SIZE, Query};
pub use served::ServedKinds;
pub use set::{
    Deployed, Inventory, KeptBecause, Member, MemberError, ObjectSet, ObjectSetError, ObjectTrial,
    PruneOptions, Pruned, SetOptions, Trial, TriedObject, WaitOptions, Waited,
};
pub use shallow::TOO_DEEP;
pub use stream::{
    ForwardEvent, ForwardOptions, LogEvent, PodCommand, PodLog, PodLogOptions, PodOutput,
    PodTarget, PortForward, TargetKind, TargetPod,
};
pub use watch::{Event, Watch};
pub use write::{ApplyOptions, ObjectVersion};
