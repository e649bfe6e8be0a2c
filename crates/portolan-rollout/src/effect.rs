//! What is to be done about a decision.
//!
//! Effects are found by comparing what the status asks for with what was observed. So each of them can be done twice
//! without harm, and one that was lost comes again at the next look.

use serde::Serialize;

use crate::config::ConfigRef;
use crate::history::Record;
use crate::revision::Revision;
use crate::slot::Slot;
use crate::spec::Webhook;
use crate::traffic::Traffic;

/// One thing to be done. They are to be done in the order of the list, after the status has been written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    /// Put the finalizer on the object, so that its deletion waits for traffic to go home.
    AddFinalizer,
    /// Take the finalizer away.
    RemoveFinalizer,
    /// Make the routes say this.
    WriteTraffic(Traffic),
    /// Give a Service that was taken over back to whom it belonged, and let the routes lead to it, whatever it selects.
    ReturnService,
    /// Make routes that are the user's lead to the application's own Service again, as before the rollout.
    ReturnRoutes,
    /// Make the application's own Service select this slot.
    PointApex {
        /// The slot.
        slot: Slot,
    },
    /// Keep a revision as an object: its template and the names and hashes of its configuration.
    SaveRevision {
        /// The revision.
        revision: Revision,
    },
    /// Copy a `ConfigMap` or Secret for a revision.
    CopyConfig {
        /// The revision.
        revision: Revision,
        /// What is copied.
        config: ConfigRef,
    },
    /// Delete a revision that nothing needs any more, and its copies of configuration.
    DeleteRevision {
        /// The revision.
        revision: Revision,
    },
    /// Make a slot run a revision with so many pods.
    ApplySlot {
        /// The slot.
        slot: Slot,
        /// What it runs.
        revision: Revision,
        /// How many pods it has; the least number if it is scaled automatically.
        replicas: u32,
    },
    /// Change the number of pods of a slot, nothing else.
    ScaleSlot {
        /// The slot.
        slot: Slot,
        /// How many pods it has; the least number if it is scaled automatically.
        replicas: u32,
    },
    /// Delete a pod, so that another takes its place.
    ReplacePod {
        /// The pod's name.
        pod: String,
    },
    /// Hold the Deployment that the spec refers to at zero replicas.
    HoldWorkload,
    /// Give the Deployment that the spec refers to its pods back.
    ReleaseWorkload {
        /// How many.
        replicas: u32,
    },
    /// Ask a gate. The answer is observed under the key.
    AskGate {
        /// Names this question.
        key: String,
        /// The webhook.
        webhook: Webhook,
        /// What it is asked, in words.
        question: String,
    },
    /// Tell a record of the history: as an event of Kubernetes, and to whom the spec names.
    Tell(Record),
    /// Look again after so many seconds, even if nothing happens.
    LookAgain {
        /// How many.
        seconds: u64,
    },
    /// Say that the status is of a newer version and is left alone.
    ReportNewerStatus {
        /// The version of the status.
        schema: u32,
    },
}
