//! Beacons, and schedules that nodes keep: which node has what, and what became of it.
//!
//! ```text
//! Beacon, NodeGrant, NodeGroup, labels ──selection───▶ BeaconOrders ──▶ agents
//! CronJob with `on: agent` ─────────────agent_jobs──▶ CronOrders ──▶ agents
//!                    Events, Node status ◀──BeaconKeeper──── BeaconEvents, BeaconStates, CronStates
//!                                               └──BeaconAck, when the events are on the disk──▶ agents
//! ```
//!
//! An event has a name that follows from its node, its spool, its number and its content. However often an agent sends it,
//! it is one Event.

mod agent_jobs;
mod intake;
mod keeper;
mod selection;

pub(crate) use keeper::{BeaconInput, BeaconKeeper};
