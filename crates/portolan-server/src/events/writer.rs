//! Writes events together: the first after a quiet second at once, the others when a second is over.
//!
//! Who creates an event waits until its record is on the disk. A record of many namespaces compares that each of them still
//! exists, so no event outlives the deletion of its namespace.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use portolan_store::{Compare, ShardLayout, Transaction};
use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::index::record_key;
use super::packed::pack;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::objects::{Objects, already_exists, shown};
use crate::record::StoredKind;

/// Between two records of a server, unless one is full.
const EVERY: Duration = Duration::from_secs(1);
/// Events that may wait to be taken; more wait to be put in.
const QUEUE: usize = 4_096;
/// The size at which a record is full. A value of the store may be twice as large, so one more event fits.
const FULL: usize = 256 << 10;
/// The most bytes of one event.
const MAX_EVENT: usize = 64 << 10;
/// The most namespaces of one record: each is a compare, and a transaction has room for 120.
const MAX_NAMESPACES: usize = 100;
/// How often a record is written again after a compare failed.
const ATTEMPTS: usize = 4;
/// How long an answer waits until the cache knows the event.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// Takes events; clones write to the same records.
#[derive(Clone)]
pub(crate) struct EventWriter {
    queue: mpsc::Sender<NewEvent>,
    layout: ShardLayout,
}

/// An event that is to be written, and who waits for it.
struct NewEvent {
    event: StoredKind,
    size: usize,
    /// What must hold for a controller to write.
    fence: Option<Compare>,
    reply: oneshot::Sender<Result<StoredKind, ApiError>>,
}

/// Writes what an [`EventWriter`] takes.
pub(crate) struct EventBatches {
    objects: Objects,
    cache: Cache,
    layout: ShardLayout,
    /// The name of this process, which no other writes under.
    process: String,
    /// How many records it has written.
    written: u64,
    queue: mpsc::Receiver<NewEvent>,
}

impl EventWriter {
    pub(crate) fn new(
        objects: Objects,
        cache: Cache,
        layout: ShardLayout,
        process: &str,
    ) -> (Self, EventBatches) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let batches = EventBatches {
            objects,
            cache,
            layout,
            process: process.to_owned(),
            written: 0,
            queue: receiver,
        };
        (Self { queue, layout }, batches)
    }

    /// Writes an event and waits until it is on the disk.
    pub(crate) async fn write(
        &self,
        event: StoredKind,
        fence: Option<Compare>,
    ) -> Result<StoredKind, ApiError> {
        let size = event.to_message().encoded_len();
        if size > MAX_EVENT {
            let message = format!("an event has at most {MAX_EVENT} bytes, and this one {size}");
            return Err(ApiError::bad_request(message));
        }
        let ended = || ApiError::unavailable("this server is ending");
        let (reply, answer) = oneshot::channel();
        let new = NewEvent {
            event,
            size,
            fence,
            reply,
        };
        self.queue.send(new).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// The shard of a namespace.
    pub(crate) fn shard(&self, namespace: &str) -> u32 {
        self.layout.of(namespace)
    }
}

