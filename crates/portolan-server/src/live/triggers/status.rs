//! What the status of a Trigger says.

use portolan_kinds::KindObject;
use portolan_trigger::TriggerMemory;
use serde_json::{Value, json};

use super::{KnownTrigger, LastFiring, OwnedTriggers, TriggerController, USER};
use crate::objects::{Author, key_of};

impl TriggerController {
    /// Writes what the status of triggers should say.
    pub(super) async fn tell(&self, owned: &OwnedTriggers) {
        let author = Author {
            name: USER.to_owned(),
            fence: Some(owned.ownership.fence()),
            ..Author::default()
        };
        for (uuid, known) in &owned.known {
            let memory = owned.reactor.memory(uuid).or(known.parked.as_ref());
            let wanted = status(known, memory);
            if wanted == known.object.status {
                continue;
            }
            let key = key_of(&known.object);
            if let Err(error) = self.server.objects.set_status(&key, wanted, &author).await {
                tracing::warn!(%error, trigger = known.object.name(), "the status cannot be written");
            }
        }
    }
}

impl LastFiring {
    pub(super) fn of(trigger: &KindObject) -> Self {
        let text = |key: &str| trigger.status[key].as_str().map(str::to_owned);
        Self {
            at: text("lastFired"),
            run: text("lastRun"),
            error: text("error"),
        }
    }
}

fn status(known: &KnownTrigger, memory: Option<&TriggerMemory>) -> Value {
    let ledger = memory.map(TriggerMemory::ledger);
    let trip = ledger.and_then(|ledger| ledger.trip());
    let state = match (known.object.spec["suspend"] == true, trip) {
        (true, _) => "suspended",
        (false, Some(_)) => "tripped",
        (false, None) => "ready",
    };
    let fired = ledger.map_or(0, portolan_trigger::TriggerLedger::fired);
    let mut status = json!({
        "observedGeneration": known.object.metadata.generation(), "state": state,
        "fired": u32::try_from(fired).unwrap_or(u32::MAX),
    });
    let parts = [
        ("lastFired", known.last.at.clone()),
        ("lastRun", known.last.run.clone()),
        ("error", known.last.error.clone()),
        ("trippedSince", trip.map(|trip| trip.since.to_string())),
    ];
    for (key, value) in parts {
        if let Some(value) = value {
            status[key] = value.into();
        }
    }
    status
}
