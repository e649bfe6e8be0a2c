//! Books that nodes keep on their disks: for beacons that compare them with the node, and for schedules that need no server.
//!
//! ```text
//! BookUse ──StandingBooks: read and compiled once for each state of the book──▶ StandingRound::order(node) ──▶ RunOrder
//! ```
//!
//! Nothing secret is in such an order. A node gets the files of books that were ordered for it, and of no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portolan_agent::wire::RunOrder;
use portolan_fleet::{Book, TagSelection, bind_inputs, needs_others};
use portolan_kinds::wire::Source;
use portolan_kinds::{KindObject, find_kind};
use portolan_object::Selector;
use prost::Message as _;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::files::FileShelf;
use super::record::StoredBook;
use super::request::{about, compile_book, read_inputs};
use super::target::{FleetView, Narrowing};
use super::variables::Variables;
use crate::error::ApiError;
use crate::keys::ObjectKey;
use crate::live::{is_passing, moment};
use crate::server::{ApiServer, Target};

/// When a book that could not be read is read again.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// Bytes of all books of a node in one message.
const MAX_BYTES: usize = 2 << 20;

/// A book as somebody wants nodes to keep it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BookName {
    pub(crate) namespace: String,
    pub(crate) book: String,
    /// The text of a TaskBook that is not on the server.
    pub(crate) text: Option<String>,
}

/// What nodes do with a book.
#[derive(Debug, Clone)]
pub(crate) struct BookUse {
    pub(crate) name: BookName,
    pub(crate) inputs: Map<String, Value>,
    /// How the nodes of the book are narrowed.
    pub(crate) selector: Option<String>,
    pub(crate) nodes: Vec<String>,
    pub(crate) is_check: bool,
}

/// Why a node has no book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unready {
    /// It is being read.
    Reading,
    /// It cannot be read at the moment.
    NotNow(String),
    /// It cannot be used on the node.
    Refused(String),
    /// It is for other nodes.
    Elsewhere(String),
}

/// The books that nodes keep.
pub(crate) struct StandingBooks {
    server: Arc<ApiServer>,
    known: BTreeMap<BookName, KnownBook>,
    tasks: JoinSet<(BookName, String, Result<StandingBook, Unready>)>,
}

struct KnownBook {
    /// Tells the states of the book apart.
    version: String,
    tried: Instant,
    book: Result<Arc<StandingBook>, Unready>,
}

/// A book that was read and compiled.
struct StandingBook {
    stored: StoredBook,
    compiled: Book,
}

/// The files that nodes may ask for without a run.
#[derive(Default)]
pub(crate) struct KeptFiles(Mutex<KeptFilesInner>);

#[derive(Default)]
struct KeptFilesInner {
    /// By the uuid of the node and the digest: the namespace.
    nodes: BTreeMap<String, BTreeMap<String, String>>,
    /// Namespaces and digests.
    all: BTreeSet<(String, String)>,
}

impl KeptFiles {
    /// Takes note of the books of a node: their namespaces and their files.
    pub(crate) fn keep<'b>(
        &self,
        node: &str,
        books: impl IntoIterator<Item = (&'b str, &'b RunOrder)>,
    ) {
        let books = books.into_iter();
        let files = books.flat_map(|(namespace, book)| {
            let digests = book.files.values();
            digests.map(move |digest| (digest.clone(), namespace.to_owned()))
        });
        self.0.lock().nodes.insert(node.to_owned(), files.collect());
    }

    /// Forgets nodes that are not connected.
    pub(crate) fn retain(&self, connected: &BTreeSet<String>) {
        self.0
            .lock()
            .nodes
            .retain(|node, _| connected.contains(node));
    }

    /// The namespace of a file that a node may have.
    pub(super) fn namespace_of(&self, node: &str, digest: &str) -> Option<String> {
        self.0.lock().nodes.get(node)?.get(digest).cloned()
    }

    /// All files that some node keeps, with their namespaces.
    pub(super) fn all(&self) -> BTreeSet<(String, String)> {
        self.0.lock().all.clone()
    }
}

