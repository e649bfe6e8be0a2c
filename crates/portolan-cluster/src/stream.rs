//! Streams of pods: their logs, commands in them, and connections to their ports.
//!
//! ```text
//! pod, Service or workload ──PodTarget──▶ TargetPod ──┬─▶ PodLog: lines, resumed where a connection broke
//!                                                     ├─▶ run_in_pod: input, output, exit code
//!                                                     └─▶ PortForward: local connections, each to a pod that is ready
//! ```

mod channel;
mod command;
mod forward;
mod log;
mod target;

pub use command::{PodCommand, PodOutput};
pub use forward::{ForwardEvent, ForwardOptions, PortForward};
pub use log::{LogEvent, PodLog, PodLogOptions};
pub use target::{PodTarget, TargetKind, TargetPod};
