//! How modules give content to other nodes of a fleet, and take it from them.

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
        share: &str,
        to: &Value,
        content: &[u8],
        stop: &CancellationToken,
    ) -> Result<bool, ShareError>;

    /// Publishes a new version, and returns its number.
    ///
    /// # Errors
    /// When the server refuses it, or it was stopped.
    fn publish(
        &self,
        share: &str,
        to: &Value,
        content: &[u8],
        stop: &CancellationToken,
    ) -> Result<u64, ShareError>;

    /// The newest version, with its number. `None` if there is none yet and nobody waits for it.
    ///
    /// # Errors
    /// When the server refuses it, or it was stopped.
    fn fetch(
        &self,
        share: &str,
        wait: ShareWait,
        stop: &CancellationToken,
    ) -> Result<Option<(u64, Vec<u8>)>, ShareError>;
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
        _share: &str,
        _to: &Value,
        _content: &[u8],
        _stop: &CancellationToken,
    ) -> Result<bool, ShareError> {
        Err(ShareError::NoServer)
    }

    fn publish(
        &self,
        _share: &str,
        _to: &Value,
        _content: &[u8],
        _stop: &CancellationToken,
    ) -> Result<u64, ShareError> {
        Err(ShareError::NoServer)
    }

    fn fetch(
        &self,
        _share: &str,
        _wait: ShareWait,
        _stop: &CancellationToken,
    ) -> Result<Option<(u64, Vec<u8>)>, ShareError> {
        Err(ShareError::NoServer)
    }
}
