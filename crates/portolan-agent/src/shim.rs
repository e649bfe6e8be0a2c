//! Commands that outlive the agent.
//!
//! ```text
//! agent ──order through a pipe──▶ shim (own session) ──▶ starter ──exec──▶ command (own group, own control group)
//!   │                              │ waits, keeps the time                    │
//!   └── looks at the job directory ┴── lock, started, exit                    └── stdout, stderr
//! ```
//!
//! A command belongs to a *job*: a directory with its output and how it ended. The shim holds the lock of the directory
//! while it lives and writes `started` before it starts anything, so whoever looks at a directory knows which of these
//! is true: nothing was started yet, it runs, it ended so, or the shim died with the machine and nobody knows. An agent
//! that was killed and started again looks at the same directory and waits for the same command.
//!
//! What may be secret (variables, input) goes through pipes only; the directory holds the output until the job is
//! forgotten.

mod account;
mod control_group;
mod job;
mod keeper;
mod order;
mod processes;
mod starter;

use std::io::{self, Write as _};
use std::process::ExitCode;

use camino::Utf8Path;

pub use job::{JobState, Jobs};
pub use processes::{ShimProcesses, StepJobs};

/// The first argument of a process that is a shim, or on the way to become a command.
pub const SHIM: &str = "command-shim";

/// The exit code of a command that cannot be started.
const CANNOT_START: u8 = 127;

/// Does what the arguments after [`SHIM`] say: `keep DIRECTORY` runs the command of a job, `start …` becomes it. Why a
/// command cannot be started is said where the command would print its errors; the exit code is that of shells.
pub fn run_shim(arguments: &[String]) -> ExitCode {
    let done = match arguments {
        [word, directory] if word == "keep" => {
            keeper::keep_job(Utf8Path::new(directory), io::stdin())
        }
        [word, order @ ..] if word == "start" => match starter::StartOrder::from_arguments(order) {
            Some(order) => Err(starter::start_program(&order)),
            None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        },
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot start the command: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}
