//! Follows the store for a cache.

use std::time::Duration;

use portolan_store::{Revision, Span, Store, StoreError, Update, Watcher};

use super::Cache;
use crate::keys::followed;

/// A watch of the store that tells nothing for so long, not even ticks, is made anew.
const SILENCE: Duration = Duration::from_secs(5);
/// Between two attempts to watch a store that cannot be reached.
const RETRY: Duration = Duration::from_millis(500);

/// Follows the store for a cache.
pub(crate) struct CacheFeed {
    pub(super) cache: Cache,
    pub(super) store: Store,
    pub(super) watcher: Watcher,
}

impl CacheFeed {
    /// Takes everything up to a revision, so that the cache starts complete.
    pub(super) async fn catch_up(&mut self, revision: Revision) -> Result<(), StoreError> {
        while self.cache.revision() < revision {
            self.step().await?;
        }
        Ok(())
    }

    /// Follows the store until the future is dropped. A store that cannot be watched is tried again; compacted history is
    /// read anew.
    pub(crate) async fn run(mut self) {
        loop {
            let error = match tokio::time::timeout(SILENCE, self.step()).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(_) => StoreError::Unavailable {
                    detail: format!("it told nothing for {} s", SILENCE.as_secs()),
                },
            };
            self.recover(&error).await;
        }
    }

    async fn step(&mut self) -> Result<(), StoreError> {
        match self.watcher.next().await? {
            Update::Changes { revision, events } => self.cache.take(revision, &events),
            // Ticks tell how far the watch is. A revision that only a header names says nothing of the events before it.
            Update::Progress { .. } => {}
        }
        Ok(())
    }

    async fn recover(&mut self, error: &StoreError) {
        tracing::warn!(%error, "the watch of the store has ended");
        loop {
            let from = match error {
                StoreError::Compacted { .. } => self.cache.load(&self.store, None).await,
                _ => Ok(self.cache.revision()),
            };
            let watched = match from {
                Ok(from) => self.store.watch(Span::prefix(followed()), from + 1).await,
                Err(error) => Err(error),
            };
            match watched {
                Ok(watcher) => {
                    self.watcher = watcher;
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the store cannot be watched");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
