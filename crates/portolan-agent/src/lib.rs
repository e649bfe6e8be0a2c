//! The node's side of a fleet.
//!
//! An agent runs steps on its machine for a server. This crate has what that needs beyond the modules: commands that
//! outlive the agent ([`ShimProcesses`]), facts with their age, the lease under which steps may be started, and what is
//! kept across restarts. It does not know books; it gets work through traits.

mod disk;
mod failpoint;

mod shim;

mod epochs;
mod lease;
mod reconnect;

pub use epochs::{EpochError, Epochs, RunEpoch};
pub use failpoint::failpoint;
pub use lease::{DispatchLease, LeaseRequest};
pub use portolan_clock::{
    BootClock as MachineBootClock, Clock as BootClock, ManualClock as ManualBootClock,
};
pub use reconnect::Reconnect;
pub use shim::{JobState, Jobs, SHIM, ShimProcesses, StepJobs, run_shim};
