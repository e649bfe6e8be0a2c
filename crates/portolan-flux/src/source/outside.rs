//! What the repository itself does not contain, and the traits through which it is supplied: the trees of remote
//! sources, charts, and the keys of encrypted files.
//!
//! ```text
//! Source ──▶ SourceStore::tree ──▶ files ──▶ Artifact ──▶ Kustomizations, charts in trees
//! Location ─▶ SourceStore::chart ─▶ archive ─▶ Chart, loaded once per digest
//! encrypted ─▶ Decrypt ──▶ plain
//! ```
//!
//! This crate never opens a connection. Without a [`SourceStore`], everything remote is reported as a problem;
//! without a [`Decrypt`], encrypted files stay encrypted.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use camino::Utf8Path;
use futures_util::future::BoxFuture;
use portolan_engine::{Context, causes};
use portolan_object::Digest;
use portolan_vfs::Vfs;
use portolan_yaml::{Node, Text};

use crate::api::{Decryption, Source};
use crate::release::chart::Location;

/// Why something from outside is not to be had; it names the thing and the reason.
pub type OutsideError = Box<dyn Error + Send + Sync>;

/// An error with advice; it reads like the error that it holds.
#[derive(Debug)]
pub struct Advised {
    /// What went wrong.
    pub error: OutsideError,
    /// What to do about it.
    pub hint: String,
    /// What keeps other things from being had as well.
    pub cause: Option<OutsideCause>,
}

/// What keeps several things from being had, so that they can be reported together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutsideCause {
    /// No connection can be made to a host.
    Unreachable {
        /// The host, with its port when the address names one.
        host: String,
        /// What stands in the way, as in "it refuses connections".
        why: String,
    },
    /// A host answers nobody, or everybody with an error of its own: what it does.
    Failing(String),
    /// Nothing may be fetched.
    Offline,
}

impl OutsideCause {
    /// The cause in an error, if whoever failed to bring something knew it.
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut advised = causes(error).filter_map(|cause| cause.downcast_ref::<Advised>());
        advised.find_map(|advised| advised.cause.as_ref())
    }
}

impl fmt::Display for OutsideCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { host, why } => write!(f, "cannot reach `{host}`: {why}"),
            Self::Failing(what) => f.write_str(what),
            Self::Offline => f.write_str("not in the cache, and --offline fetches nothing"),
        }
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Advised {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// How a source is reached.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The content of the Secret that the source names, if the repository holds it.
    pub secret: Option<Arc<BTreeMap<Text, Vec<u8>>>>,
    /// Whether plain HTTP will do.
    pub insecure: bool,
}

/// A chart's archive, as it was brought.
#[derive(Debug, Clone)]
pub struct ChartArchive {
    /// A gzip-compressed tar.
    pub content: Arc<[u8]>,
    /// The digest of the artifact that holds it, as in `sha256:…`; Flux puts it into the version of some charts.
    pub digest: Text,
    /// The tag that it was found by in a registry; empty when it was found otherwise.
    pub tag: Text,
}

/// Brings sources and charts that are not in the repository.
///
/// The same question may be asked many times and from many units at once; whoever answers keeps what it brought. The
/// context is that of the unit which asks: it is told of the bytes that have come.
pub trait SourceStore: Send + Sync {
    /// The files of a GitRepository, OCIRepository, Bucket or ExternalArtifact, before its ignore rules.
    fn tree<'a>(
        &'a self,
        cx: &'a Context,
        source: &'a Source,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Arc<dyn Vfs>, OutsideError>>;

    /// A chart of a repository or registry: any [`Location`] but one in a tree.
    fn chart<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<ChartArchive, OutsideError>>;

    /// The same chart if that takes no connection, or else `None`.
    fn chart_at_hand<'a>(
        &'a self,
        cx: &'a Context,
        location: &'a Location,
        access: &'a Access,
    ) -> BoxFuture<'a, Option<ChartArchive>>;
}

/// Opens what is encrypted. `None` means that it is not.
pub trait Decrypt: Send + Sync {
    /// An object of a build, before variables are put in.
    fn object(&self, object: &Node, how: &Decryption) -> Result<Option<Node>, OutsideError>;

    /// A file that a generator or a patch of kustomize reads.
    fn file(
        &self,
        path: &Utf8Path,
        content: &[u8],
        how: &Decryption,
    ) -> Result<Option<Vec<u8>>, OutsideError>;

    /// Tells two sets of keys apart without telling them.
    fn fingerprint(&self) -> Digest;
}
