//! What is stored of a run, and how it is read and written.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_fleet::{NodeProgress, ReportWindow, RunPlan, RunState};
use portolan_store::{Compare, Revision, Span, Store, StoreError, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys;

/// Writes of one transaction: each needs a compare, and the fence is one more.
const MAX_WRITES: usize = 100;

/// Bytes of one transaction, with room for its compares.
const MAX_BYTES: usize = 700 << 10;

/// The book of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredBook {
    /// The name of its file, for messages.
    pub(super) file: String,
    pub(super) text: String,
    /// The files that came with it, in base64.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
}

impl StoredBook {
    /// The files that came with the book.
    pub(super) fn decoded(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files.iter();
        files
            .filter_map(|(path, content)| Some((path.clone(), STANDARD.decode(content).ok()?)))
            .collect()
    }
}

/// What a run was made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredPlan {
    /// The uuids of the nodes, batches and barriers.
    pub(super) run: RunPlan,
    pub(super) is_check: bool,
    /// The digest of the compiled book.
    pub(super) digest: String,
    /// Values of inputs, without secret ones.
    pub(super) inputs: Map<String, Value>,
    pub(super) tags: Vec<String>,
    pub(super) skip_tags: Vec<String>,
    /// Whether the book asks for the nodes of the run.
    pub(super) wants_peers: bool,
    /// What expressions of the book can ask for; empty if they do not.
    pub(super) known_nodes: Vec<Value>,
}

/// A node as it was when the run was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredNode {
    pub(super) name: String,
    pub(super) uuid: String,
    /// Name, address, labels and exported facts, as books see them.
    pub(super) about: Value,
    pub(super) variables: Map<String, Value>,
}

/// How far a run is, without its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredState {
    /// Without nodes, which are in segments.
    pub(super) run: RunState,
    /// Time since the run was made, without the time in which no server looked after it.
    pub(super) elapsed: Duration,
    /// The node that takes the steps that run once.
    pub(super) first: Option<String>,
    /// Results of such steps.
    pub(super) shared: Map<String, Value>,
    /// How many resumes were seen.
    pub(super) resumes: u32,
}

/// How far one node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeRecord {
    pub(super) progress: NodeProgress,
    /// The reports of its agent that are kept.
    pub(super) window: ReportWindow,
}

impl Default for NodeRecord {
    fn default() -> Self {
        Self {
            progress: NodeProgress::Queued,
            window: ReportWindow::default(),
        }
    }
}

/// The records of a run that a server writes, and the revision of each.
#[derive(Debug, Default)]
pub(super) struct RunRecords {
    revisions: BTreeMap<String, Revision>,
}

/// A write of a record.
pub(super) struct RecordWrite {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
}

impl RecordWrite {
    pub(super) fn new(key: String, value: &impl Serialize) -> Result<Self, StoreError> {
        let value = serde_json::to_vec(value).map_err(|error| damaged(&key, &error))?;
        Ok(Self { key, value })
    }
}

impl RunRecords {
    /// Reads a record, and remembers its revision.
    pub(super) async fn read<T: serde::de::DeserializeOwned>(
        &mut self,
        store: &Store,
        key: String,
    ) -> Result<Option<T>, StoreError> {
        let Some(record) = store.get(key.clone()).await? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&record.value).map_err(|error| damaged(&key, &error))?;
        self.revisions.insert(key, record.mod_revision);
        Ok(Some(value))
    }

    /// Writes records in order, as many in a transaction as fit. `false` when the fence did not hold, or somebody else has
    /// written: this server does not own the run any more.
    pub(super) async fn write(
        &mut self,
        store: &Store,
        fence: Option<&Compare>,
        writes: Vec<RecordWrite>,
    ) -> Result<bool, StoreError> {
        let mut waiting = writes.into_iter().peekable();
        while waiting.peek().is_some() {
            let mut transaction = Transaction::new();
            if let Some(fence) = fence {
                transaction = transaction.when(fence.clone());
            }
            let (mut keys, mut bytes) = (Vec::new(), 0);
            while let Some(next) = waiting.peek() {
                if keys.len() >= MAX_WRITES || (bytes > 0 && bytes + next.value.len() > MAX_BYTES) {
                    break;
                }
                let Some(write) = waiting.next() else { break };
                bytes += write.value.len();
                let seen = self.revisions.get(&write.key).copied().unwrap_or_default();
                transaction = transaction
                    .when(Compare::unchanged(write.key.clone(), seen))
                    .put(write.key.clone(), write.value);
                keys.push(write.key);
            }
            let outcome = store.commit(transaction).await?;
            if !outcome.succeeded {
                return Ok(false);
            }
            for key in keys {
                // What nodes report is written once.
                if !key.contains("/log/") {
                    self.revisions.insert(key, outcome.revision);
                }
            }
        }
        Ok(true)
    }
}

/// Reads all nodes of a run.
pub(super) async fn read_nodes(store: &Store, uuid: &str) -> Result<Vec<StoredNode>, StoreError> {
    read_segments(store, format!("{}nodes/", keys::run(uuid))).await
}

/// Reads how far all nodes of a run are.
pub(super) async fn read_progress(
    store: &Store,
    uuid: &str,
) -> Result<Vec<NodeRecord>, StoreError> {
    read_segments(store, format!("{}segment/", keys::run(uuid))).await
}

async fn read_segments<T: serde::de::DeserializeOwned>(
    store: &Store,
    prefix: String,
) -> Result<Vec<T>, StoreError> {
    let mut all = Vec::new();
    store
        .scan(&Span::prefix(prefix.clone()), None, |record| {
            let segment: Vec<T> =
                serde_json::from_slice(&record.value).map_err(|error| damaged(&prefix, &error))?;
            all.extend(segment);
            Ok(())
        })
        .await?;
    Ok(all)
}

/// Deletes everything of a run but its Run.
pub(super) async fn delete_run(store: &Store, uuid: &str) -> Result<(), StoreError> {
    let mut found = Vec::new();
    let span = Span::prefix(keys::run(uuid));
    store
        .scan(&span, None, |record| {
            found.push((record.key, record.mod_revision));
            Ok(())
        })
        .await?;
    for part in found.chunks(MAX_WRITES) {
        let delete = part
            .iter()
            .fold(Transaction::new(), |transaction, (key, revision)| {
                transaction
                    .when(Compare::unchanged(key.clone(), *revision))
                    .delete(key.clone())
            });
        store.commit(delete).await?;
    }
    Ok(())
}

fn damaged(key: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        detail: format!("`{key}`: {error}"),
    }
}
