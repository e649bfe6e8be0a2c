//! What makes a fleet live: schedules and events that start runs.
//!
//! ```text
//! CronJob ──CronController: step(state, now)──▶ ┐
//! TaskBook ──ReconcileController: step(state, nodes, now)──▶ │
//! Variable ──VariableController: a step makes its values──▶ │
//! Trigger ──TriggerController: observe(event)──▶ ├ one transaction: the Run, and what is remembered ──▶ runs
//!   ▲                                            ┘
//!   └── stored Events ◀── EventSink ◀── changes of Nodes and Runs, steps, firings
//! ```
//!
//! The controllers work on the server that owns the shard, and every write compares that it still does. A firing has a
//! name that follows from what led to it, and is remembered in the transaction that creates its Run: whoever is killed
//! in between leaves either both or nothing, and the next owner decides the same again.

mod admission;
mod cron;
mod cron_books;
mod cron_of_nodes;
mod deliveries;
mod fired_by_event;
mod fleet_event;
mod node_changes;
mod reconcile;
mod records;
mod suppressed;
mod trigger_state;
mod trigger_test;
mod triggers;
mod variables;

pub(crate) use admission::{check_files_beside, check_live};
pub(crate) use cron::CronController;
pub(crate) use cron_books::{book_uses, is_kept_by_nodes};
pub(crate) use deliveries::{Deliveries, Delivery};
pub(crate) use reconcile::ReconcileController;
pub(crate) use triggers::TriggerController;
pub(crate) use variables::VariableController;

use fleet_event::stored_event;

use std::time::Duration;

use jiff::Timestamp;

use crate::error::ApiError;

/// Why a controller stops to look after what it owned.
pub(crate) struct OwnershipLost;

/// A time since 1970 as a moment.
pub(crate) fn moment(time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

/// Whether the same may succeed in a moment: the store or this server could not answer. Everything else is the fault of
/// what was asked for, such as a book that does not exist.
pub(crate) fn is_passing(error: &ApiError) -> bool {
    error.status.is_server_error()
}
