//! Why a release could not be installed, upgraded or uninstalled.

use std::io;

use portolan_cluster::{ClusterError, MemberError, ObjectSetError};
use portolan_engine::with_causes;
use portolan_helm::storage::StorageError;

/// Why a release did not get where it should.
#[derive(Debug, thiserror::Error)]
pub enum HelmReleaseError {
    /// The cluster refused or could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// An object cannot be applied.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The objects of the chart cannot be told apart.
    #[error(transparent)]
    Set(#[from] ObjectSetError),
    /// A record of the release cannot be read or written.
    #[error("cannot use the record of revision {revision}")]
    Record {
        /// The revision.
        revision: i64,
        /// Why not.
        #[source]
        source: StorageError,
    },
    /// The chart cannot be rendered.
    #[error("cannot render the chart")]
    Chart(#[source] Box<portolan_helm::Error>),
    /// The cluster could not say what the chart looks up.
    #[error("cannot look up what the chart asks for")]
    Lookup(#[source] ClusterError),
    /// The system gives no random numbers.
    #[error("cannot read random numbers")]
    Random(#[source] io::Error),
    /// What was rendered is not YAML.
    #[error("cannot read the manifest of `{0}`: {1}")]
    Manifest(String, String),
    /// The record does not fit into a Secret.
    #[error(
        "the record of the release has {0} bytes, more than a Secret holds (1 MiB): leave large files out of the chart with `.helmignore`"
    )]
    TooLarge(usize),
    /// Another operation is under way.
    #[error("another operation is under way: revision {revision} is `{status}`{hint}")]
    Pending {
        /// Its revision.
        revision: i64,
        /// Its status.
        status: String,
        /// What to do, where nobody else ends it.
        hint: &'static str,
    },
    /// The record was changed by somebody else while it was held.
    #[error("somebody else changed the record of revision {0} meanwhile")]
    Lost(i64),
    /// An object of the chart exists and is somebody else's.
    #[error("{object} exists and is not of this release: {why}")]
    Foreign {
        /// The object.
        object: String,
        /// What says so.
        why: String,
    },
    /// A hook failed.
    #[error("the {event} hook {object} {why}")]
    Hook {
        /// `pre-install`
        event: &'static str,
        /// The object.
        object: String,
        /// What went wrong.
        why: String,
    },
    /// Objects were refused or did not become ready.
    #[error("{}", .0.join("; "))]
    Objects(Vec<String>),
    /// There is no release of that name.
    #[error("there is no release `{0}`")]
    None(String),
    /// It was called off.
    #[error("it was called off")]
    Cancelled,
    /// It failed, and an earlier revision is deployed again.
    #[error("{}; revision {revision} is deployed again", with_causes(.failure))]
    RolledBack {
        /// That revision.
        revision: i64,
        /// Why it failed.
        failure: Box<Self>,
    },
    /// It failed, and was uninstalled.
    #[error("{}; the release was uninstalled", with_causes(.failure))]
    Uninstalled {
        /// Why it failed.
        failure: Box<Self>,
    },
    /// It failed, and its record could not say so.
    #[error("{}; revision {revision} stays recorded as pending: the next deploy sees that nobody works on it and goes on", with_causes(.failure))]
    Unrecorded {
        /// The revision.
        revision: i64,
        /// Why it failed.
        failure: Box<Self>,
    },
    /// It failed, and so did what was to be done about it.
    #[error("{}; then {}", with_causes(.failure), with_causes(.then))]
    Twice {
        /// Why it failed.
        failure: Box<Self>,
        /// Why the way back failed.
        then: Box<Self>,
    },
}
