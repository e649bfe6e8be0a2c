//! How a command ended, as the exit codes that scripts rely on.

use std::process::ExitCode;

/// The one type that decides the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Done, nothing to report: 0.
    Clean,
    /// Done, and there are findings, differences or failed units: 1.
    Findings,
    /// Could not do it (usage, configuration, internal): 2.
    Failure,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Clean => 0,
            ExitStatus::Findings => 1,
            ExitStatus::Failure => 2,
        })
    }
}