impl StandingBooks {
    pub(crate) fn new(server: Arc<ApiServer>) -> Self {
        Self {
            server,
            known: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Begins to read the books that are wanted and new, and forgets the others. Gives when to look again, if some cannot be
    /// read now.
    pub(crate) fn want(&mut self, wanted: &BTreeSet<BookName>) -> Option<Instant> {
        self.known.retain(|name, _| wanted.contains(name));
        for name in wanted {
            let version = match self.version(name) {
                Ok(version) => version,
                Err(refused) => {
                    self.learn(name.clone(), String::new(), Err(refused));
                    continue;
                }
            };
            let is_known = self.known.get(name).is_some_and(|known| {
                let is_stale = matches!(known.book, Err(Unready::NotNow(_)))
                    && known.tried.elapsed() >= TRY_AGAIN;
                known.version == version && !is_stale
            });
            if is_known {
                continue;
            }
            self.learn(name.clone(), version.clone(), Err(Unready::Reading));
            let (server, name) = (Arc::clone(&self.server), name.clone());
            self.tasks.spawn(async move {
                let read = server.standing_book(&name).await;
                (name, version, read)
            });
        }
        let failed = self.known.values();
        let failed = failed.filter(|known| matches!(known.book, Err(Unready::NotNow(_))));
        failed.map(|known| known.tried + TRY_AGAIN).min()
    }

    /// Waits until a book was read.
    pub(crate) async fn next(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok((name, version, read))) => {
                // One that has changed meanwhile is being read again.
                if self
                    .known
                    .get(&name)
                    .is_some_and(|known| known.version == version)
                {
                    self.learn(name, version, read.map(Arc::new));
                }
                self.keep_files();
            }
            Some(Err(error)) => {
                tracing::error!(%error, "a book for nodes was not read");
                let unread = self.known.values_mut();
                for known in unread.filter(|known| matches!(known.book, Err(Unready::Reading))) {
                    let why = "the server failed; its log says why".to_owned();
                    known.book = Err(Unready::NotNow(why));
                }
            }
            None => std::future::pending().await,
        }
    }

    fn learn(&mut self, name: BookName, version: String, book: Result<Arc<StandingBook>, Unready>) {
        let known = KnownBook {
            version,
            tried: Instant::now(),
            book,
        };
        self.known.insert(name, known);
    }

    fn keep_files(&self) {
        let books = self.known.iter().filter_map(|(name, known)| {
            let book = known.book.as_ref().ok()?;
            Some((name, book))
        });
        let files = books.flat_map(|(name, book)| {
            let digests = book.stored.files.values();
            digests.map(|digest| (name.namespace.clone(), digest.clone()))
        });
        self.server.kept_files.0.lock().all = files.collect();
    }

    /// What tells the states of a book apart.
    fn version(&self, name: &BookName) -> Result<String, Unready> {
        if name.text.is_some() {
            return Ok("sent".to_owned());
        }
        let missing = || Unready::Refused(format!("there is no TaskBook {}", name.book));
        let kind = find_kind("TaskBook").ok_or_else(missing)?;
        let key = ObjectKey::new(kind, Some(&name.namespace), &name.book);
        let book = self.server.cache.object(&key).ok_or_else(missing)?;
        let metadata = &book.metadata;
        let commit = metadata.source.as_ref().map(Source::commit);
        let commit = commit.unwrap_or_default();
        Ok(format!(
            "{} {} {commit}",
            metadata.uuid(),
            metadata.generation()
        ))
    }

    /// The books for nodes as the fleet is now.
    pub(crate) fn round(&self) -> StandingRound<'_> {
        StandingRound {
            books: self,
            view: FleetView::new(&self.server.cache),
            variables: BTreeMap::new(),
            targets: BTreeMap::new(),
            left: MAX_BYTES,
        }
    }
}

impl ApiServer {
    async fn standing_book(&self, name: &BookName) -> Result<StandingBook, Unready> {
        let read = self.read_standing_book(name).await;
        let book = read.map_err(|error| {
            if is_passing(&error) {
                Unready::NotNow(error.message)
            } else {
                Unready::Refused(error.message)
            }
        })?;
        if book.compiled.run.is_suspended {
            let why = format!("TaskBook {} is suspended", name.book);
            return Err(Unready::Refused(why));
        }
        match needs_others(&book.compiled) {
            Some(why) => {
                let why = format!("nodes cannot keep TaskBook {}: {why}", name.book);
                Err(Unready::Refused(why))
            }
            None => Ok(book),
        }
    }

    async fn read_standing_book(&self, name: &BookName) -> Result<StandingBook, ApiError> {
        let shelf = FileShelf {
            store: self.objects.store.clone(),
            namespace: name.namespace.clone(),
        };
        let selection = TagSelection::default();
        let stored = match &name.text {
            Some(text) => StoredBook::of_text(&name.book, text.clone()),
            None => {
                let kind = find_kind("TaskBook");
                let target = Target {
                    kind: kind.ok_or_else(|| ApiError::internal("no kind TaskBook"))?,
                    namespace: Some(name.namespace.clone()),
                    name: Some(name.book.clone()),
                };
                self.stored_book(&target, &shelf, &selection).await?.0
            }
        };
        shelf.touch(&stored.files).await?;
        let compiled = compile_book(&stored, &selection, &BTreeSet::new(), &shelf).await?;
        Ok(StandingBook { stored, compiled })
    }
}

