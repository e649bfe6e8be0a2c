//! Content that is too large for the store: files on the disks of servers, and their digests in the store.
//!
//! ```text
//! put: file here ──▶ file on another server, if there is one ──▶ digest in the store ──▶ answer
//! get: digest in the store? ──▶ file here, or from a server that has it
//! ```
//!
//! A digest is in the store only when the content is on two disks, or when there is one server. If a server is gone,
//! one that has the content copies it to another.

mod peers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use portolan_store::blob::{BlobArea, BlobError, BlobName};
use portolan_store::{Compare, Record, Span, Store, StoreError, Transaction};
use serde_json::{Value, json};

pub(crate) use self::peers::BlobPeers;
use crate::error::{ApiError, RefusalReason};
use crate::keys;
use crate::membership::servers;
use crate::objects::Objects;

/// The most bytes that are sent as one.
pub(crate) const MAX_BLOB: usize = 1 << 20;
/// The most bytes of a namespace.
const MAX_NAMESPACE_BYTES: u64 = 1 << 30;
/// The most digests of a namespace.
const MAX_NAMESPACE_BLOBS: usize = 10_000;
/// The most bytes of the large results of a run.
const MAX_RUN_BYTES: u64 = 64 << 20;
/// The most large results of a run.
const MAX_RUN_BLOBS: usize = 1_000;
/// On how many servers content is, if there are so many.
const COPIES: usize = 2;
/// How often missing copies are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long content stays that no digest of the store names: it may be on its way there.
const UNNAMED_FOR: Duration = Duration::from_hours(1);
/// How often a digest is tried that others write, too.
const ATTEMPTS: usize = 10;
/// Digests that are removed in one transaction.
const REMOVED_AT_ONCE: usize = 100;

/// The blobs of this server, and how the others are asked for theirs.
pub(crate) struct ServerBlobs {
    area: Arc<BlobArea>,
    objects: Objects,
    server: String,
    peers: BlobPeers,
}

/// What a blob belongs to.
struct BlobScope<'a> {
    /// The namespace, whose deletion ends it.
    namespace: &'a str,
    /// Its part of the key.
    key: &'a str,
    /// What has the limits, for messages.
    what: &'static str,
    max_bytes: u64,
    max_blobs: usize,
}

/// What the store knows of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlobRecord {
    bytes: u64,
    /// The servers that have it, sorted.
    servers: BTreeSet<String>,
}

impl ServerBlobs {
    pub(crate) fn new(area: BlobArea, objects: Objects, server: &str, peers: BlobPeers) -> Self {
        Self {
            area: Arc::new(area),
            objects,
            server: server.to_owned(),
            peers,
        }
    }

