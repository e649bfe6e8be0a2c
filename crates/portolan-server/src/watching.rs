//! A client's watch: the objects that exist, then every change of those it selects, with bookmarks between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portolan_kinds::{KindDefinition, KindObject};
use portolan_store::{Position, Revision};
use prost::Message as _;
use serde_json::json;
use tokio::time::Instant;

use crate::cache::{Cache, Change, Found, Side};
use crate::field_selector::ObjectFilter;
use crate::object_message::object_message;

/// How often a client is told how far it is when nothing happens.
pub(crate) const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// Changes that are looked up at a time.
const STEP: usize = 256;

/// What a watch selects.
#[derive(Debug, Clone)]
pub(crate) struct WatchQuery {
    pub(crate) kind: &'static KindDefinition,
    /// `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) filter: ObjectFilter,
}

/// What a watch tells.
#[derive(Debug, Clone)]
pub(crate) struct WatchMessage {
    /// What happened.
    pub(crate) kind: MessageKind,
    /// What it happened to.
    object: Told,
    /// Where a later watch goes on.
    pub(crate) position: Position,
}

/// What a message is about.
#[derive(Debug, Clone)]
enum Told {
    /// A change, whose bytes all watches share.
    Change(Arc<Change>),
    /// An object that exists when the watch begins.
    Object(Arc<KindObject>),
    /// JSON that is no object.
    Note(Bytes),
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Added,
    Modified,
    Deleted,
    /// Everything up to here has been told.
    Bookmark,
    /// History is gone: the last message.
    Expired,
}

impl MessageKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Expired => "EXPIRED",
        }
    }
}

impl WatchMessage {
    /// One line of JSON.
    pub(crate) fn line(&self) -> Bytes {
        let head = format!("{{\"type\":\"{}\",\"object\":", self.kind.word());
        let object = match &self.object {
            Told::Change(change) => change.json(self.position.incarnation),
            Told::Object(object) => object.to_json().to_string().into(),
            Told::Note(json) => json.clone(),
        };
        Bytes::from([head.as_bytes(), &object, b"}\n"].concat())
    }

    /// The bytes of the object's message; `None` if it is about no object.
    pub(crate) fn object_message(&self) -> Option<Bytes> {
        match &self.object {
            Told::Change(change) => Some(change.message(self.position.incarnation)),
            Told::Object(object) => Some(object_message(object).encode_to_vec().into()),
            Told::Note(_) => None,
        }
    }
}

/// A watch under way.
pub(crate) struct ObjectWatch {
    cache: Cache,
    query: WatchQuery,
    told: Revision,
    ready: VecDeque<WatchMessage>,
    bookmark_at: Instant,
    has_ended: bool,
}

impl ObjectWatch {
    /// A watch of the changes after a revision.
    pub(crate) fn after(cache: Cache, query: WatchQuery, revision: Revision) -> Self {
        Self {
            cache,
            query,
            told: revision,
            ready: VecDeque::new(),
            bookmark_at: Instant::now() + BOOKMARK_EVERY,
            has_ended: false,
        }
    }

    /// A watch that first tells the objects of a list, read at a revision, and then a bookmark.
    pub(crate) fn initial(
        cache: Cache,
        query: WatchQuery,
        objects: Vec<KindObject>,
        revision: Revision,
    ) -> Self {
        let mut watch = Self::after(cache, query, revision);
        for object in objects {
            let message = WatchMessage {
                kind: MessageKind::Added,
                object: Told::Object(Arc::new(object)),
                position: watch.position(revision),
            };
            watch.ready.push_back(message);
        }
        let bookmark = watch.bookmark();
        watch.ready.push_back(bookmark);
        watch
    }

    /// The next message; `None` after `Expired`.
    pub(crate) async fn next(&mut self) -> Option<WatchMessage> {
        let mut revisions = self.cache.subscribe();
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.bookmark_at = Instant::now() + BOOKMARK_EVERY;
                return Some(message);
            }
            if self.has_ended {
                return None;
            }
            revisions.borrow_and_update();
            self.look();
            if !self.ready.is_empty() {
                continue;
            }
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() {
                    return None;
                },
                () = tokio::time::sleep_until(self.bookmark_at) => {
                    self.bookmark_at = Instant::now() + BOOKMARK_EVERY;
                    return Some(self.bookmark());
                }
            }
        }
    }

    /// The last bookmark, for a server that ends.
    pub(crate) fn bookmark(&self) -> WatchMessage {
        let position = self.position(self.told);
        let object = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": self.query.kind.name,
            "metadata": {"resourceVersion": position.to_string()},
        });
        WatchMessage {
            kind: MessageKind::Bookmark,
            object: Told::Note(object.to_string().into()),
            position,
        }
    }

    fn look(&mut self) {
        let (query, incarnation) = (&self.query, self.cache.incarnation());
        let found = self.cache.changes_after(self.told, STEP, |change| {
            change.kind == query.kind && query.selects(change, incarnation).is_some()
        });
        match found {
            Found::Expired => {
                self.has_ended = true;
                self.ready.push_back(self.expired());
            }
            Found::Changes(changes, told) => {
                let messages = changes.iter().filter_map(|change| self.message(change));
                let messages: Vec<WatchMessage> = messages.collect();
                self.ready.extend(messages);
                self.told = told;
            }
        }
    }

    fn message(&self, change: &Arc<Change>) -> Option<WatchMessage> {
        Some(WatchMessage {
            kind: self.query.selects(change, self.cache.incarnation())?,
            object: Told::Change(Arc::clone(change)),
            position: self.position(change.revision),
        })
    }

    fn expired(&self) -> WatchMessage {
        let newest = self.position(self.cache.revision());
        let error = json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Error", "status": 410, "reason": "Expired",
            "error": "the history after this revision is gone",
            "hint": "list again, and watch from the revision of the list",
            "details": {"resourceVersion": newest.to_string()},
        });
        WatchMessage {
            kind: MessageKind::Expired,
            object: Told::Note(error.to_string().into()),
            position: newest,
        }
    }

    fn position(&self, revision: Revision) -> Position {
        Position {
            incarnation: self.cache.incarnation(),
            revision,
        }
    }
}

impl WatchQuery {
    /// What a change means to this watch: an object that comes into the selection is added, one that leaves it is deleted.
    fn selects(&self, change: &Change, incarnation: u64) -> Option<MessageKind> {
        let namespace = self.namespace.as_deref();
        if namespace.is_some() && change.namespace.as_deref() != namespace {
            return None;
        }
        let selects_all = self.filter.selects_all();
        let is_in = |side: Side| {
            if selects_all {
                return change.exists(side);
            }
            let object = change.object(side, incarnation);
            object.is_some_and(|object| self.filter.matches(&object))
        };
        match (is_in(Side::Before), is_in(Side::After)) {
            (false, true) => Some(MessageKind::Added),
            (true, true) => Some(MessageKind::Modified),
            (true, false) => Some(MessageKind::Deleted),
            (false, false) => None,
        }
    }
}
