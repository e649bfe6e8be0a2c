//! What triggers remember is stored: groups that changed, and up to where events were seen.

use std::collections::BTreeSet;

use portolan_store::Revision;
use portolan_trigger::TriggerMemory;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::super::OwnershipLost;
use super::super::records::{self, LiveWrite};
use super::super::trigger_state::checkpoint_writes;
use super::{CURSOR_EVERY, OwnedTriggers, SWEEP_EVERY, TriggerController};

/// Up to where events were seen. After a restore of the store, revisions are others.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredCursor {
    pub(super) incarnation: u64,
    pub(super) revision: Revision,
}

impl TriggerController {
    /// Stores groups that changed, and up to where events were seen.
    pub(super) async fn store_changed(
        &self,
        owned: &mut OwnedTriggers,
    ) -> Result<(), OwnershipLost> {
        let (stored, since) = owned.stored_cursor;
        let is_late = since.elapsed() >= CURSOR_EVERY;
        if owned.changed.is_empty() && (owned.cursor == stored || !is_late) {
            return Ok(());
        }
        let mut writes = Vec::new();
        for (uuid, group) in std::mem::take(&mut owned.changed) {
            let reset = owned.known.get(&uuid);
            let reset = reset.and_then(|known| known.reset.clone());
            let Some(checkpoint) = owned.reactor.checkpoint(&uuid, &group) else {
                continue;
            };
            match checkpoint_writes(&uuid, &checkpoint, reset.as_deref()) {
                Ok(of_group) => writes.extend(of_group),
                Err(error) => tracing::warn!(%error, "what a trigger remembers cannot be written"),
            }
        }
        // A trigger with several groups writes what is beside them once.
        let mut seen = BTreeSet::new();
        writes.reverse();
        writes.retain(|write: &LiveWrite| seen.insert(write.key().to_owned()));
        writes.reverse();
        self.write(owned, &writes).await?;
        self.store_cursor(owned).await
    }

    /// Stores up to where events were seen, after everything that follows from them.
    pub(super) async fn store_cursor(
        &self,
        owned: &mut OwnedTriggers,
    ) -> Result<(), OwnershipLost> {
        let cursor = StoredCursor {
            incarnation: self.server.cache.incarnation(),
            revision: owned.cursor,
        };
        if let Ok(write) = LiveWrite::put(records::cursor(), &cursor) {
            self.write(owned, &[write]).await?;
        }
        owned.stored_cursor = (owned.cursor, Instant::now());
        Ok(())
    }

    /// Deletes what is stored of groups that are not remembered any more.
    pub(super) async fn sweep(&self, owned: &mut OwnedTriggers) -> Result<(), OwnershipLost> {
        if owned.swept.elapsed() < SWEEP_EVERY {
            return Ok(());
        }
        owned.swept = Instant::now();
        let mut needed: BTreeSet<String> = BTreeSet::new();
        for (uuid, known) in &owned.known {
            let memory = owned.reactor.memory(uuid).or(known.parked.as_ref());
            let names = memory.into_iter().flat_map(TriggerMemory::group_names);
            needed.extend(names.map(|name| records::group(uuid, name)));
            needed.insert(records::ledger(uuid));
        }
        self.delete_below(owned, records::triggers(), |key| !needed.contains(key))
            .await
    }

    /// Deletes everything that is stored of a trigger.
    pub(super) async fn forget(
        &self,
        owned: &mut OwnedTriggers,
        uuid: &str,
    ) -> Result<(), OwnershipLost> {
        self.delete_below(owned, records::trigger(uuid), |_| true)
            .await
    }

    async fn delete_below(
        &self,
        owned: &mut OwnedTriggers,
        prefix: String,
        is_old: impl Fn(&str) -> bool,
    ) -> Result<(), OwnershipLost> {
        let store = &self.server.objects.store;
        let read: Result<Vec<(String, Value)>, _> = owned.records.read_all(store, prefix).await;
        let Ok(stored) = read else {
            return Ok(());
        };
        let old = stored.into_iter().map(|(key, _)| key);
        let writes: Vec<LiveWrite> = old
            .filter(|key| is_old(key))
            .map(LiveWrite::delete)
            .collect();
        self.write(owned, &writes).await
    }

    pub(super) async fn write(
        &self,
        owned: &mut OwnedTriggers,
        writes: &[LiveWrite],
    ) -> Result<(), OwnershipLost> {
        let fence = owned.ownership.fence();
        let store = &self.server.objects.store;
        match owned.records.write(store, &fence, writes).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(OwnershipLost),
            Err(error) => {
                tracing::warn!(%error, "what triggers remember cannot be written");
                Err(OwnershipLost)
            }
        }
    }
}
