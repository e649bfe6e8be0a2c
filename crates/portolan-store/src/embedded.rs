//! The embedded engine: one file, one writer, for a single server.
//!
//! ```text
//! range ─────────▶ tables (a short read transaction)
//! transact ──────▶ Writer ──▶ tables ──▶ disk ──▶ Hub ──▶ watches
//! keep_alive ────▶ Leases (in memory)
//! ```
//!
//! redb keeps the tables. Every commit is synced twice (its pages, then the pointer to them), so after a crash the
//! store has the last commit that was answered, or a later one. redb checks its pages only in a repair, so each
//! record has its own checksum, and each kind a digest of all its live records.

mod batch;
mod fault;
mod hub;
mod leases;
mod newest;
mod open_database;
mod tables;
mod verify;
mod view;
mod writer;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend};
use tokio::sync::{mpsc, oneshot, watch};

pub use tables::{StoredVersion, decode as decode_stored};
pub use verify::Verification;

use self::fault::{Fault, guarded};
use self::hub::{Hub, Look};
use self::leases::Leases;
use self::newest::NewestState;
use self::open_database::OpenDatabase;
use self::tables::{
    CURRENT, DIGEST, FORMAT, HISTORY, LEASE, LEASED, LOG, META, META_BYTES, META_COMPACTED,
    META_FORMAT, META_REVISION,
};
use self::view::{Snapshot, Step, read_log};
use self::writer::{QUEUE, Request, Shared, Writer};
use crate::{
    Answer, BootClock, Clock, Engine, EngineStatus, LeaseId, LeaseState, NextUpdate, Outcome, Page,
    Range, Revision, Span, StoreError, Transaction, Update, WatchSource, Watcher,
};

/// Pages up to this many records are read on the caller's thread; larger ones on one that may block.
const SMALL_PAGE: usize = 64;

/// The name of the store's file in a server's data directory.
pub const STORE_FILE: &str = "store.redb";

/// How the embedded engine behaves.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// Bytes of pages that are kept in memory.
    pub cache_bytes: usize,
    /// Bytes of keys and values, old ones too, from which on nothing is put any more.
    pub max_bytes: u64,
    /// History that is kept in any case.
    pub history_time: Duration,
    /// Revisions that are kept in any case.
    pub history_revisions: u64,
    /// How often leases and history are looked after.
    pub tick: Duration,
    /// Whether all live records are checked when the store is opened.
    pub verify: bool,
    /// Whether each commit carries what an instant start after a crash needs.
    pub quick_repair: bool,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            max_bytes: 2 << 30,
            history_time: Duration::from_mins(10),
            history_revisions: 10_000,
            tick: Duration::from_millis(500),
            verify: true,
            quick_repair: true,
        }
    }
}

/// The engine of a single server. Dropping it ends it; what was answered stays.
pub struct Embedded {
    shared: Arc<Shared>,
    requests: Option<mpsc::Sender<Request>>,
    writer: Option<std::thread::JoinHandle<()>>,
    max_bytes: u64,
}

impl Embedded {
    /// Opens the store in a file, or makes a new one. Only one process can have it open.
    pub fn open(path: &Path, options: EmbeddedOptions) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        let opened = guarded(|| Ok(builder(&options).create(path)?)).map_err(Fault::into_error)?;
        if is_new {
            sync_directory(path)?;
        }
        Self::start(opened, options, Arc::new(BootClock))
    }

    /// Opens the store on something else than a file, with a clock of one's own.
    pub fn open_backend(
        backend: impl StorageBackend,
        options: EmbeddedOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let opened = guarded(|| Ok(builder(&options).create_with_backend(backend)?));
        Self::start(opened.map_err(Fault::into_error)?, options, clock)
    }

    fn start(
        database: Database,
        options: EmbeddedOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let database = OpenDatabase::new(database);
        let leases = Leases::new(clock);
        let (revision, compacted) = guarded(|| {
            prepare(&database)?;
            load(&database, &leases, options.verify)
        })
        .map_err(Fault::into_error)?;
        let shared = Arc::new(Shared {
            newest: NewestState::new(),
            database,
            hub: Hub::new(revision),
            leases,
            failure: watch::Sender::new(None),
            has_old: watch::Sender::new(true),
        });
        let (sender, receiver) = mpsc::channel(QUEUE);
        let max_bytes = options.max_bytes;
        let writer = Writer {
            shared: Arc::clone(&shared),
            options,
            requests: receiver,
            revision,
            compacted,
            marks: VecDeque::new(),
            // A crash may have left some of what was compacted.
            has_old: true,
        };
        Ok(Self {
            shared,
            requests: Some(sender),
            writer: Some(spawn(writer)?),
            max_bytes,
        })
    }

    /// Waits until the engine has stopped because a commit failed, and says why. The process should then end: only a new
    /// start shows what is on the disk.
    pub async fn failed(&self) -> String {
        let mut failure = self.shared.failure.subscribe();
        let failed = failure.wait_for(Option::is_some).await;
        failed
            .ok()
            .and_then(|failed| failed.clone())
            .unwrap_or_default()
    }

    /// Waits until everything before the last compaction is removed from the disk.
    pub async fn history_removed(&self) -> Result<(), StoreError> {
        let (mut old, mut failure) = (
            self.shared.has_old.subscribe(),
            self.shared.failure.subscribe(),
        );
        tokio::select! {
            _ = old.wait_for(|has_old| !has_old) => Ok(()),
            _ = failure.wait_for(Option::is_some) => Err(ended()),
        }
    }

    /// Reads everything and compares it with the checksums and digests.
    pub async fn verify(&self) -> Result<Verification, StoreError> {
        self.read_blocking(|shared| verify::verify(&shared.database))
            .await
    }

    async fn send<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or_else(ended)?;
        requests.send(request(reply)).await.map_err(|_| ended())?;
        // A writer that died took the request with it, at a point that nobody knows.
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::Unknown {
                operation: None,
                detail: "the writer has ended".to_owned(),
            })
        })
    }

    async fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || guarded(|| read(&shared)));
        done.await.map_err(|_| ended())?.map_err(Fault::into_error)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(writer) = self.writer.take() {
            // It ends after the commit under way.
            let _ = writer.join();
        }
    }
}

