//! The node's side of a fleet.
//!
//! An agent runs steps on its machine for a server. This crate has what that needs beyond the modules: commands that
//! outlive the agent ([`ShimProcesses`]), the lease under which steps may be started, what is kept across restarts, and the
//! stream to a server. Steps are taken by `portolan_fleet`.

mod disk;
mod fact_report;
mod failpoint;

mod shim;

mod core_dump;
mod data;
mod epochs;
mod lease;

mod activity;
mod kept_book;
mod validity;

mod beacons;
mod cron;
mod gossip;
mod shares;

mod runs;

mod agent;
mod bootstrap;
mod connection;
mod program_watch;
mod rooted_node;
mod session;
pub mod wire;

pub use agent::{Agent, AgentEnd, AgentError, AgentNotice, AgentOptions};
pub use beacons::{BeaconNotice, BeaconSpool};
pub use bootstrap::{Bootstrap, BootstrapError, BootstrappedHost, SshTarget};
pub use connection::ConnectError;
pub use core_dump::forbid_core_dumps;
pub use data::{AgentData, DataError, NodeIdentity};
pub use epochs::{EpochError, Epochs, RunEpoch};
pub use failpoint::failpoint;
pub use lease::{DispatchLease, LeaseRequest};
pub use portolan_clock::{BootClock, Clock, ManualClock, SystemDate, WallClock};
pub use rooted_node::{RootedFleet, RootedNode, RootedNodeError};
pub use shim::{JobState, Jobs, SHIM, ShimProcesses, StepJobs, run_shim};
