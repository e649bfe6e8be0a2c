//! When something that happened, or a moment in time, starts a run. Pure rules: time, events and everything else come
//! from the caller.
//!
//! ```text
//! cron expression, zone ──CronSchedule::step(state, now, active)──▶ SlotFiring
//! book and its nodes ──Reconcile::step(state, now)──▶ ReconcileRun
//! FleetEvent ──Reactor::observe──▶ TriggerReport: Fired, Counted, Waiting, Held, Refused and why
//!     ▲                 tick(now) ─┘
//!     ├── BeaconState::read (n of m, on change, every), EventFilter, SpoolLedger: on the agent
//!     └── WebhookVerifier, WebhookMapping, alertmanager_events: from outside
//! Variable objects ──resolve──▶ values of a node, and where each came from
//!                    VariableGraph: those that are computed from others, in order
//! ```
//!
//! Every firing has a name that follows from what led to it, so that it starts one run, whoever asks for it and however
//! often. What has to be remembered is small and is stored in one transaction with the run.

#![warn(missing_docs)]

mod event;
mod rate;
mod span;
mod type_pattern;

mod reconcile;
mod schedule;
mod time_window;

mod index;
mod reactor;
mod touched;
mod trigger;

mod beacon;
mod filter;
mod spool;

mod variable;
mod webhook;

pub use beacon::{BeaconEdge, BeaconReading, BeaconState, EdgeSpec};
pub use event::{CauseChain, CauseLink, EventView, FleetEvent, FleetSeverity, MAX_DEPTH};
pub use filter::{EventFilter, EventFilterSpec, FilterPatternError};
pub use index::TriggerIndex;
pub use rate::{BucketRule, RecentTimes, RunBudget, SlidingLimit, TokenBucket};
pub use reactor::{ActiveRuns, Reactor, ReactorCounts, TriggerReport};
pub use reconcile::{
    Reconcile, ReconcileCause, ReconcileMode, ReconcileRun, ReconcileSight, ReconcileSpec,
    ReconcileState, ReconcileStep,
};
pub use schedule::{
    Concurrency, CronSchedule, MissedPolicy, Schedule, ScheduleError, ScheduleSpec, ScheduleState,
    ScheduleStep, SkipReason, SkippedSlot, SlotFiring, SlotRange,
};
pub use span::WrittenSpan;
pub use spool::{SpoolEntry, SpoolLedger, SpoolLimits, SpoolLoss};
pub use time_window::{TimeWindow, TimeWindowError, TimeWindowSpec, WeekDay};
pub use touched::{BeaconSubject, TouchedByRun};
pub use trigger::{
    Blocked, BlockedPolicy, CheckedRule, Checkpoint, Firing, MatchSpec, Mismatch, Reaction,
    Refusal, SpecFault, Surroundings, Trigger, TriggerExplanation, TriggerLedger, TriggerMemory,
    TriggerSpec, Trip, TripAlert, TripSpec, WaitForMoreSpec, WindowState,
};
pub use type_pattern::{TypePattern, is_type};
pub use variable::{
    ComputedValue, GraphFault, GraphStep, MergeRule, ProducerWork, ResolvedVariables, SourceRole,
    StaleRule, StaleVariable, UsedValue, VariableCandidate, VariableConflict, VariableDefinition,
    VariableExplanation, VariableGraph, VariablePath, VariableProducer, VariableScope,
    VariableSource, check_result_expression, resolve, result_values, variables_read,
};
pub use webhook::{
    MappedEvents, MappingProblem, ReplayMemory, VerifiedDelivery, WebhookKey, WebhookMapping,
    WebhookMappingSpec, WebhookOrigin, WebhookRefusal, WebhookRequest, WebhookVerifier,
    alertmanager_events,
};
