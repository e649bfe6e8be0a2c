//! Starts the slots of CronJobs, on the server that owns the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portolan_kinds::{KindObject, find_kind};
use portolan_store::{Ownership, StoreError};
use portolan_trigger::{
    CronSchedule, ScheduleSpec, ScheduleState, ScheduleStep, SkippedSlot, SlotFiring,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cron_books::{USER, is_kept_by_nodes, runs_of};
use super::cron_of_nodes::status_of_nodes;
use super::records::{LiveRecords, LiveWrite, cron_job, cron_jobs, uuid_below};
use super::{OwnershipLost, is_passing, moment};
use crate::error::ApiError;
use crate::events::NewEvent;
use crate::objects::{Author, key_of};
use crate::runs::{FiredRunOutcome, MadeBy, RunWish, is_over};
use crate::server::{ApiServer, Caller, Target};
use crate::token::Identity;

/// How often schedules are looked at when nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Starts the slots of CronJobs.
pub(crate) struct CronController {
    pub(crate) server: Arc<ApiServer>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// The schedules of an owner.
struct OwnedCron {
    ownership: Ownership,
    records: LiveRecords,
    /// By the uuid of the CronJob.
    jobs: BTreeMap<String, CronEntry>,
}

/// A schedule, and when it has to be looked at again.
struct CronEntry {
    generation: u32,
    schedule: CronSchedule,
    state: ScheduleState,
    /// When it was looked at, and with which active runs.
    stepped: Option<(Timestamp, Vec<String>)>,
    next: Option<Timestamp>,
}

/// What a slot became.
#[derive(Default)]
struct SlotOutcome {
    runs: Vec<String>,
    error: Option<ApiError>,
}

impl CronController {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            if let Some(ownership) = ownership {
                let mut owned = OwnedCron {
                    ownership,
                    records: LiveRecords::default(),
                    jobs: BTreeMap::new(),
                };
                let OwnershipLost = self.look_after(&mut owned).await;
            } else if self.owned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn look_after(&mut self, owned: &mut OwnedCron) -> OwnershipLost {
        if let Err(error) = self.forget_deleted(owned).await {
            tracing::warn!(%error, "what is remembered about deleted schedules cannot be removed");
        }
        loop {
            if let Err(OwnershipLost) = self.round(owned).await {
                tokio::time::sleep(LOOK_EVERY).await;
                return OwnershipLost;
            }
            tokio::select! {
                _ = self.owned.changed() => return OwnershipLost,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn round(&self, owned: &mut OwnedCron) -> Result<(), OwnershipLost> {
        let jobs = self.objects("CronJob");
        let active = self.active_runs();
        let living: BTreeSet<&str> = jobs.iter().map(|job| job.metadata.uuid()).collect();
        let known = owned.jobs.keys();
        let gone: Vec<String> = known
            .filter(|uuid| !living.contains(uuid.as_str()))
            .cloned()
            .collect();
        for uuid in gone {
            owned.jobs.remove(&uuid);
            let write = LiveWrite::delete(cron_job(&uuid));
            self.write(owned, &[write]).await?;
        }
        for job in jobs {
            if job.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let runs = active.get(job.metadata.uuid());
            let runs = runs.cloned().unwrap_or_default();
            let looked = if is_kept_by_nodes(&job) {
                self.leave_to_nodes(owned, &job).await
            } else {
                self.look_at(owned, &job, runs).await
            };
            match looked {
                Ok(true) => {}
                Ok(false) => return Err(OwnershipLost),
                Err(error) => {
                    tracing::warn!(%error, job = job.name(), "a schedule cannot be kept now");
                }
            }
        }
        Ok(())
    }

    /// Starts nothing: nodes keep the schedule. Says what they tell of it.
    async fn leave_to_nodes(
        &self,
        owned: &mut OwnedCron,
        job: &KindObject,
    ) -> Result<bool, ApiError> {
        let uuid = job.metadata.uuid();
        if owned.jobs.remove(uuid).is_some() {
            // A server that keeps it again begins anew.
            let write = LiveWrite::delete(cron_job(uuid));
            if self.write(owned, &[write]).await.is_err() {
                return Ok(false);
            }
        }
        let now = moment(self.server.objects.time.now());
        let next = schedule_of(job)?.schedule().next_after(now);
        let wanted = status_of_nodes(job, next, &self.objects("Node"));
        self.tell(owned, job, wanted).await
    }

    /// Starts what is due of a job. `false` when this server does not own the shard any more.
    async fn look_at(
        &self,
        owned: &mut OwnedCron,
        job: &KindObject,
        active: Vec<String>,
    ) -> Result<bool, ApiError> {
        let now = moment(self.server.objects.time.now());
        let uuid = job.metadata.uuid().to_owned();
        self.load(owned, job).await?;
        let Some(entry) = owned.jobs.get_mut(&uuid) else {
            return Ok(true);
        };
        if job.spec["suspend"] == true {
            let wanted = status(job, None, active.len(), &SlotOutcome::default(), &[]);
            return self.tell(owned, job, wanted).await;
        }
        if !entry.is_due(now, &active) {
            return Ok(true);
        }
        let step = entry.schedule.step(&entry.state, now, &active);
        let mut outcome = SlotOutcome::default();
        if !step.firings.is_empty() {
            match self.start(owned, job, &step).await? {
                Some(started) => outcome = started,
                None => return Ok(false),
            }
        } else if owned
            .jobs
            .get(&uuid)
            .is_some_and(|entry| entry.state != step.state)
        {
            let write = LiveWrite::put(cron_job(&uuid), &step.state)?;
            if self.write(owned, &[write]).await.is_err() {
                return Ok(false);
            }
        }
        for skipped in &step.skipped {
            self.report_skipped(job, skipped);
        }
        let running = active.len() + outcome.runs.len();
        let wanted = status(job, step.next, running, &outcome, &step.skipped);
        let wanted = with_slot(wanted, step.firings.last(), &outcome);
        if let Some(entry) = owned.jobs.get_mut(&uuid) {
            entry.state = step.state;
            entry.next = step.next;
            entry.stepped = Some((now, active));
        }
        self.tell(owned, job, wanted).await
    }

    /// Reads what is remembered about a job that is new here, and takes over a changed spec.
    async fn load(&self, owned: &mut OwnedCron, job: &KindObject) -> Result<(), ApiError> {
        let uuid = job.metadata.uuid();
        let generation = job.metadata.generation();
        let known = owned.jobs.get(uuid);
        if known.is_some_and(|entry| entry.generation == generation) {
            return Ok(());
        }
        let schedule = schedule_of(job)?;
        let state = match known {
            Some(entry) => entry.state.clone(),
            None => {
                let store = &self.server.objects.store;
                let stored = owned.records.read(store, cron_job(uuid)).await?;
                // Slots before the job was made are not its own.
                let made = job.metadata.creation_timestamp().parse().ok();
                // Nodes kept those from then until now.
                let made = made.filter(|_| job.status.get("nodes").is_none());
                let now = moment(self.server.objects.time.now());
                stored.unwrap_or_else(|| schedule.begin(made.unwrap_or(now)))
            }
        };
        let entry = CronEntry {
            generation,
            schedule,
            state,
            stepped: None,
            next: None,
        };
        owned.jobs.insert(uuid.to_owned(), entry);
        Ok(())
    }

    /// Makes the runs of what is due; the last one is created together with what is remembered. `None` when this server
    /// does not own the shard any more.
    async fn start(
        &self,
        owned: &mut OwnedCron,
        job: &KindObject,
        step: &ScheduleStep,
    ) -> Result<Option<SlotOutcome>, ApiError> {
        let remembered = [LiveWrite::put(cron_job(job.metadata.uuid()), &step.state)?];
        let mut outcome = SlotOutcome::default();
        let mut is_remembered = false;
        for (number, firing) in step.firings.iter().enumerate() {
            let is_last = number + 1 == step.firings.len();
            outcome = SlotOutcome::default();
            for run in &firing.replaces {
                self.cancel(job, run).await?;
            }
            let with = if is_last {
                owned.records.part(&remembered)
            } else {
                portolan_store::Transaction::new()
            };
            let made_by = MadeBy {
                origin: json!({
                    "kind": "CronJob", "name": job.name(), "uuid": job.metadata.uuid(), "slot": firing.slot.to_string(),
                }),
                causes: Value::Null,
                fence: owned.ownership.fence(),
                with,
            };
            let runs = runs_of(job, firing, &made_by)?;
            let count = runs.len();
            for (place, run) in runs.into_iter().enumerate() {
                let name = run.name();
                match self.server.start_fired_run(run).await {
                    Ok(FiredRunOutcome::Made(run)) => {
                        outcome.runs.push(name);
                        if is_last && place + 1 == count {
                            let version = run.metadata.resource_version.as_deref();
                            let revision =
                                self.server.objects.revision(version.unwrap_or_default())?;
                            owned.records.written(&remembered, revision);
                            is_remembered = true;
                        }
                    }
                    Ok(FiredRunOutcome::Known(name)) => outcome.runs.push(name),
                    Err(error) if is_passing(&error) => return Err(error),
                    Err(error) => outcome.error = Some(error),
                }
            }
            self.report_slot(job, firing, &outcome);
        }
        if !is_remembered && self.write(owned, &remembered).await.is_err() {
            return Ok(None);
        }
        Ok(Some(outcome))
    }

    /// Ends a run that a newer slot replaces; steps at work end first.
    async fn cancel(&self, job: &KindObject, run: &str) -> Result<(), ApiError> {
        let caller = Caller {
            identity: Identity {
                user: USER.to_owned(),
                ..Identity::default()
            },
            address: String::new(),
        };
        let target = Target {
            kind: find_kind("Run").ok_or_else(|| ApiError::internal("no kind Run"))?,
            namespace: job.namespace().map(str::to_owned),
            name: Some(run.to_owned()),
        };
        let wished = self.server.wish_for_run(&caller, &target, RunWish::Drain);
        match wished.await {
            Err(error) if is_passing(&error) => Err(error),
            // It has just ended, or is gone.
            _ => Ok(()),
        }
    }

    /// Tells that a slot could not start. One that did is told where its run is seen.
    fn report_slot(&self, job: &KindObject, firing: &SlotFiring, outcome: &SlotOutcome) {
        let Some(error) = &outcome.error else {
            return;
        };
        let slot = firing.slot.to_string();
        let summary = format!(
            "CronJob {} could not start the slot {slot}: {error}",
            job.name()
        );
        let event = NewEvent::new("cron.failed", summary)
            .error()
            .about(job)
            .named("cron", &format!("{}-{slot}", job.metadata.uuid()))
            .data(
                json!({"slot": slot, "runs": outcome.runs, "lateSeconds": firing.late.as_secs()}),
            );
        self.server.event_sink.tell(event);
    }

    fn report_skipped(&self, job: &KindObject, skipped: &SkippedSlot) {
        let more = if skipped.is_more { "more than " } else { "" };
        let summary = format!(
            "CronJob {} skipped {more}{} slots up to {}: {}",
            job.name(),
            skipped.count,
            skipped.slot,
            skipped.reason
        );
        let id = format!("{}-{}-skipped", job.metadata.uuid(), skipped.slot);
        let event = NewEvent::new("cron.skipped", summary)
            .warning()
            .about(job)
            .named("cron", &id)
            .data(json!({"slot": skipped.slot.to_string(), "count": skipped.count}));
        self.server.event_sink.tell(event);
    }

    async fn tell(
        &self,
        owned: &OwnedCron,
        job: &KindObject,
        wanted: Value,
    ) -> Result<bool, ApiError> {
        if wanted == job.status {
            return Ok(true);
        }
        let author = Author {
            name: USER.to_owned(),
            fence: Some(owned.ownership.fence()),
            ..Author::default()
        };
        let objects = &self.server.objects;
        objects.set_status(&key_of(job), wanted, &author).await?;
        Ok(true)
    }

    async fn write(
        &self,
        owned: &mut OwnedCron,
        writes: &[LiveWrite],
    ) -> Result<(), OwnershipLost> {
        let fence = owned.ownership.fence();
        let store = &self.server.objects.store;
        match owned.records.write(store, &fence, writes).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(OwnershipLost),
            Err(error) => {
                tracing::warn!(%error, "what schedules did cannot be written");
                Err(OwnershipLost)
            }
        }
    }

    /// Forgets jobs that were deleted while nobody owned the shard.
    async fn forget_deleted(&self, owned: &mut OwnedCron) -> Result<(), StoreError> {
        let store = &self.server.objects.store;
        let jobs = self.objects("CronJob");
        let stored: Vec<(String, Value)> = owned.records.read_all(store, cron_jobs()).await?;
        let is_gone = |key: &String| {
            let uuid = uuid_below(&cron_jobs(), key);
            let is_it =
                |job: &Arc<KindObject>| Some(job.metadata.uuid()) == uuid && !is_kept_by_nodes(job);
            !jobs.iter().any(is_it)
        };
        let gone: Vec<LiveWrite> = stored
            .into_iter()
            .map(|(key, _)| key)
            .filter(is_gone)
            .map(LiveWrite::delete)
            .collect();
        let fence = owned.ownership.fence();
        owned.records.write(store, &fence, &gone).await?;
        Ok(())
    }

    fn objects(&self, kind: &str) -> Vec<Arc<KindObject>> {
        let kind = find_kind(kind);
        kind.map_or_else(Vec::new, |kind| self.server.cache.objects(kind, None))
    }

    /// Runs that have not ended, by the uuid of what made them.
    fn active_runs(&self) -> BTreeMap<String, Vec<String>> {
        let mut active: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for run in self.objects("Run").iter().filter(|run| !is_over(run)) {
            if let Some(uuid) = run.spec["origin"]["uuid"].as_str() {
                let runs = active.entry(uuid.to_owned()).or_default();
                runs.push(run.name().to_owned());
            }
        }
        active
    }
}

impl CronEntry {
    /// Whether the schedule may decide something: a slot has come, the clock went back, or runs began or ended.
    fn is_due(&self, now: Timestamp, active: &[String]) -> bool {
        let Some((stepped, with)) = &self.stepped else {
            return true;
        };
        now < *stepped || with != active || self.next.is_some_and(|next| next <= now)
    }
}

/// The schedule of a job, as portolan-trigger reads it.
fn schedule_of(job: &KindObject) -> Result<CronSchedule, ApiError> {
    let keys = ["schedule", "timeZone", "missed", "concurrency", "deadline"];
    let fields = keys.into_iter().filter_map(|key| {
        let value = job.spec.get(key)?;
        Some((key.to_owned(), value.clone()))
    });
    let spec: ScheduleSpec = serde_json::from_value(Value::Object(fields.collect()))
        .map_err(|error| ApiError::internal(error.to_string()))?;
    CronSchedule::new(job.metadata.uuid(), &spec)
        .map_err(|error| ApiError::internal(error.to_string()))
}

/// The status of a job after it was looked at.
fn status(
    job: &KindObject,
    next: Option<Timestamp>,
    active: usize,
    outcome: &SlotOutcome,
    skipped: &[SkippedSlot],
) -> Value {
    let mut status = job.status.clone();
    if !status.is_object() {
        status = json!({});
    }
    status["observedGeneration"] = job.metadata.generation().into();
    status["active"] = u32::try_from(active).unwrap_or(u32::MAX).into();
    if let Some(last) = skipped.last() {
        status["skipped"] = format!("{}: {}", last.slot, last.reason).into();
    }
    if let Some(fields) = status.as_object_mut() {
        fields.remove("nodes");
        match next {
            Some(next) => fields.insert("nextSlot".to_owned(), next.to_string().into()),
            None => fields.remove("nextSlot"),
        };
        if outcome.error.is_none() && !outcome.runs.is_empty() {
            fields.remove("error");
        }
    }
    status
}

fn with_slot(mut status: Value, firing: Option<&SlotFiring>, outcome: &SlotOutcome) -> Value {
    let Some(firing) = firing else {
        return status;
    };
    status["lastSlot"] = firing.slot.to_string().into();
    status["lastRuns"] = outcome.runs.clone().into();
    if outcome.runs.is_empty()
        && let Some(fields) = status.as_object_mut()
    {
        fields.remove("lastRuns");
    }
    if let Some(error) = &outcome.error {
        status["error"] = error.to_string().into();
    } else {
        let started = status["started"].as_u64().unwrap_or_default() + 1;
        status["started"] = started.into();
    }
    status
}
