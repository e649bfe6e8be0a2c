//! Runs TaskBooks as their `reconcile` says, on the server that owns the shard: when a book changed, when nodes joined, and
//! to look for drift.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_digest::Digest;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::{Ownership, StoreError};
use portolan_trigger::{
    Reconcile, ReconcileMode, ReconcileRun, ReconcileSight, ReconcileSpec, ReconcileState,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::records::{LiveRecords, LiveWrite, book, books, uuid_below};
use super::{OwnershipLost, is_passing, moment};
use crate::error::ApiError;
use crate::events::NewEvent;
use crate::runs::{BookNodes, FiredRun, FiredRunOutcome, MadeBy, is_over};
use crate::server::ApiServer;

/// The name that runs of `reconcile` are made under.
const USER: &str = "system:reconcile";

/// How often books and nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs TaskBooks as their `reconcile` says.
pub(crate) struct ReconcileController {
    pub(crate) server: Arc<ApiServer>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// What an owner remembers.
struct OwnedBooks {
    ownership: Ownership,
    records: LiveRecords,
    /// By the uuid of the book.
    states: BTreeMap<String, ReconcileState>,
}

impl ReconcileController {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            if let Some(ownership) = ownership {
                let owned = OwnedBooks {
                    ownership,
                    records: LiveRecords::default(),
                    states: BTreeMap::new(),
                };
                let OwnershipLost = self.look_after(owned).await;
            } else if self.owned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn look_after(&mut self, mut owned: OwnedBooks) -> OwnershipLost {
        let mut is_read = false;
        loop {
            if !is_read {
                is_read = self.read(&mut owned).await;
            }
            if is_read && let Err(OwnershipLost) = self.round(&mut owned).await {
                tokio::time::sleep(LOOK_EVERY).await;
                return OwnershipLost;
            }
            tokio::select! {
                _ = self.owned.changed() => return OwnershipLost,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Reads what owners before remembered; false if that has to be tried again.
    async fn read(&self, owned: &mut OwnedBooks) -> bool {
        let store = &self.server.objects.store;
        let stored: Result<Vec<(String, ReconcileState)>, StoreError> =
            owned.records.read_all(store, books()).await;
        match stored {
            Ok(stored) => {
                let states = stored.into_iter().filter_map(|(key, state)| {
                    let uuid = uuid_below(&books(), &key)?.to_owned();
                    Some((uuid, state))
                });
                owned.states = states.collect();
                true
            }
            Err(error) => {
                tracing::warn!(%error, "what is remembered about books cannot be read yet");
                false
            }
        }
    }

    async fn round(&self, owned: &mut OwnedBooks) -> Result<(), OwnershipLost> {
        let books = self.objects("TaskBook");
        let books: Vec<Arc<KindObject>> = books
            .into_iter()
            .filter(|book| book.spec.get("reconcile").is_some())
            .collect();
        self.forget(owned, &books).await?;
        if books.is_empty() {
            return Ok(());
        }
        let (nodes, active) = (BookNodes::new(&self.server.cache), self.active_books());
        for book in &books {
            let is_stopped = book.spec["suspend"] == true;
            if is_stopped || book.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let nodes = nodes.of(book);
            let sight = ReconcileSight {
                generation: book.metadata.generation(),
                nodes: in_states(&nodes, &["ready"]).collect(),
                silent: in_states(&nodes, &["suspect", "link-lost"])
                    .map(|(uuid, _)| uuid)
                    .collect(),
                is_active: active.contains(book.metadata.uuid()),
            };
            match self.look_at(owned, book, &sight).await {
                Ok(true) => {}
                Ok(false) => return Err(OwnershipLost),
                Err(error) => {
                    tracing::warn!(%error, book = book.name(), "a book cannot be reconciled now");
                }
            }
        }
        Ok(())
    }

    /// Makes the run of a book that is due. `false` when this server does not own the shard any more.
    async fn look_at(
        &self,
        owned: &mut OwnedBooks,
        book_object: &KindObject,
        sight: &ReconcileSight,
    ) -> Result<bool, ApiError> {
        let now = moment(self.server.objects.time.now());
        let rules = rules_of(book_object)?;
        let uuid = book_object.metadata.uuid().to_owned();
        let known = owned.states.get(&uuid);
        let state = known.cloned().unwrap_or_else(|| Reconcile::begin(now));
        let step = rules.step(&state, sight, now);
        let is_remembered = known == Some(&step.state);
        let write = [LiveWrite::put(book(&uuid), &step.state)?];
        let mut is_written = is_remembered;
        if let Some(run) = &step.run {
            let made_by = MadeBy {
                origin: json!({
                    "kind": "TaskBook", "name": book_object.name(), "uuid": uuid, "cause": run.cause.word(),
                }),
                causes: Value::Null,
                fence: owned.ownership.fence(),
                with: owned.records.part(&write),
            };
            let fired = fired_run(book_object, run, rules.mode(), made_by);
            match self.server.start_fired_run(fired).await {
                Ok(FiredRunOutcome::Made(run)) => {
                    let version = run.metadata.resource_version.as_deref();
                    let revision = self.server.objects.revision(version.unwrap_or_default())?;
                    owned.records.written(&write, revision);
                    is_written = true;
                }
                Ok(FiredRunOutcome::Known(_)) => {}
                Err(error) if is_passing(&error) => return Err(error),
                Err(error) => self.report_failed(book_object, run, &error),
            }
        }
        if !is_written && !self.write(owned, &write).await? {
            return Ok(false);
        }
        owned.states.insert(uuid, step.state);
        Ok(true)
    }

    /// Tells that a run could not be made. One that was is told where it is seen.
    fn report_failed(&self, book: &KindObject, run: &ReconcileRun, error: &ApiError) {
        let cause = run.cause.word();
        let summary = format!(
            "TaskBook {} could not be run by {cause}: {error}",
            book.name()
        );
        let id = format!("{}-{}", book.metadata.uuid(), run.number);
        let event = NewEvent::new("reconcile.failed", summary)
            .error()
            .about(book)
            .named("reconcile", &id)
            .data(json!({"cause": cause, "nodes": run.nodes}));
        self.server.event_sink.tell(event);
    }

    /// Forgets books that are gone, or are not reconciled any more.
    async fn forget(
        &self,
        owned: &mut OwnedBooks,
        books: &[Arc<KindObject>],
    ) -> Result<(), OwnershipLost> {
        let living: BTreeSet<&str> = books.iter().map(|book| book.metadata.uuid()).collect();
        let known = owned.states.keys();
        let gone: Vec<String> = known
            .filter(|uuid| !living.contains(uuid.as_str()))
            .cloned()
            .collect();
        for uuid in gone {
            let written = self.write(owned, &[LiveWrite::delete(book(&uuid))]).await;
            if !written.unwrap_or_default() {
                return Err(OwnershipLost);
            }
            owned.states.remove(&uuid);
        }
        Ok(())
    }

    async fn write(
        &self,
        owned: &mut OwnedBooks,
        writes: &[LiveWrite],
    ) -> Result<bool, StoreError> {
        let fence = owned.ownership.fence();
        let store = &self.server.objects.store;
        owned.records.write(store, &fence, writes).await
    }

    fn objects(&self, kind: &str) -> Vec<Arc<KindObject>> {
        let kind = find_kind(kind);
        kind.map_or_else(Vec::new, |kind| self.server.cache.objects(kind, None))
    }

    /// The uuids of books whose last run by `reconcile` has not ended.
    fn active_books(&self) -> BTreeSet<String> {
        let runs = self.objects("Run");
        let active = runs.iter().filter(|run| !is_over(run));
        let origins = active.map(|run| &run.spec["origin"]);
        origins
            .filter(|origin| origin["kind"] == "TaskBook")
            .filter_map(|origin| origin["uuid"].as_str().map(str::to_owned))
            .collect()
    }
}

/// The uuids and names of nodes in some states.
fn in_states<'n>(
    nodes: &'n [Arc<KindObject>],
    states: &'n [&str],
) -> impl Iterator<Item = (String, String)> + 'n {
    let state = |node: &KindObject| node.status["state"].as_str().map(str::to_owned);
    nodes
        .iter()
        .filter(move |node| state(node).is_some_and(|state| states.contains(&state.as_str())))
        .map(|node| (node.metadata.uuid().to_owned(), node.name().to_owned()))
}

fn rules_of(book: &KindObject) -> Result<Reconcile, ApiError> {
    let spec: ReconcileSpec = serde_json::from_value(book.spec["reconcile"].clone())
        .map_err(|error| ApiError::internal(error.to_string()))?;
    Reconcile::new(&spec).map_err(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        ApiError::internal(all.join("; "))
    })
}

fn fired_run(
    book: &KindObject,
    run: &ReconcileRun,
    mode: ReconcileMode,
    made_by: MadeBy,
) -> FiredRun {
    let id = Digest::of(book.metadata.uuid().as_bytes()).hex();
    let id = id.get(..6).unwrap_or_default();
    FiredRun {
        user: USER,
        namespace: book.namespace().unwrap_or_default().to_owned(),
        book: book.name().to_owned(),
        text: None,
        key: format!("{id}-{}-{}", run.cause.word(), run.number),
        is_check: mode == ReconcileMode::Check,
        inputs: Map::new(),
        nodes: run.nodes.clone(),
        selector: None,
        made_by,
    }
}