impl Engine for Embedded {
    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(async move {
            if range.limit <= SMALL_PAGE {
                return guarded(|| read(&self.shared, &range)).map_err(Fault::into_error)?;
            }
            self.read_blocking(move |shared| read(shared, &range))
                .await?
        })
    }

    fn transact(&self, transaction: Transaction) -> Answer<'_, Outcome> {
        Box::pin(self.send(|reply| Request::Transact(transaction, reply)))
    }

    fn watch(&self, span: Span, from: Revision) -> Answer<'_, Watcher> {
        Box::pin(async move {
            let newest = guarded(|| self.shared.newest.get(&self.shared.database));
            let oldest = newest.map_err(Fault::into_error)?.compacted;
            Ok(Watcher::new(Cursor {
                shared: Arc::clone(&self.shared),
                published: self.shared.hub.subscribe(),
                span,
                next: from,
                buffer: VecDeque::new(),
                wants_progress: false,
                // The ring may still have it; but whether a watch works must not depend on that.
                error: (from < oldest).then_some(StoreError::Compacted {
                    asked: from,
                    oldest,
                }),
            }))
        })
    }

    fn compact(&self, revision: Revision) -> Answer<'_, ()> {
        Box::pin(self.send(move |reply| Request::Compact(revision, reply)))
    }

    fn grant(&self, time: Duration) -> Answer<'_, (LeaseId, Duration)> {
        Box::pin(async move {
            let lease = loop {
                // Positive, as etcd's are, and never 0.
                if let Some(lease) = LeaseId::new(rand::random::<i64>() & i64::MAX)
                    && !self.shared.leases.exists(lease)
                {
                    break lease;
                }
            };
            let granted = Duration::from_secs(time.as_secs().max(1));
            self.send(|reply| Request::Grant(lease, granted, reply))
                .await?;
            Ok((lease, granted))
        })
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, Duration> {
        let renewed = self.shared.leases.renew(lease);
        Box::pin(async move { renewed.ok_or(StoreError::NoLease { lease }) })
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        Box::pin(self.send(move |reply| Request::Revoke(lease, reply)))
    }

    fn lease(&self, lease: LeaseId) -> Answer<'_, LeaseState> {
        Box::pin(async move {
            let times = self.shared.leases.times(lease);
            let (granted, remaining) = times.ok_or(StoreError::NoLease { lease })?;
            let keys = self
                .read_blocking(move |shared| {
                    let leased = shared.database.begin_read()?.open_table(LEASED)?;
                    batch::leased_keys(&leased, lease)
                })
                .await?;
            Ok(LeaseState {
                granted,
                remaining,
                keys,
            })
        })
    }

    fn status(&self) -> Answer<'_, EngineStatus> {
        Box::pin(async move {
            let newest = guarded(|| self.shared.newest.get(&self.shared.database));
            let newest = newest.map_err(Fault::into_error)?;
            let (revision, bytes) = (newest.revision, newest.bytes);
            let mut warnings = Vec::new();
            if bytes > self.max_bytes / 10 * 8 {
                let limit = self.max_bytes;
                warnings.push(format!(
                    "{bytes} of {limit} bytes are in use: delete what is not needed, and run `portolan store compact`"
                ));
            }
            warnings.extend(self.shared.failure.borrow().clone());
            Ok(EngineStatus {
                revision,
                bytes,
                max_bytes: Some(self.max_bytes),
                warnings,
                cluster: None,
            })
        })
    }

    fn loses_answers(&self) -> bool {
        false
    }
}

