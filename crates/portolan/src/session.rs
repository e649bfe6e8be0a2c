//! One engine run of a command: shown while it runs, recorded if asked, stopped by Ctrl-C.
//!
//! ```text
//! units ──▶ Run ──▶ Journal ──┬─▶ view (one line on a terminal, plain lines elsewhere)
//!                             ├─▶ --events FILE
//!                             └─▶ log
//! ```

mod events;
#[cfg(feature = "ship")]
mod lines;
mod log;
mod view;

#[cfg(feature = "ship")]
pub(crate) use events::typed;

use std::time::{SystemTime, UNIX_EPOCH};

use portolan_engine::{CancellationToken, Journal, JournalOptions, Limits, Report, Run};
use portolan_object::Finding;
use portolan_review::Runner;
use portolan_vfs::Vfs;
use tracing::info;

use crate::app::App;
use crate::error::CommandError;
use crate::printer::ProgressStyle;
use crate::repository::tell;

/// Runs of a review, shown as those of every command.
pub(crate) struct ShownRuns<'a> {
    app: &'a App,
    /// Ends the runs before their time; Ctrl-C does too.
    token: Option<CancellationToken>,
    /// Whether the command has its own way to tell what is not looked at.
    is_judged: bool,
}

impl<'a> ShownRuns<'a> {
    /// Runs that say before the work what will not be looked at.
    pub(crate) fn new(app: &'a App) -> Self {
        Self {
            app,
            token: None,
            is_judged: false,
        }
    }

    /// Runs of a command that tells what was not looked at in its answer.
    pub(crate) fn judged(app: &'a App) -> Self {
        Self {
            is_judged: true,
            ..Self::new(app)
        }
    }

    /// Runs until a token is cancelled.
    pub(crate) fn under(token: &CancellationToken, app: &'a App) -> Self {
        Self {
            token: Some(token.clone()),
            ..Self::new(app)
        }
    }
}

impl Runner for ShownRuns<'_> {
    type Error = CommandError;

    fn take_not_covered(&self, findings: &[Finding], files: &dyn Vfs, several_clusters: bool) {
        if !self.is_judged {
            tell(
                findings.to_vec(),
                files,
                several_clusters,
                &self.app.printer,
            );
        }
    }

    fn run(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, CommandError> {
        match &self.token {
            Some(token) => run_under(token, self.app, plan),
            None => run(self.app, plan),
        }
    }

    fn run_unseen(&self, plan: &mut dyn FnMut(&Run)) -> Result<Report, CommandError> {
        run_unseen(self.app, plan)
    }
}

/// Runs the units that `plan` adds and waits for all of them.
pub(crate) fn run(app: &App, plan: impl FnOnce(&Run)) -> Result<Report, CommandError> {
    run_under(app.cancellation()?, app, plan)
}

/// Runs the units of an experiment, of which nothing is shown or written down: it is no part of the answer.
fn run_unseen(app: &App, plan: impl FnOnce(&Run)) -> Result<Report, CommandError> {
    let runtime = app.runtime()?;
    let token = app.cancellation()?;
    let journal = Journal::in_memory(JournalOptions {
        keep_units: false,
        ..JournalOptions::default()
    });
    let run = Run::new(Limits::default(), journal).under(token);
    let report = runtime.block_on(async {
        plan(&run);
        run.finish().await
    });
    if token.is_cancelled() {
        Err(CommandError::interrupted(&report))
    } else {
        Ok(report)
    }
}

/// How many bytes of events stay in memory when they are only shown: whoever shows a run may miss some.
const UNWRITTEN_EVENTS_BYTES: usize = 1 << 20;

/// Runs the units that `plan` adds and waits for all of them, or until the token is cancelled.
fn run_under(
    token: &CancellationToken,
    app: &App,
    plan: impl FnOnce(&Run),
) -> Result<Report, CommandError> {
    let options = JournalOptions::default();
    let ring_bytes = match app.printer.events() {
        Some(_) => options.ring_bytes,
        None => UNWRITTEN_EVENTS_BYTES,
    };
    let journal = Journal::in_memory(JournalOptions {
        epoch_ms: wall_clock_ms(),
        ring_bytes,
        keep_units: false,
        ..options
    });
    let style = app.printer.progress_style();
    let shown = ShownRun {
        journal,
        limits: Limits::default(),
        style,
    };
    let report = shown.finish(token, app, plan)?;
    if token.is_cancelled() {
        Err(CommandError::interrupted(&report))
    } else {
        Ok(report)
    }
}

/// A run whose journal is given.
pub(crate) struct ShownRun {
    /// What its events go to.
    pub(crate) journal: Journal,
    /// How many units run at the same time.
    pub(crate) limits: Limits,
    /// How it is shown.
    pub(crate) style: ProgressStyle,
}

impl ShownRun {
    /// Runs the units that `plan` adds and waits for all of them; when the token is cancelled, which Ctrl-C does, those that
    /// are left are told as cancelled.
    pub(crate) fn finish(
        self,
        token: &CancellationToken,
        app: &App,
        plan: impl FnOnce(&Run),
    ) -> Result<Report, CommandError> {
        let printer = &app.printer;
        let sink = events::Sink::open(printer)?;
        let runtime = app.runtime()?;
        let interrupted = app.cancellation()?.clone();
        let Self {
            journal,
            limits,
            style,
        } = self;
        let report = runtime.block_on(async {
            let run = Run::new(limits, journal.clone()).under(token);
            let view = tokio::spawn(view::follow(journal.after(0), style, printer.hidden()));
            let events = tokio::spawn(events::follow(journal.after(0), sink, printer.hidden()));
            let log = tokio::spawn(log::follow(journal.after(0), printer.hidden()));
            let cancelled = token.clone();
            let interrupt = tokio::spawn(async move {
                interrupted.cancelled().await;
                cancelled.cancel();
            });
            plan(&run);
            let report = run.finish().await;
            interrupt.abort();
            journal.close();
            // A view that panicked has nothing left to show; the report is what counts.
            let _ = tokio::join!(view, log);
            let written = events.await.unwrap_or(Ok(()));
            written.map(|()| report)
        })?;
        let counts = report.counts();
        info!(
            done = counts.done,
            failed = counts.failed,
            skipped = counts.skipped,
            cancelled = counts.cancelled,
            "run ended"
        );
        Ok(report)
    }
}

fn wall_clock_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
