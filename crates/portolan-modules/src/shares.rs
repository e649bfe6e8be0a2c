//! How modules give content to other nodes of a fleet, and take it from them.

use std::time::Duration;

use portolan_digest::Digest;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The most bytes of a share.
pub const MAX_SHARE_BYTES: usize = 1 << 20;

/// Gives content to other nodes, and takes it from them. An agent encrypts it to the nodes that may have it.
pub trait Shares: Send + Sync {
    /// Whether the content was published last by this node, for the same nodes, and the Share is still there.
    ///
    /// # Errors
    /// When it may not be published, or it was stopped.
    fn is_published(
        &self,
        publication: &Publication<'_>,
        stop: &CancellationToken,
    ) -> Result<bool, ShareError>;

    /// Publishes a new version, and returns its number.
    ///
    /// # Errors
    /// When the server refuses it, or it was stopped.
    fn publish(
        &self,
        publication: &Publication<'_>,
        stop: &CancellationToken,
    ) -> Result<u64, ShareError>;

    /// The newest version.
    ///
    /// # Errors
    /// When the server refuses it, or it was stopped.
    fn fetch(
        &self,
        share: &str,
        wait: ShareWait,
        stop: &CancellationToken,
    ) -> Result<FetchedShare, ShareError>;

    /// The content of a version is where it should be: whoever waits until all nodes have it is told.
    fn acknowledge(&self, version: &ShareVersion);

    /// Which nodes that a share is for do not have a version; the newest one without a number.
    ///
    /// # Errors
    /// When the server refuses it, or it was stopped.
    fn lacking(
        &self,
        share: &str,
        version: Option<u64>,
        stop: &CancellationToken,
    ) -> Result<LackingNodes, ShareError>;

    /// A digest that nobody can make who does not have a key of this node: what is shared cannot be guessed from it.
    fn keyed_digest(&self, content: &[u8]) -> Digest;
}

/// Something to publish.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    /// The name of the Share.
    pub share: &'a str,
    /// Whom it is for; null for those that the Share names.
    pub to: &'a Value,
    /// What is given.
    pub content: &'a [u8],
    /// After which time it is gone.
    pub ttl: Option<Duration>,
    /// Whether it is gone once every node that it is for has it.
    pub is_one_shot: bool,
}

/// What a node gets that asks for a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedShare {
    /// Nothing yet.
    Pending,
    /// This one.
    Version(ShareVersion),
    /// This version was for one time, and this node has had it.
    Spent(u64),
}

/// A version of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareVersion {
    /// The uuid of the Share.
    pub uuid: String,
    /// The number of the version.
    pub number: u64,
    /// What was given.
    pub content: Vec<u8>,
}

/// The nodes that do not have a version of a share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LackingNodes {
    /// The version; 0 if there is none yet.
    pub version: u64,
    /// Some of them.
    pub named: Vec<LackingNode>,
    /// How many there are.
    pub count: usize,
}

/// A node that does not have a version of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingNode {
    /// Its name.
    pub node: String,
    /// Why, as far as the server knows.
    pub reason: String,
    /// Whether it is down, or has left.
    pub is_down: bool,
}

/// Whether a share that is not there yet is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareWait {
    /// Until the step is stopped.
    Until,
    /// Not at all: a look.
    No,
}

/// Why content is not shared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// There is no server.
    #[error("a share needs a server: this run has none")]
    NoServer,
    /// The server, or this agent, does not do it.
    #[error("{0}")]
    Refused(String),
    /// The step was stopped.
    #[error("stopped before it ended")]
    Stopped,
}

/// A run without a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoShares;

impl Shares for NoShares {
    fn is_published(
        &self,
        _publication: &Publication<'_>,
        _stop: &CancellationToken,
    ) -> Result<bool, ShareError> {
        Err(ShareError::NoServer)
    }

    fn publish(
        &self,
        _publication: &Publication<'_>,
        _stop: &CancellationToken,
    ) -> Result<u64, ShareError> {
        Err(ShareError::NoServer)
    }

    fn fetch(
        &self,
        _share: &str,
        _wait: ShareWait,
        _stop: &CancellationToken,
    ) -> Result<FetchedShare, ShareError> {
        Err(ShareError::NoServer)
    }

    fn acknowledge(&self, _version: &ShareVersion) {}

    fn lacking(
        &self,
        _share: &str,
        _version: Option<u64>,
        _stop: &CancellationToken,
    ) -> Result<LackingNodes, ShareError> {
        Err(ShareError::NoServer)
    }

    fn keyed_digest(&self, content: &[u8]) -> Digest {
        Digest::of(content)
    }
}
