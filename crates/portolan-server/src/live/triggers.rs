//! Shows stored events to Triggers and makes the runs of their firings, on the server that owns the shard.
//!
//! Events are taken in the order of the store. A firing is stored, with its Run, before the next event is looked at. What
//! else triggers remember is stored once for all events of a revision, together with the place up to which events were
//! seen; events that are seen again after a crash are known, or lead to a firing of the same name.

mod checkpoints;
mod firings;
mod status;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_kinds::wire::ConfigSpec;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::{Ownership, Revision, Span, StoreError};
use portolan_trigger::{Reaction, Reactor, Refusal, RunBudget, TriggerMemory, TriggerReport};
use tokio::sync::watch;
use tokio::time::Instant;

use self::checkpoints::StoredCursor;
use super::fleet_event::fleet_event;
use super::node_changes;
use super::records::{self, LiveRecords};
use super::suppressed::Suppressed;
use super::trigger_state::{ledger_write, read_memory, read_trigger};
use super::{OwnershipLost, moment};
use crate::cache::{Change, Found, Side};
use crate::error::ApiError;
use crate::events::{NewEvent, unpack};
use crate::keys::{ObjectKey, all_events, is_event};
use crate::runs::is_over;
use crate::server::ApiServer;

/// How often triggers are looked at when nothing happens: firings wait for moments.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long changes are collected, so that triggers are not looked through for each.
const COLLECT: Duration = Duration::from_millis(20);

/// How long until a firing is tried again that could not be stored.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Changes that are looked at in one round.
const MAX_CHANGES: usize = 2_000;

/// How often the place up to which events were seen is stored when no trigger counted any.
const CURSOR_EVERY: Duration = Duration::from_secs(10);

/// How often it is looked for groups that nobody remembers.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// Revisions whose changes a new owner tells again. Servers write at least one in two seconds, so these are some minutes.
const TOLD_AGAIN: u64 = 500;

/// How long a round waits until a run that was made is known here.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// Runs that all triggers together may start in a minute when no Config says otherwise.
pub(super) const RUNS_PER_MINUTE: u32 = 60;

/// The name that runs of triggers are made under.
pub(super) const USER: &str = "system:triggers";

/// Shows events to Triggers.
pub(crate) struct TriggerController {
    pub(crate) server: Arc<ApiServer>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// The triggers of an owner.
struct OwnedTriggers {
    ownership: Ownership,
    records: LiveRecords,
    reactor: Reactor,
    /// By the uuid of the Trigger.
    known: BTreeMap<String, KnownTrigger>,
    /// Everything up to here was seen.
    cursor: Revision,
    /// What the store knows of that, and since when.
    stored_cursor: (Revision, Instant),
    /// Groups that changed and are not stored yet.
    changed: BTreeSet<(String, String)>,
    suppressed: Suppressed,
    swept: Instant,
}

struct KnownTrigger {
    object: Arc<KindObject>,
    /// The text that last switched it on again.
    reset: Option<String>,
    /// What it remembers while it is suspended.
    parked: Option<TriggerMemory>,
    last: LastFiring,
}

/// What the status says about the last firing.
#[derive(Debug, Clone, Default)]
struct LastFiring {
    at: Option<String>,
    run: Option<String>,
    error: Option<String>,
}

impl TriggerController {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            if let Some(ownership) = ownership {
                match self.take_over(ownership).await {
                    Ok(mut owned) => {
                        // Where it begins is stored before anything is looked at: who is killed then begins there, too.
                        if self.store_cursor(&mut owned).await.is_ok() {
                            let OwnershipLost = self.look_after(&mut owned).await;
                        }
                    }
                    Err(error) => tracing::warn!(%error, "what triggers remember cannot be read"),
                }
                tokio::time::sleep(TRY_AGAIN).await;
            } else if self.owned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn take_over(&self, ownership: Ownership) -> Result<OwnedTriggers, StoreError> {
        let store = &self.server.objects.store;
        let mut records = LiveRecords::default();
        let stored: Option<StoredCursor> = records.read(store, records::cursor()).await?;
        let incarnation = self.server.cache.incarnation();
        let stored = stored.filter(|stored| stored.incarnation == incarnation);
        // What happened before the first start, or before a restore, starts nothing.
        let cursor = stored.map_or_else(|| self.server.cache.revision(), |stored| stored.revision);
        self.tell_again(cursor).await;
        Ok(OwnedTriggers {
            ownership,
            records,
            reactor: Reactor::new(RunBudget::per_minute(RUNS_PER_MINUTE)),
            known: BTreeMap::new(),
            cursor,
            stored_cursor: (0, Instant::now()),
            changed: BTreeSet::new(),
            suppressed: Suppressed::default(),
            swept: Instant::now(),
        })
    }

