//! What is stored of a run, and how it is read and written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
    /// The digests of the files that came with it, by their paths.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Whether it came with the request for the run.
    #[serde(default)]
    pub(super) is_sent: bool,
    /// The commit that is checked out where a book that was sent comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// Whether the book or one of its files is not as that commit has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) dirty: bool,
}

impl StoredBook {
    /// The commit for people, who see whether something was changed since.
    pub(super) fn shown_commit(&self) -> Option<String> {
        let mark = if self.dirty { "-dirty" } else { "" };
        let commit = self.commit.as_ref()?;
        Some(format!("{commit}{mark}"))
    }

    /// A book without files that is not on the server.
    pub(super) fn of_text(name: &str, text: String) -> Self {
        Self {
            file: format!("{name}.yaml"),
            text,
            files: BTreeMap::new(),
            is_sent: true,
            commit: None,
            dirty: false,
        }
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
    /// Digests of secret inputs by a key of the servers, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) secret_inputs: BTreeMap<String, String>,
    /// Names of variables whose values are secret.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) secret_variables: BTreeSet<String>,
    pub(super) tags: Vec<String>,
    pub(super) skip_tags: Vec<String>,
    /// Whether the book asks for the nodes of the run.
    pub(super) wants_peers: bool,
    /// What expressions of the book can ask for; empty if they do not.
    pub(super) known_nodes: Vec<Value>,
    /// Steps that nodes take for others, and the question of the gate.
    #[serde(default)]
    pub(super) delegated: BTreeMap<String, Delegation>,
    /// The nodes that take such steps, without the nodes of the run.
    #[serde(default)]
    pub(super) delegates: Vec<StoredNode>,
    /// Steps whose results all nodes can see.
    #[serde(default)]
    pub(super) gathered: BTreeSet<String>,
    /// Whether nodes have to know what others did.
    #[serde(default)]
    pub(super) has_news: bool,
    /// Whether it is a single command, which agents take only if they were started so.
    #[serde(default)]
    pub(super) is_exec: bool,
}

/// Who takes a step for other nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delegation {
    /// The uuids of the nodes.
    pub(super) nodes: Vec<String>,
    /// Whether it is taken once in the run, not once for each node.
    pub(super) once_per_run: bool,
}

/// What a step gave to all nodes, on one of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredResult {
    pub(super) step: String,
    /// The position of the node.
    pub(super) node: usize,
    pub(super) value: Value,
    /// Where it is, if it is stored apart; the value is null then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) large: Option<LargeResult>,
}

/// Where a result is that is too large for a record, or encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LargeResult {
    /// The digest of its blob.
    pub(super) digest: String,
    /// Whether it is encrypted to the nodes of the run.
    pub(super) sealed: bool,
}

/// A step that a node takes by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SideRecord {
    pub(super) id: String,
    pub(super) step: String,
    /// The node that takes it.
    pub(super) on: String,
    /// What became of it.
    pub(super) done: Option<SideEnd>,
}

/// What became of a step that a node took by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SideEnd {
    pub(super) report: Value,
    pub(super) result: Option<Value>,
}

/// A node as it was when the run was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredNode {
    pub(super) name: String,
    pub(super) uuid: String,
    /// Name, address, labels and exported facts, as books see them.
    pub(super) about: Value,
    /// Without secret ones.
    pub(super) variables: Map<String, Value>,
    /// The versions of what its variables are made from, by names: objects, and files of commits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) pins: BTreeMap<String, String>,
    /// What an approved plan found on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Value>,
}

/// How far a run is, without its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredState {
    /// Without nodes, which are in segments.
    pub(super) run: RunState,
    /// Time since the run was made, without the time in which no server looked after it.
    pub(super) elapsed: Duration,
    /// Results of steps that run once in the run.
    pub(super) shared: Map<String, Value>,
    /// Those that are stored apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) large: BTreeMap<String, LargeResult>,
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
    /// Remembers the revision of a record that was read in another way.
    pub(super) fn know(&mut self, key: String, revision: Revision) {
        self.revisions.insert(key, revision);
    }

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

/// Reads all records below a prefix, each with its key.
pub(super) async fn read_records<T: serde::de::DeserializeOwned>(
    store: &Store,
    prefix: String,
) -> Result<Vec<(String, T, Revision)>, StoreError> {
    let mut all = Vec::new();
    store
        .scan(&Span::prefix(prefix.clone()), None, |record| {
            let value =
                serde_json::from_slice(&record.value).map_err(|error| damaged(&prefix, &error))?;
            let key = String::from_utf8_lossy(&record.key).into_owned();
            all.push((key, value, record.mod_revision));
            Ok(())
        })
        .await?;
    Ok(all)
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

/// Deletes everything of a run but its Run. The contents of its blobs go when nothing names them.
pub(super) async fn delete_run(store: &Store, uuid: &str) -> Result<(), StoreError> {
    let mut found = Vec::new();
    let blobs = crate::keys::blobs_in(&crate::keys::blobs_of_run(uuid));
    for prefix in [keys::run(uuid), blobs] {
        let take = |record: portolan_store::Record| {
            found.push((record.key, record.mod_revision));
            Ok(())
        };
        store.scan(&Span::prefix(prefix), None, take).await?;
    }
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
