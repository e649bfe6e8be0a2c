//! How a command ended, as the exit codes that scripts rely on.

use std::process::ExitCode;

/// The one type that decides the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Done, nothing to report: 0.
    Clean,
    /// Done, and there are findings, differences or failed units: 1.
    Findings,
    /// Done, and the user chose a code for what was found.
    Chosen(u8),
    /// Could not do it (usage, configuration, internal): 2.
    Failure,
    /// Stopped by Ctrl-C: 130.
    Interrupted,
}

impl ExitStatus {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Chosen(code) => code,
            Self::Failure => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}
