//! Follows changes.
//!
//! ```text
//! list at revision 41 ──▶ watch from 42 ──▶ Changes{43}, Changes{44}, Progress{60}, …   resume from 61 at any time
//!                                             └─▶ Compacted: list again
//! ```

use std::future::Future;
use std::pin::Pin;

use crate::{Event, Revision, StoreError};

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Everything that one revision changed in the watched keys.
    Changes {
        /// The revision.
        revision: Revision,
        /// The changes, in the order in which the transaction made them; at least one.
        events: Vec<Event>,
    },
    /// All changes up to this revision have been told.
    Progress {
        /// The revision.
        revision: Revision,
    },
}

impl Update {
    /// The revision up to which everything has been told after this. A watch resumes at the one after it.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Changes { revision, .. } | Self::Progress { revision } => *revision,
        }
    }
}

/// The next update, to be awaited.
pub type NextUpdate<'a> = Pin<Box<dyn Future<Output = Result<Update, StoreError>> + Send + 'a>>;

/// What an engine puts behind a [`Watcher`].
pub trait WatchSource: Send {
    /// Waits for the next update. Cancelling it loses nothing. An error is final.
    fn next(&mut self) -> NextUpdate<'_>;

    /// Asks for a [`Update::Progress`] soon. One may come, or not: a watch that is behind sends its changes first.
    fn request_progress(&mut self);
}

/// A watch under way. Dropping it ends it.
///
/// A reader that is slow costs no memory: it is moved from the newest changes to the stored history, and when compaction
/// has taken that away it is told [`StoreError::Compacted`].
pub struct Watcher(Box<dyn WatchSource>);

impl Watcher {
    /// A watch made of an engine's part.
    pub fn new(source: impl WatchSource + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Waits for the next update. Cancelling it loses nothing. After an error, the same error comes again.
    pub async fn next(&mut self) -> Result<Update, StoreError> {
        self.0.next().await
    }

    /// Asks for an [`Update::Progress`]; ask again when none came, it is not promised.
    pub fn request_progress(&mut self) {
        self.0.request_progress();
    }
}
