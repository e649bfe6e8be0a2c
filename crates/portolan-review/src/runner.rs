//! Runs the engine units of a review: the binary shows them and stops at Ctrl-C, other programs only wait for the
//! end.

use portolan_engine::{Journal, JournalOptions, Limits, Report, Run};
use portolan_object::Finding;
use portolan_vfs::Vfs;
use tokio::runtime::Runtime;

use crate::ReviewError;

/// Runs engine units to their end.
pub trait Runner {
    /// Why a run did not come to its end.
    type Error: From<ReviewError>;

    /// Takes what will not be looked at, or only nearly, before the work begins; whoever wants it at the end finds it in
    /// the answer as well.
    fn take_not_covered(&self, _findings: &[Finding], _files: &dyn Vfs, _several_clusters: bool) {}

    /// Runs the units that `plan` adds and waits for all of them.
    fn run(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, Self::Error>;

    /// Runs the units of an experiment, which is no part of the answer and is not shown.
    fn run_unseen(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, Self::Error>;
}

/// Runs without showing anything, on a runtime of its own: for programs and tests.
pub struct QuietRunner(Runtime);

impl QuietRunner {
    /// Starts the threads.
    pub fn new() -> std::io::Result<Self> {
        Runtime::new().map(Self)
    }
}

impl Runner for QuietRunner {
    type Error = ReviewError;

    fn run(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, ReviewError> {
        let journal = Journal::in_memory(JournalOptions::default());
        let run = Run::new(Limits::default(), journal);
        Ok(self.0.block_on(async {
            plan(&run);
            run.finish().await
        }))
    }

    fn run_unseen(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, ReviewError> {
        self.run(plan)
    }
}
