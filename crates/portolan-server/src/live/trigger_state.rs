//! What triggers remember, as it is stored: read by the owner of the shard, and by whoever asks what an event would do.

use portolan_kinds::{KindObject, trigger_rules};
use portolan_store::{Store, StoreError};
use portolan_trigger::{Checkpoint, Trigger, TriggerLedger, TriggerMemory, WindowState};
use serde::{Deserialize, Serialize};

use super::records::{LiveRecords, LiveWrite, group, groups, ledger};
use crate::error::ApiError;

/// What is stored of a trigger beside its groups.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredLedger {
    pub(super) ledger: TriggerLedger,
    /// The text in the spec that last switched it on again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reset: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredGroup {
    name: String,
    window: WindowState,
}

/// The rules of a Trigger.
pub(super) fn read_trigger(object: &KindObject) -> Result<Trigger, ApiError> {
    let wrong = |why: String| ApiError::bad_request(why);
    let rules = trigger_rules(&object.spec).map_err(|error| wrong(error.to_string()))?;
    let namespace = object.namespace().unwrap_or_default();
    Trigger::new(object.metadata.uuid(), namespace, &rules).map_err(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        wrong(all.join("; "))
    })
}

/// Reads what a trigger remembers.
pub(super) async fn read_memory(
    store: &Store,
    records: &mut LiveRecords,
    uuid: &str,
) -> Result<(TriggerMemory, Option<String>), StoreError> {
    let stored: Option<StoredLedger> = records.read(store, ledger(uuid)).await?;
    let stored = stored.unwrap_or_default();
    let windows: Vec<(String, StoredGroup)> = records.read_all(store, groups(uuid)).await?;
    let windows = windows.into_iter().map(|(_, one)| (one.name, one.window));
    Ok((TriggerMemory::restore(stored.ledger, windows), stored.reset))
}

/// The writes of what a trigger remembers about a group.
pub(super) fn checkpoint_writes(
    uuid: &str,
    checkpoint: &Checkpoint,
    reset: Option<&str>,
) -> Result<Vec<LiveWrite>, StoreError> {
    let stored = StoredGroup {
        name: checkpoint.group.clone(),
        window: checkpoint.window.clone(),
    };
    Ok(vec![
        ledger_write(uuid, &checkpoint.ledger, reset)?,
        LiveWrite::put(group(uuid, &checkpoint.group), &stored)?,
    ])
}

/// The write of what a trigger remembers beside its groups.
pub(super) fn ledger_write(
    uuid: &str,
    of: &TriggerLedger,
    reset: Option<&str>,
) -> Result<LiveWrite, StoreError> {
    let stored = StoredLedger {
        ledger: of.clone(),
        reset: reset.map(str::to_owned),
    };
    LiveWrite::put(ledger(uuid), &stored)
}
