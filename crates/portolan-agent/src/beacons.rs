//! What a node watches by itself, and tells the server.
//!
//! ```text
//! server ──BeaconOrders──▶ orders.json ──▶ Watching: looks every interval, and when the kernel hints at a change
//!                                             │ BeaconState::read: n of m, on change, every
//!                                             ▼
//!                                        BeaconSpool on the disk ──BeaconEvents──▶ server ──BeaconAck──▶ forgotten
//! ```
//!
//! Watching goes on while no server is there and after a restart without one, but not after the certificate of the node
//! has ended. An event is on the disk before it is sent, and is sent until the server has it; the server knows each by its
//! spool and number.

mod check;
mod drift;
mod file_watch;
mod order;
mod record_log;
mod spool;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_modules::Root;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use spool::{BeaconNotice, BeaconSpool};

use crate::activity::NodeActivity;
use crate::data::{AgentData, DataError};
use crate::disk;
use crate::kept_book::KeptBook;
use crate::runs::FileStore;
use crate::wire;
use crate::wire::agent_message::Message;
use order::KeptOrder;

/// The most events of a message, and about how many bytes they may have.
const MOST_EVENTS: usize = 1_000;
const MOST_BYTES: usize = 512 << 10;

/// How long an answer to events may take before they are sent again.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// The shortest time between two messages about what beacons see.
const STATES_EVERY: Duration = Duration::from_secs(1);

/// The beacons of a node.
pub(crate) struct NodeBeacons {
    root: Arc<Root>,
    /// The files of books.
    files: Arc<FileStore>,
    /// What runs are changing.
    activity: Arc<NodeActivity>,
    orders_file: Utf8PathBuf,
    inner: Mutex<Inner>,
    /// Told when there are other orders.
    ordered: Notify,
    /// Told when there may be something to send.
    told: Notify,
}

struct Inner {
    spool: BeaconSpool,
    orders: Arc<[KeptOrder]>,
    /// By namespace and name.
    sights: BTreeMap<(String, String), wire::BeaconSight>,
    /// Counts the changes of `sights`.
    sights_version: u64,
    /// Until when the certificate of the node is valid, since 1970.
    expires: Duration,
}

/// What was sent on one stream.
#[derive(Debug, Default)]
pub(crate) struct BeaconCursor {
    /// The last number of events that have no answer yet, and when they were sent.
    unanswered: Option<(u64, Instant)>,
    sights: u64,
    sights_sent: Option<Instant>,
}

impl NodeBeacons {
    /// Goes on where the agent was when it ended.
    pub(crate) fn open(
        data: &AgentData,
        root: Arc<Root>,
        files: Arc<FileStore>,
        activity: Arc<NodeActivity>,
    ) -> Result<Self, DataError> {
        let directory = data.directory().join("beacons");
        let failed = |source| DataError::File {
            path: directory.clone(),
            source,
        };
        let spool = BeaconSpool::open(&directory).map_err(failed)?;
        let orders_file = directory.join("orders.json");
        let orders: Vec<KeptOrder> = match std::fs::read(&orders_file) {
            // The server says it again; until then nothing is watched that cannot be read.
            Ok(text) => serde_json::from_slice(&text).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        keep_files(&files, &orders);
        Ok(Self {
            root,
            files,
            activity,
            orders_file,
            inner: Mutex::new(Inner {
                spool,
                orders: orders.into(),
                sights: BTreeMap::new(),
                sights_version: 0,
                expires: Duration::MAX,
            }),
            ordered: Notify::new(),
            told: Notify::new(),
        })
    }

    /// Tells something that the agent noticed itself.
    pub(crate) fn tell(&self, notice: &BeaconNotice) {
        let told = self.inner().spool.tell(std::slice::from_ref(notice));
        if let Err(error) = told {
            tracing::warn!(%error, summary = notice.summary, "an event cannot be written");
        }
        self.told.notify_one();
    }

    /// Nothing is watched after this time.
    pub(crate) fn set_expiry(&self, expires: Duration) {
        self.inner().expires = expires;
    }

    /// Takes what the server wants to be watched from now on. Gives the digests of the files that are needed for it.
    pub(crate) fn order(&self, orders: wire::BeaconOrders) -> BTreeSet<String> {
        let mut inner = self.inner();
        let orders = KeptOrder::read(orders, &inner.orders);
        let needed = keep_files(&self.files, &orders);
        if *inner.orders == *orders {
            return needed;
        }
        let text = serde_json::to_vec(&orders).unwrap_or_default();
        // Without the file, the server has to say it again after a restart.
        if let Err(error) = disk::write_durable(&self.orders_file, &text) {
            tracing::warn!(%error, "what is to be watched cannot be kept");
        }
        inner.orders = orders.into();
        drop(inner);
        self.ordered.notify_one();
        needed
    }

    /// Takes the server's word that it has events.
    pub(crate) fn acknowledge(&self, ack: &wire::BeaconAck, cursor: &mut BeaconCursor) {
        let mut inner = self.inner();
        if ack.spool != inner.spool.id() {
            return;
        }
        if let Err(error) = inner.spool.delivered(ack.number) {
            tracing::warn!(%error, "delivered events cannot be forgotten yet");
        }
        if cursor
            .unanswered
            .is_some_and(|(number, _)| number <= ack.number)
        {
            cursor.unanswered = None;
        }
    }

    /// Waits until there is something to send.
    pub(crate) async fn next_message(&self, cursor: &mut BeaconCursor) -> Message {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(message) = self.message(cursor) {
                return message;
            }
            let now = Instant::now();
            let answer = cursor.unanswered.map(|(_, sent)| sent + ANSWER_TIME);
            let states = cursor.sights_sent.map(|sent| sent + STATES_EVERY);
            let again = [answer, states].into_iter().flatten();
            let again = again.filter(|time| *time > now).min();
            let again = again.unwrap_or(now + ANSWER_TIME);
            tokio::select! {
                () = told => {}
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }

    fn message(&self, cursor: &mut BeaconCursor) -> Option<Message> {
        let now = Instant::now();
        let mut inner = self.inner();
        if cursor
            .unanswered
            .is_none_or(|(_, sent)| sent + ANSWER_TIME <= now)
        {
            if let Err(error) = inner.spool.tell_loss(Timestamp::now()) {
                tracing::warn!(%error, "lost events cannot be told yet");
            }
            let events = inner.spool.after(0, MOST_EVENTS, MOST_BYTES);
            if let Some((last, _)) = events.last() {
                cursor.unanswered = Some((*last, now));
                let events = events.into_iter();
                let events = events.map(|(number, content)| wire::BeaconEvent {
                    number,
                    content: content.into(),
                });
                return Some(Message::BeaconEvents(wire::BeaconEvents {
                    spool: inner.spool.id().to_owned(),
                    events: events.collect(),
                }));
            }
            cursor.unanswered = None;
        }
        let may_tell = cursor
            .sights_sent
            .is_none_or(|sent| sent + STATES_EVERY <= now);
        if cursor.sights != inner.sights_version && may_tell {
            cursor.sights = inner.sights_version;
            cursor.sights_sent = Some(now);
            let states = inner.sights.values().cloned().collect();
            return Some(Message::BeaconStates(wire::BeaconStates { states }));
        }
        None
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the files of the books that are watched; their digests.
fn keep_files(files: &FileStore, orders: &[KeptOrder]) -> BTreeSet<String> {
    let books = orders.iter().filter_map(|order| order.book.as_ref());
    let digests = KeptBook::digests(books);
    files.keep_for("beacons", digests.clone());
    digests
}
