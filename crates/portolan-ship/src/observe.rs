//! The one place where work meets the engine: everything that builds, tests, deploys or verifies runs through it.
//!
//! The engine queues, starts and ends each unit and writes that down; the work gets a [`Task`] and returns a result. So no
//! work can forget an event, send a second end, or be seen in a state that it is not in.

use std::fmt;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_engine::{Context, Failure, Retry, Unit};
use serde::Serialize;

use crate::output_log::OutputLog;
use crate::runs::ShipRun;
use crate::task::Task;

/// What work leaves behind that a reader of events wants to know.
pub(crate) trait Summarised {
    /// A few fields.
    fn summary(&self) -> impl Serialize;
}

/// How much work is put into a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effort {
    /// How often it is done again when it failed.
    pub(crate) retries: u32,
    /// How many of the places of `--jobs` it takes.
    pub(crate) weight: usize,
}

/// Work that takes one place and is done once.
pub(crate) const ONCE: Effort = Effort {
    retries: 0,
    weight: 1,
};

/// Work on one target, as a unit of the engine. It runs on a thread of its own, is waited for when it is called off, and can
/// be queued again after it failed.
pub(crate) fn observe<T, E>(
    name: &str,
    run: &ShipRun,
    effort: Effort,
    work: impl Fn(&Context, &Task) -> Result<T, E> + Send + Sync + 'static,
) -> Unit<T>
where
    T: Summarised + Send + Sync + 'static,
    E: Into<Failure> + Send + 'static,
{
    let target: Arc<str> = name.into();
    let work = Arc::new(work);
    let (directory, scratch) = (run.output(), run.scratch());
    let attempt = move |context: Context| {
        let (target, work) = (Arc::clone(&target), Arc::clone(&work));
        attempt(context, target, directory.clone(), scratch.clone(), work)
    };
    Retry::attempts(effort.retries.saturating_add(1))
        .process(attempt)
        .graceful()
        .weighing(effort.weight)
        .repeatable()
}

/// Does the work once.
async fn attempt<T, E>(
    context: Context,
    name: Arc<str>,
    directory: Utf8PathBuf,
    scratch: Utf8PathBuf,
    work: Arc<impl Fn(&Context, &Task) -> Result<T, E> + Send + Sync + 'static>,
) -> Result<T, Failure>
where
    T: Summarised + Send + Sync + 'static,
    E: Into<Failure> + Send + 'static,
{
    let output = OutputLog::begin(&directory, &name)?;
    let scratch = tempfile::Builder::new()
        .prefix("work-")
        .tempdir_in(scratch)?;
    let path = Utf8PathBuf::from_path_buf(scratch.path().to_owned());
    let path = path.map_err(|_| NotUtf8)?;
    let done = tokio::task::spawn_blocking(move || {
        let task = Task::new(context.clone(), path, output);
        let done = work(&context, &task).map_err(Into::into);
        // Its files go before its end is told: nothing is left of work that has ended.
        let removed = scratch.close();
        let done = done?;
        removed?;
        context.summary(&done.summary())?;
        Ok::<T, Failure>(done)
    });
    match done.await {
        Ok(done) => done,
        Err(panic) => Err(Failure::message(format!("panicked: {panic}"))),
    }
}

/// The directory for temporary files cannot be used.
#[derive(Debug)]
struct NotUtf8;

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the path of the directory for temporary files is not UTF-8; set TMPDIR to another one",
        )
    }
}

impl std::error::Error for NotUtf8 {}