    /// Tells the last changes of nodes and runs, and steps of these, again: the owner before may have been killed before their events were
    /// written. Those that were are known by their names.
    async fn tell_again(&self, cursor: Revision) {
        let cache = &self.server.cache;
        let from = cursor.saturating_sub(TOLD_AGAIN);
        let from = from.max(cache.complete_after());
        let found = cache.changes_after(from, usize::MAX, node_changes::is_looked_at);
        let Found::Changes(changes, _) = found else {
            return;
        };
        let runs = self.objects("Run").into_iter();
        let mut runs: BTreeMap<String, Arc<KindObject>> = runs
            .filter(|run| !is_over(run))
            .map(|run| (run.metadata.uuid().to_owned(), run))
            .collect();
        for change in changes {
            if let Some(event) = node_changes::event_of(&change, cache.incarnation()) {
                self.server.event_sink.tell(event);
            }
            let after = change.object(Side::After, cache.incarnation());
            if let Some(run) = after.filter(|object| object.kind.name == "Run") {
                runs.insert(run.metadata.uuid().to_owned(), run);
            }
        }
        for run in runs.values() {
            if let Err(error) = self.server.tell_steps_again(run).await {
                tracing::warn!(%error, run = run.name(), "the steps of a run cannot be told again");
            }
        }
    }

    async fn look_after(&mut self, owned: &mut OwnedTriggers) -> OwnershipLost {
        let mut revisions = self.server.cache.subscribe();
        loop {
            revisions.borrow_and_update();
            if let Err(OwnershipLost) = self.round(owned).await {
                return OwnershipLost;
            }
            let now = moment(self.server.objects.time.now());
            let until = owned.reactor.next_due().map_or(LOOK_EVERY, |due| {
                Duration::try_from(due.duration_since(now)).unwrap_or_default()
            });
            tokio::select! {
                _ = self.owned.changed() => return OwnershipLost,
                _ = revisions.changed() => tokio::time::sleep(COLLECT).await,
                () = tokio::time::sleep(until.clamp(COLLECT, LOOK_EVERY)) => {}
            }
        }
    }

    async fn round(&self, owned: &mut OwnedTriggers) -> Result<(), OwnershipLost> {
        // A trigger that is as new as an event is there when the event is looked at.
        let known_up_to = self.server.cache.revision();
        owned.reactor.set_budget(self.runs_per_minute());
        self.take_triggers(owned).await?;
        self.take_changes(owned, known_up_to).await?;
        let now = moment(self.server.objects.time.now());
        let active = OnceCell::new();
        let reports = owned.reactor.tick(now, &|uuid| {
            count(active.get_or_init(|| self.active_runs()), uuid)
        });
        self.take_reports(owned, reports).await?;
        self.store_changed(owned).await?;
        let known = &owned.known;
        owned.suppressed.tell(&self.server.event_sink, |uuid| {
            known.get(uuid).map(|known| known.object.as_ref())
        });
        self.sweep(owned).await?;
        self.tell(owned).await;
        Ok(())
    }