    /// Stores content of a namespace; returns when it is safe.
    pub(crate) async fn put(&self, namespace: &str, content: Bytes) -> Result<Value, ApiError> {
        let scope = BlobScope {
            namespace,
            key: namespace,
            what: "namespace",
            max_bytes: MAX_NAMESPACE_BYTES,
            max_blobs: MAX_NAMESPACE_BLOBS,
        };
        let bytes = content.len();
        let (name, servers) = self.put_in(&scope, content).await?;
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Blob", "digest": format!("sha256:{name}"),
            "bytes": bytes, "servers": servers,
        }))
    }

    /// Stores a result of a run; returns its digest when it is safe.
    pub(crate) async fn put_result(
        &self,
        namespace: &str,
        run: &str,
        content: Bytes,
    ) -> Result<BlobName, ApiError> {
        let scope = BlobScope {
            namespace,
            key: &keys::blobs_of_run(run),
            what: "run",
            max_bytes: MAX_RUN_BYTES,
            max_blobs: MAX_RUN_BLOBS,
        };
        let (name, _) = self.put_in(&scope, content).await?;
        Ok(name)
    }

    /// The content of a result of a run.
    pub(crate) async fn get_result(&self, run: &str, name: BlobName) -> Result<Vec<u8>, ApiError> {
        self.get(&keys::blobs_of_run(run), name).await
    }

    async fn put_in(
        &self,
        scope: &BlobScope<'_>,
        content: Bytes,
    ) -> Result<(BlobName, BTreeSet<String>), ApiError> {
        self.objects.open_gate(scope.namespace).await?;
        self.check_room(scope, content.len() as u64).await?;
        let name = self.put_here(content.clone()).await?;
        let mut holders = BTreeSet::from([self.server.clone()]);
        holders.extend(self.copy(name, &content, &holders).await?);
        let bytes = content.len() as u64;
        let servers = self.name_it(scope, name, bytes, holders).await?;
        Ok((name, servers))
    }

    /// Puts a digest into the store, beside the servers that are there already.
    async fn name_it(
        &self,
        scope: &BlobScope<'_>,
        name: BlobName,
        bytes: u64,
        holders: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, ApiError> {
        let key = keys::blob(scope.key, &name.to_string());
        for _ in 0..ATTEMPTS {
            let gate = self.objects.open_gate(scope.namespace).await?;
            let (seen, found) = self.find(&key).await?;
            let mut servers = found.map(|found| found.servers).unwrap_or_default();
            servers.extend(holders.iter().cloned());
            let record = BlobRecord { bytes, servers };
            let put = Transaction::replace(key.clone(), seen, record.to_json()).when(gate);
            if self.objects.store.commit(put).await?.succeeded {
                return Ok(record.servers);
            }
        }
        Err(ApiError::unavailable("the digest could not be stored"))
    }

    /// The content of a digest of a namespace.
    pub(crate) async fn get(&self, namespace: &str, name: BlobName) -> Result<Vec<u8>, ApiError> {
        let (_, found) = self.find(&keys::blob(namespace, &name.to_string())).await?;
        let found = found.ok_or_else(|| not_found(name))?;
        match self.get_here(name).await {
            Ok(content) => return Ok(content),
            Err(BlobError::Missing(_)) => {}
            Err(error) => tracing::warn!(%error, "a blob is read from another server"),
        }
        for other in servers(&self.objects.store).await? {
            if other.server == self.server || !found.servers.contains(&other.server) {
                continue;
            }
            match self.peers.fetch(&other.address, name).await {
                Ok(content) => {
                    // From now on it is here, too.
                    self.put_here(content.clone().into()).await?;
                    return Ok(content);
                }
                Err(why) => tracing::warn!(server = other.server, why, "a blob cannot be read"),
            }
        }
        let message = format!("no server that has blob {name} can be reached");
        Err(ApiError::unavailable(message))
    }

    /// Takes a digest of a namespace out of the store. The content goes when no namespace has it.
    pub(crate) async fn delete(&self, namespace: &str, name: BlobName) -> Result<(), ApiError> {
        let key = keys::blob(namespace, &name.to_string());
        for _ in 0..ATTEMPTS {
            let (seen, found) = self.find(&key).await?;
            if found.is_none() {
                return Err(not_found(name));
            }
            let remove = Transaction::remove(key.clone(), seen);
            if self.objects.store.commit(remove).await?.succeeded {
                return Ok(());
            }
        }
        Err(ApiError::unavailable("the digest changes all the time"))
    }

    /// What another server sent.
    pub(crate) async fn accept(&self, name: BlobName, content: Bytes) -> Result<(), ApiError> {
        if BlobName::of(&content) != name {
            let message = "the content has another digest than the path says";
            return Err(ApiError::bad_request(message));
        }
        self.put_here(content).await.map(|_| ())
    }

    /// What is on this server's disk, for another server.
    pub(crate) async fn give(&self, name: BlobName) -> Result<Vec<u8>, ApiError> {
        self.get_here(name).await.map_err(|error| match error {
            BlobError::Missing(_) => not_found(name),
            error => ApiError::internal(error.to_string()),
        })
    }

    /// Copies what too few servers have, and removes what no digest names, until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut unnamed: BTreeMap<BlobName, tokio::time::Instant> = BTreeMap::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.round(&mut unnamed).await {
                tracing::warn!(%error, "blobs cannot be looked after");
            }
        }
    }

    async fn round(
        &self,
        unnamed: &mut BTreeMap<BlobName, tokio::time::Instant>,
    ) -> Result<(), ApiError> {
        let mut named: Vec<(Record, BlobName, BlobRecord)> = Vec::new();
        let store = &self.objects.store;
        let take = |record: Record| {
            named.extend(read(&record).map(|(name, found)| (record, name, found)));
            Ok(())
        };
        store.scan(&Span::prefix(keys::blobs()), None, take).await?;
        let living = servers(store).await?;
        let living: BTreeSet<String> = living.into_iter().map(|one| one.server).collect();
        for (record, name, found) in &named {
            let mut holders = found.servers.intersection(&living);
            let is_first = holders.next() == Some(&self.server);
            if is_first && holders.next().is_none() && living.len() >= COPIES {
                self.copy_again(record, *name, found).await?;
            }
        }
        let names: BTreeSet<BlobName> = named.iter().map(|(_, name, _)| *name).collect();
        self.sweep(&names, unnamed).await
    }

    /// Copies a blob to another server because those that had it are gone.
    async fn copy_again(
        &self,
        record: &Record,
        name: BlobName,
        found: &BlobRecord,
    ) -> Result<(), ApiError> {
        let content = self.get_here(name).await;
        let content = content.map_err(|error| ApiError::internal(error.to_string()))?;
        let Some(other) = self.copy(name, &content.into(), &found.servers).await? else {
            return Ok(());
        };
        let mut found = found.clone();
        found.servers.insert(other);
        let replace =
            Transaction::replace(record.key.clone(), record.mod_revision, found.to_json());
        // Whoever was faster has written what counts.
        self.objects.store.commit(replace).await?;
        Ok(())
    }

    async fn sweep(
        &self,
        named: &BTreeSet<BlobName>,
        unnamed: &mut BTreeMap<BlobName, tokio::time::Instant>,
    ) -> Result<(), ApiError> {
        let (area, now) = (Arc::clone(&self.area), tokio::time::Instant::now());
        let here = blocking(move || area.list()).await?;
        unnamed.retain(|name, _| !named.contains(name) && here.contains(name));
        for name in here.into_iter().filter(|name| !named.contains(name)) {
            let since = *unnamed.entry(name).or_insert(now);
            if now.duration_since(since) >= UNNAMED_FOR {
                let area = Arc::clone(&self.area);
                blocking(move || area.remove(name)).await?;
            }
        }
        Ok(())
    }

    /// Copies content to one server that is alive and lacks it; `None` if there is no such server.
    async fn copy(
        &self,
        name: BlobName,
        content: &Bytes,
        holders: &BTreeSet<String>,
    ) -> Result<Option<String>, ApiError> {
        let mut failure = None;
        for other in servers(&self.objects.store).await? {
            if other.server == self.server || holders.contains(&other.server) {
                continue;
            }
            match self.peers.send(&other.address, name, content).await {
                Ok(()) => return Ok(Some(other.server)),
                Err(why) => failure = Some(format!("{}: {why}", other.address)),
            }
        }
        let Some(why) = failure else {
            return Ok(None);
        };
        let message = format!("the content could not be copied to a second server: {why}");
        Err(ApiError::unavailable(message).hint("send it again in a moment"))
    }

    async fn check_room(&self, scope: &BlobScope<'_>, more: u64) -> Result<(), ApiError> {
        let (mut count, mut bytes) = (0, more);
        let take = |record: Record| {
            count += 1;
            bytes += read(&record).map_or(0, |(_, found)| found.bytes);
            Ok(())
        };
        let span = Span::prefix(keys::blobs_in(scope.key));
        self.objects.store.scan(&span, None, take).await?;
        let BlobScope {
            what,
            max_bytes,
            max_blobs,
            ..
        } = scope;
        if count < *max_blobs && bytes <= *max_bytes {
            return Ok(());
        }
        let message =
            format!("a {what} has at most {max_blobs} blobs and {max_bytes} bytes of them");
        let (status, reason) = (StatusCode::INSUFFICIENT_STORAGE, RefusalReason::StorageFull);
        Err(ApiError::new(status, reason, message).hint("delete some first"))
    }

    /// The revision and record of a key; 0 without one.
    async fn find(&self, key: &str) -> Result<(u64, Option<BlobRecord>), ApiError> {
        let found = self.objects.store.get(key.to_owned()).await?;
        let Some(record) = found else {
            return Ok((0, None));
        };
        let read = read(&record).map(|(_, found)| found);
        let read = read.ok_or_else(|| ApiError::internal("the record of a blob is damaged"))?;
        Ok((record.mod_revision, Some(read)))
    }

    async fn put_here(&self, content: Bytes) -> Result<BlobName, ApiError> {
        let area = Arc::clone(&self.area);
        blocking(move || area.put(&mut &content[..])).await
    }

    async fn get_here(&self, name: BlobName) -> Result<Vec<u8>, BlobError> {
        let area = Arc::clone(&self.area);
        let read = tokio::task::spawn_blocking(move || area.get(name)).await;
        read.unwrap_or(Err(BlobError::Missing(name)))
    }
}