/// A watch: the place it has come to.
struct Cursor {
    shared: Arc<Shared>,
    published: watch::Receiver<Revision>,
    span: Span,
    next: Revision,
    /// What was read from the log and not told yet, at most one step.
    buffer: VecDeque<Update>,
    wants_progress: bool,
    /// What ended it.
    error: Option<StoreError>,
}

impl Cursor {
    async fn advance(&mut self) -> Result<Update, StoreError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let update = self.find().await;
        self.error = update.as_ref().err().cloned();
        update
    }

    async fn find(&mut self) -> Result<Update, StoreError> {
        loop {
            if let Some(update) = self.buffer.pop_front() {
                return Ok(update);
            }
            let newest = *self.published.borrow_and_update();
            match self.shared.hub.look(&self.span, self.next) {
                Look::Update(update) => {
                    self.next = update.revision() + 1;
                    return Ok(update);
                }
                Look::Behind => self.catch_up().await?,
                Look::Wait(next) => {
                    self.next = next;
                    if std::mem::take(&mut self.wants_progress) {
                        let revision = newest.min(next - 1);
                        return Ok(Update::Progress { revision });
                    }
                    self.published.changed().await.map_err(|_| ended())?;
                }
            }
        }
    }

    /// Reads a step of the log. When it is cancelled, the step is read again.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let (shared, span, next) = (Arc::clone(&self.shared), self.span.clone(), self.next);
        let step = tokio::task::spawn_blocking(move || {
            guarded(|| read_log(&shared.database.begin_read()?, &span, next))
        });
        match step
            .await
            .map_err(|_| ended())?
            .map_err(Fault::into_error)?
        {
            Step::Read { updates, next } => {
                self.buffer = updates.into();
                self.next = next;
                Ok(())
            }
            Step::Compacted { oldest } => Err(StoreError::Compacted {
                asked: next,
                oldest,
            }),
        }
    }
}

impl WatchSource for Cursor {
    fn next(&mut self) -> NextUpdate<'_> {
        Box::pin(self.advance())
    }

    fn request_progress(&mut self) {
        self.wants_progress = true;
    }
}

fn builder(options: &EmbeddedOptions) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Makes the tables of a new store, and refuses those of a newer program.
fn prepare(database: &Database) -> Result<(), Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    let format = {
        let meta = transaction.open_table(META)?;
        let format = meta.get(META_FORMAT)?;
        format.map(|format| format.value())
    };
    match format {
        Some(FORMAT) => return Ok(transaction.abort()?),
        Some(other) => {
            return Err(Fault::Damaged(format!(
                "format {other} is not known here: it was written by a newer program, or the file is damaged"
            )));
        }
        None => {}
    }
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_REVISION, 1)?;
        meta.insert(META_COMPACTED, 0)?;
        meta.insert(META_BYTES, 0)?;
        transaction.open_table(CURRENT)?;
        transaction.open_table(HISTORY)?;
        transaction.open_table(LOG)?;
        transaction.open_table(LEASE)?;
        transaction.open_table(LEASED)?;
        transaction.open_table(DIGEST)?;
    }
    Ok(transaction.commit()?)
}

/// Starts the leases, checks the records, and returns the revision and where history begins.
fn load(
    database: &Database,
    leases: &Leases,
    is_verified: bool,
) -> Result<(Revision, Revision), Fault> {
    let transaction = database.begin_read()?;
    for entry in transaction.open_table(LEASE)?.iter()? {
        let (lease, seconds) = entry?;
        if let Some(lease) = LeaseId::new(lease.value()) {
            leases.start(lease, Duration::from_secs(seconds.value()));
        }
    }
    if is_verified {
        verify::verify_live(&transaction)?;
    }
    let view = Snapshot::open(&transaction)?;
    Ok((view.meta(META_REVISION)?, view.meta(META_COMPACTED)?))
}

fn read(shared: &Shared, range: &Range) -> Result<Result<Page, StoreError>, Fault> {
    shared.newest.get(&shared.database)?.range(range)
}

/// The writer has a runtime of its own, only to wait for requests and the clock; it blocks in the disk.
fn spawn(writer: Writer) -> Result<std::thread::JoinHandle<()>, StoreError> {
    let stopped = |error: std::io::Error| StoreError::Stopped {
        detail: error.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(stopped)?;
    let thread = std::thread::Builder::new().name("store-writer".to_owned());
    thread
        .spawn(move || runtime.block_on(writer.run()))
        .map_err(stopped)
}

/// A new file is only there after a crash when its directory was synced too.
/// Makes the name of a new file durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::Stopped {
        detail: format!("cannot sync `{}`: {error}", directory.display()),
    })
}

fn ended() -> StoreError {
    StoreError::Stopped {
        detail: "the engine has been closed".to_owned(),
    }
}