    /// Takes over triggers that are new, changed or gone.
    async fn take_triggers(&self, owned: &mut OwnedTriggers) -> Result<(), OwnershipLost> {
        let objects = self.objects("Trigger");
        let living: BTreeSet<&str> = objects.iter().map(|one| one.metadata.uuid()).collect();
        let known = owned.known.keys();
        let gone: Vec<String> = known
            .filter(|uuid| !living.contains(uuid.as_str()))
            .cloned()
            .collect();
        for uuid in gone {
            owned.reactor.remove(&uuid);
            owned.known.remove(&uuid);
            owned.changed.retain(|(of, _)| *of != uuid);
            self.forget(owned, &uuid).await?;
        }
        for object in objects {
            if let Err(error) = self.take_trigger(owned, object).await? {
                tracing::warn!(%error, "a trigger cannot be used");
            }
        }
        Ok(())
    }

    async fn take_trigger(
        &self,
        owned: &mut OwnedTriggers,
        object: Arc<KindObject>,
    ) -> Result<Result<(), ApiError>, OwnershipLost> {
        let uuid = object.metadata.uuid().to_owned();
        let known = owned.known.get_mut(&uuid);
        let generation = object.metadata.generation();
        if let Some(known) = known {
            let is_same = known.object.metadata.generation() == generation;
            known.object = Arc::clone(&object);
            if is_same {
                return Ok(Ok(()));
            }
        }
        let trigger = match read_trigger(&object) {
            Ok(trigger) => trigger,
            Err(error) => return Ok(Err(error)),
        };
        let before = owned.known.remove(&uuid);
        let (parked, reset, last) = match before {
            Some(known) => (known.parked, known.reset, known.last),
            None => (None, None, LastFiring::of(&object)),
        };
        let kept = owned.reactor.remove(&uuid).or(parked);
        let store = &self.server.objects.store;
        let (memory, reset) = match kept {
            Some(memory) => (memory, reset),
            None => match read_memory(store, &mut owned.records, &uuid).await {
                Ok(read) => read,
                Err(error) => return Ok(Err(error.into())),
            },
        };
        let is_suspended = object.spec["suspend"] == true;
        let wanted_reset = object.spec["reset"].as_str().map(str::to_owned);
        let is_reset = wanted_reset.is_some() && wanted_reset != reset;
        let mut known = KnownTrigger {
            object,
            reset: wanted_reset.or(reset),
            parked: None,
            last,
        };
        let mut memory = memory;
        if is_reset {
            memory.reset();
            let write = ledger_write(&uuid, memory.ledger(), known.reset.as_deref());
            let Ok(write) = write else { return Ok(Ok(())) };
            self.write(owned, &[write]).await?;
        }
        if is_suspended {
            known.parked = Some(memory);
        } else {
            owned.reactor.insert(trigger, memory);
        }
        owned.known.insert(uuid, known);
        Ok(Ok(()))
    }