/// Removes all digests of a namespace, for a server that owns the shard.
pub(crate) async fn remove_namespace(
    store: &Store,
    namespace: &str,
    fence: &Compare,
) -> Result<(), StoreError> {
    let mut found: Vec<(Bytes, u64)> = Vec::new();
    let take = |record: Record| {
        found.push((record.key, record.mod_revision));
        Ok(())
    };
    let span = Span::prefix(keys::blobs_in(namespace));
    store.scan(&span, None, take).await?;
    for some in found.chunks(REMOVED_AT_ONCE) {
        let first = Transaction::new().when(fence.clone());
        let remove = some.iter().fold(first, |all, (key, revision)| {
            let unchanged = Compare::unchanged(key.clone(), *revision);
            all.when(unchanged).delete(key.clone())
        });
        store.commit(remove).await?;
    }
    Ok(())
}

impl BlobRecord {
    fn to_json(&self) -> String {
        json!({"bytes": self.bytes, "servers": self.servers}).to_string()
    }
}

fn read(record: &Record) -> Option<(BlobName, BlobRecord)> {
    let key = std::str::from_utf8(&record.key).ok()?;
    let name = key.rsplit('/').next()?.parse().ok()?;
    let value: Value = serde_json::from_slice(&record.value).ok()?;
    let servers = value["servers"].as_array()?.iter();
    let found = BlobRecord {
        bytes: value["bytes"].as_u64()?,
        servers: servers
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    };
    Some((name, found))
}

fn not_found(name: BlobName) -> ApiError {
    ApiError::not_found(&format!("blob {name}"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::internal("the work on a blob has died"))?;
    done.map_err(|error| {
        let message = with_cause(&error);
        ApiError::internal(message)
    })
}

/// An error with its cause.
fn with_cause(error: &BlobError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
