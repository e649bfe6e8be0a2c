//! Firings become runs, and triggers that fire too often are switched off.

use std::sync::Arc;

use portolan_kinds::KindObject;
use portolan_store::Transaction;
use portolan_trigger::{Firing, TripAlert};
use serde_json::json;

use super::super::fired_by_event::run_of;
use super::super::trigger_state::{checkpoint_writes, ledger_write};
use super::super::{OwnershipLost, is_passing};
use super::{CACHE_WAIT, LastFiring, OwnedTriggers, TRY_AGAIN, TriggerController};
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::events::NewEvent;
use crate::runs::FiredRunOutcome;

impl TriggerController {
    /// Makes the run of a firing and stores what its trigger remembers, in one transaction.
    pub(super) async fn fire(
        &self,
        owned: &mut OwnedTriggers,
        firing: Firing,
    ) -> Result<(), OwnershipLost> {
        let Some(known) = owned.known.get(&firing.trigger) else {
            return Ok(());
        };
        let (object, reset) = (Arc::clone(&known.object), known.reset.clone());
        let group = (firing.trigger.clone(), firing.group.clone());
        let writes = checkpoint_writes(&firing.trigger, &firing.checkpoint, reset.as_deref());
        let Ok(writes) = writes else {
            return Ok(());
        };
        portolan_agent::failpoint("server-trigger-fired");
        let outcome = loop {
            let with = owned.records.part(&writes);
            match self.try_to_fire(owned, &object, &firing, with).await {
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, trigger = object.name(), "a firing cannot be stored now");
                    if self.owned.has_changed().unwrap_or(true) {
                        return Err(OwnershipLost);
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                other => break other,
            }
        };
        let mut last = LastFiring {
            at: Some(rfc3339(self.server.objects.time.now())),
            ..LastFiring::default()
        };
        match outcome {
            Ok(FiredRunOutcome::Made(run)) => {
                let version = run.metadata.resource_version.as_deref();
                let revision = self.server.objects.revision(version.unwrap_or_default());
                let Ok(revision) = revision else {
                    return Err(OwnershipLost);
                };
                owned.records.written(&writes, revision);
                self.server.cache.wait_for(revision, CACHE_WAIT).await;
                last.run = Some(run.name().to_owned());
            }
            Ok(FiredRunOutcome::Known(name)) => {
                self.write(owned, &writes).await?;
                last.run = Some(name);
            }
            Err(error) => {
                self.write(owned, &writes).await?;
                self.report_failure(&object, &firing, &error);
                last.error = Some(error.to_string());
            }
        }
        owned.changed.remove(&group);
        if let Some(known) = owned.known.get_mut(&firing.trigger) {
            known.last = last;
        }
        Ok(())
    }

    async fn try_to_fire(
        &self,
        owned: &OwnedTriggers,
        trigger: &KindObject,
        firing: &Firing,
        with: Transaction,
    ) -> Result<FiredRunOutcome, ApiError> {
        let run = run_of(trigger, firing, owned.ownership.fence(), with)?;
        self.server.start_fired_run(run).await
    }

    /// Tells that a firing could start no run. One that did is told where its run is seen.
    fn report_failure(&self, trigger: &KindObject, firing: &Firing, error: &ApiError) {
        let name = trigger.name();
        let summary = format!("trigger {name} fired and could start no run: {error}");
        let mut event = NewEvent::new("trigger.failed", summary)
            .error()
            .about(trigger)
            .named("trigger", &firing.id)
            .caused_by(&firing.causes)
            .data(json!({"event": firing.event.uid, "count": firing.count, "group": firing.group}));
        if let Some(node) = &firing.event.node {
            event = event.on(node);
        }
        self.server.event_sink.tell(event);
    }

    /// Stores that a trigger is switched off, and tells it.
    pub(super) async fn trip(
        &self,
        owned: &mut OwnedTriggers,
        alert: &TripAlert,
    ) -> Result<(), OwnershipLost> {
        let Some(known) = owned.known.get(&alert.trigger) else {
            return Ok(());
        };
        let (object, reset) = (Arc::clone(&known.object), known.reset.clone());
        owned
            .changed
            .insert((alert.trigger.clone(), alert.group.clone()));
        if let Ok(write) = ledger_write(&alert.trigger, &alert.ledger, reset.as_deref()) {
            self.write(owned, &[write]).await?;
        }
        let until = alert.until.map(|until| until.to_string());
        let summary = format!(
            "trigger {} fired more than {} times in a short time and is switched off",
            object.name(),
            alert.burst
        );
        let event = NewEvent::new("trigger.tripped", summary)
            .error()
            .about(&object)
            .named("trigger", &format!("{}-{}", alert.trigger, alert.since))
            .data(json!({"group": alert.group, "burst": alert.burst, "until": until}));
        self.server.event_sink.tell(event);
        Ok(())
    }
}