    /// Shows what happened since the last time, up to a revision.
    async fn take_changes(
        &self,
        owned: &mut OwnedTriggers,
        up_to: Revision,
    ) -> Result<(), OwnershipLost> {
        let cache = &self.server.cache;
        let wanted = |change: &Change| {
            change.revision <= up_to && (is_new_event(change) || node_changes::is_looked_at(change))
        };
        loop {
            let (changes, told) = match cache.changes_after(owned.cursor, MAX_CHANGES, wanted) {
                Found::Changes(changes, told) => (changes, told.min(up_to)),
                Found::Expired => return self.take_old_events(owned, up_to).await,
            };
            let is_last = changes.len() < MAX_CHANGES;
            let mut changes = changes.into_iter().peekable();
            while let Some(change) = changes.next() {
                if is_event(change.kind) {
                    if let Some(event) = change.object(Side::After, cache.incarnation()) {
                        self.observe(owned, &event).await?;
                    }
                } else if let Some(event) = node_changes::event_of(&change, cache.incarnation()) {
                    self.server.event_sink.tell(event);
                }
                let is_whole = changes
                    .peek()
                    .is_none_or(|next| next.revision != change.revision);
                if is_whole {
                    owned.cursor = change.revision;
                    self.store_changed(owned).await?;
                }
            }
            owned.cursor = owned.cursor.max(told);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Shows events that came while no server owned the shard, for so long that changes are not in memory any more.
    async fn take_old_events(
        &self,
        owned: &mut OwnedTriggers,
        up_to: Revision,
    ) -> Result<(), OwnershipLost> {
        let (store, objects) = (&self.server.objects.store, &self.server.objects);
        let mut events = Vec::new();
        let cursor = owned.cursor;
        let read = store
            .scan(&Span::prefix(all_events()), None, |record| {
                if record.mod_revision > cursor {
                    events.extend(unpack(&record, &objects.incarnation)?);
                }
                Ok(())
            })
            .await;
        if let Err(error) = read {
            tracing::warn!(%error, "old events cannot be read");
            return Err(OwnershipLost);
        }
        tracing::info!(
            count = events.len(),
            "events are shown to triggers after a break"
        );
        let summary = "which nodes came and went, and which runs ended, while no server was there is not known";
        let event = NewEvent::new("events.dropped", summary).warning();
        self.server.event_sink.tell(event);
        for event in events {
            self.observe(owned, &event.object).await?;
        }
        owned.cursor = up_to;
        self.store_changed(owned).await
    }

    async fn observe(
        &self,
        owned: &mut OwnedTriggers,
        event: &KindObject,
    ) -> Result<(), OwnershipLost> {
        let now = moment(self.server.objects.time.now());
        // Most events concern no trigger, and nobody asks then.
        let active = OnceCell::new();
        let event = fleet_event(event);
        let reports = owned.reactor.observe(&event, now, &|uuid| {
            count(active.get_or_init(|| self.active_runs()), uuid)
        });
        self.take_reports(owned, reports).await
    }

    async fn take_reports(
        &self,
        owned: &mut OwnedTriggers,
        reports: Vec<TriggerReport>,
    ) -> Result<(), OwnershipLost> {
        for TriggerReport {
            trigger,
            group,
            reaction,
        } in reports
        {
            match reaction {
                Reaction::Fired(firing) => self.fire(owned, *firing).await?,
                Reaction::Tripped(alert) => self.trip(owned, &alert).await?,
                Reaction::Refused(refusal) => {
                    owned.suppressed.add(&trigger, &refusal);
                    if !matches!(refusal, Refusal::Duplicate) {
                        owned.changed.insert((trigger, group));
                    }
                }
                Reaction::Counted { .. } | Reaction::Waiting { .. } | Reaction::Held(_) => {
                    owned.changed.insert((trigger, group));
                }
                Reaction::NoMatch(_) => {}
            }
        }
        Ok(())
    }

    fn runs_per_minute(&self) -> u32 {
        let config = find_kind("Config").and_then(|kind| {
            let key = ObjectKey::new(kind, None, "server");
            let config = self.server.cache.object(&key)?;
            config.typed_spec::<ConfigSpec>().ok()
        });
        let triggers = config.and_then(|config| config.triggers);
        triggers
            .and_then(|triggers| triggers.runs_per_minute)
            .unwrap_or(RUNS_PER_MINUTE)
    }

    fn objects(&self, kind: &str) -> Vec<Arc<KindObject>> {
        let kind = find_kind(kind);
        kind.map_or_else(Vec::new, |kind| self.server.cache.objects(kind, None))
    }

    fn active_runs(&self) -> BTreeMap<String, u32> {
        active_runs(&self.objects("Run"))
    }
}

fn is_new_event(change: &Change) -> bool {
    is_event(change.kind) && change.exists(Side::After) && !change.exists(Side::Before)
}

/// How many runs of each trigger have not ended, by its uuid.
pub(super) fn active_runs(runs: &[Arc<KindObject>]) -> BTreeMap<String, u32> {
    let mut active = BTreeMap::new();
    for run in runs.iter().filter(|run| !is_over(run)) {
        if let Some(uuid) = run.spec["origin"]["uuid"].as_str() {
            *active.entry(uuid.to_owned()).or_default() += 1;
        }
    }
    active
}

pub(super) fn count(active: &BTreeMap<String, u32>, uuid: &str) -> u32 {
    active.get(uuid).copied().unwrap_or_default()
}