impl EventBatches {
    /// Writes until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut next = Instant::now();
        while let Some(first) = self.queue.recv().await {
            let gathered = self.gather(first, next).await;
            next = Instant::now() + EVERY;
            for batch in Batch::split(gathered, self.layout) {
                self.write(batch).await;
            }
        }
    }

    /// What waits already, and what comes until a time or until a record is full.
    async fn gather(&mut self, first: NewEvent, until: Instant) -> Vec<NewEvent> {
        let mut size = first.size;
        let mut gathered = vec![first];
        while size < FULL
            && let Ok(Some(new)) = tokio::time::timeout_at(until, self.queue.recv()).await
        {
            size += new.size;
            gathered.push(new);
        }
        gathered
    }

    /// Writes a record and answers everybody who waits for it.
    async fn write(&mut self, mut batch: Batch) {
        batch.refuse_equal_names();
        self.written += 1;
        let second = self.objects.time.now().as_secs();
        let key = record_key(batch.shard, second, &self.process, self.written);
        for _ in 0..ATTEMPTS {
            let gates = self.gates(&mut batch).await;
            if batch.events.is_empty() {
                return;
            }
            let events = batch.events.iter().map(|new| &new.event);
            let mut transaction = Transaction::create(key.clone(), pack(events));
            for compare in gates.into_iter().chain(batch.fence.clone()) {
                transaction = transaction.when(compare);
            }
            match self.objects.store.commit(transaction).await {
                Ok(outcome) if outcome.succeeded => {
                    self.cache.wait_for(outcome.revision, CACHE_WAIT).await;
                    return batch.answer(outcome.revision, &self.objects);
                }
                // A namespace was deleted just now, or this server does not own its shard any more.
                Ok(_) => {}
                Err(error) => return batch.refuse(&ApiError::from(error)),
            }
        }
        batch.refuse(&ApiError::unavailable(
            "what must hold for the event to be written does not",
        ));
    }

    /// The compares by which the namespaces of a batch exist. Events of those that do not are refused.
    async fn gates(&self, batch: &mut Batch) -> Vec<Compare> {
        let mut gates: BTreeMap<String, Result<Compare, ApiError>> = BTreeMap::new();
        for new in &batch.events {
            let namespace = new.namespace();
            if !gates.contains_key(namespace) {
                let gate = self.objects.open_gate(namespace).await;
                gates.insert(namespace.to_owned(), gate);
            }
        }
        batch.refuse_where(|new| match gates.get(new.namespace()) {
            Some(Err(error)) => Some(error.clone()),
            _ => None,
        });
        gates.into_values().filter_map(Result::ok).collect()
    }
}

impl NewEvent {
    fn namespace(&self) -> &str {
        self.event.object.namespace().unwrap_or_default()
    }
}

/// Events that one transaction writes.
struct Batch {
    shard: u32,
    fence: Option<Compare>,
    namespaces: HashSet<String>,
    events: Vec<NewEvent>,
}

impl Batch {
    /// Splits what came together by shard and by what must hold, and where a record would have too many namespaces.
    fn split(gathered: Vec<NewEvent>, layout: ShardLayout) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        for new in gathered {
            let shard = layout.of(new.namespace());
            let fits = |batch: &&mut Self| {
                batch.shard == shard
                    && batch.fence == new.fence
                    && (batch.namespaces.len() < MAX_NAMESPACES
                        || batch.namespaces.contains(new.namespace()))
            };
            if let Some(batch) = batches.iter_mut().find(fits) {
                batch.namespaces.insert(new.namespace().to_owned());
                batch.events.push(new);
            } else {
                batches.push(Self {
                    shard,
                    fence: new.fence.clone(),
                    namespaces: HashSet::from([new.namespace().to_owned()]),
                    events: vec![new],
                });
            }
        }
        batches
    }

    /// Refuses all but the first event of a name.
    fn refuse_equal_names(&mut self) {
        let mut names = HashSet::new();
        self.refuse_where(|new| {
            let name = (
                new.namespace().to_owned(),
                new.event.object.name().to_owned(),
            );
            (!names.insert(name)).then(|| already_exists(&shown(&new.event.object)))
        });
    }

    fn refuse_where(&mut self, mut why: impl FnMut(&NewEvent) -> Option<ApiError>) {
        let events = std::mem::take(&mut self.events);
        for new in events {
            match why(&new) {
                // Who does not wait any more is not told.
                Some(error) => drop(new.reply.send(Err(error))),
                None => self.events.push(new),
            }
        }
    }

    fn refuse(mut self, error: &ApiError) {
        self.refuse_where(|_| Some(error.clone()));
    }

    fn answer(self, revision: u64, objects: &Objects) {
        for new in self.events {
            let mut event = new.event;
            event.spec_revision = revision;
            event.create_revision = revision;
            event.set_version(&objects.incarnation);
            let _ = new.reply.send(Ok(event));
        }
    }
}