/// The books for nodes as the fleet is at one moment.
pub(crate) struct StandingRound<'b> {
    books: &'b StandingBooks,
    view: FleetView,
    /// By namespace.
    variables: BTreeMap<String, Variables>,
    /// The uuids of the nodes of each use of a book.
    targets: BTreeMap<String, Result<BTreeSet<String>, String>>,
    /// Bytes that the node may still get.
    left: usize,
}

impl StandingRound<'_> {
    /// Begins with another node.
    pub(crate) fn begin_node(&mut self) {
        self.left = MAX_BYTES;
    }

    /// The book as the node keeps it.
    pub(crate) fn order(
        &mut self,
        wanted: &BookUse,
        node: &KindObject,
    ) -> Result<RunOrder, Unready> {
        let known = self.books.known.get(&wanted.name);
        let known = known.ok_or(Unready::Reading)?;
        let book = known.book.clone()?;
        let compiled = &book.compiled;
        let targets = self.targets_of(compiled, wanted);
        if !targets
            .map_err(Unready::Refused)?
            .contains(node.metadata.uuid())
        {
            let why = format!(
                "node {} is not among the nodes of TaskBook {}",
                node.name(),
                wanted.name.book
            );
            return Err(Unready::Elsewhere(why));
        }
        let order = self.order_of(&book, wanted, node);
        let order = order.map_err(Unready::Refused)?;
        let bytes = order.encoded_len();
        if bytes > self.left {
            let why = format!(
                "the books that the node keeps have more than {} MiB",
                MAX_BYTES >> 20
            );
            return Err(Unready::Refused(why));
        }
        self.left -= bytes;
        Ok(order)
    }

    fn order_of(
        &mut self,
        book: &StandingBook,
        wanted: &BookUse,
        node: &KindObject,
    ) -> Result<RunOrder, String> {
        let compiled = &book.compiled;
        let given = read_inputs(compiled, &wanted.inputs);
        let inputs = bind_inputs(&compiled.inputs, &given).map_err(|faults| {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            all.join("; ")
        })?;
        let (server, namespace) = (&self.books.server, &wanted.name.namespace);
        let now = moment(server.objects.time.now());
        let variables = self
            .variables
            .entry(namespace.clone())
            .or_insert_with(|| Variables::new(&server.cache, namespace, now));
        let seen = variables.of(&self.view, node, &compiled.vars);
        let seen = seen.map_err(|error| error.message)?;
        if let Some(name) = seen.unopened.first() {
            return Err(format!(
                "nodes cannot keep TaskBook {}: the variable `{name}` is secret",
                wanted.name.book
            ));
        }
        let unread = variables.unread_for(&self.view, node);
        if let Some(variable) = unread.filter(|_| !compiled.vars.is_empty()) {
            return Err(format!(
                "nodes cannot keep TaskBook {}: it uses variables, and {variable} has values in files",
                wanted.name.book
            ));
        }
        let values = json!({
            "inputs": inputs, "variables": seen.values, "node": about(node), "isFirst": true,
        });
        Ok(RunOrder {
            file: book.stored.file.clone(),
            book: book.stored.text.clone().into(),
            digest: compiled.digest.to_string(),
            is_check: wanted.is_check,
            values: values.to_string().into(),
            files: book.stored.files.clone().into_iter().collect(),
            ..RunOrder::default()
        })
    }

    fn targets_of(
        &mut self,
        compiled: &Book,
        wanted: &BookUse,
    ) -> Result<&BTreeSet<String>, String> {
        let name = &wanted.name;
        let key = json!([
            name.namespace,
            name.book,
            name.text,
            wanted.selector,
            wanted.nodes
        ]);
        let view = &self.view;
        let targets = self.targets.entry(key.to_string()).or_insert_with(|| {
            let selector = wanted.selector.as_deref().map(str::parse::<Selector>);
            let narrowing = Narrowing {
                selector: selector.transpose().map_err(|error| error.to_string())?,
                nodes: wanted.nodes.clone(),
            };
            let found = view.targets(&name.namespace, &compiled.run.target, &narrowing, "");
            let found = found.map_err(|error| error.message)?;
            let uuids = found.iter().map(|node| node.metadata.uuid().to_owned());
            Ok(uuids.collect())
        });
        targets.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gets_only_files_of_its_own_books() {
        let files = KeptFiles::default();
        let book = RunOrder {
            files: [("a.txt".to_owned(), "digest".to_owned())].into(),
            ..RunOrder::default()
        };
        files.keep("one", [("shop", &book)]);
        files.keep("two", []);
        assert_eq!(files.namespace_of("one", "digest").as_deref(), Some("shop"));
        assert_eq!(files.namespace_of("one", "other"), None);
        assert_eq!(files.namespace_of("two", "digest"), None);
        files.retain(&BTreeSet::new());
        assert_eq!(files.namespace_of("one", "digest"), None);
    }
}
