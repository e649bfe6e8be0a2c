//! The tasks of one HTTP/2 connection: they end with it.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Runs a connection's tasks; when the last clone is dropped, they are cancelled.
#[derive(Clone, Default)]
pub(crate) struct ConnectionTasks(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for ConnectionTasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = tasks.try_join_next() {
            log_panic(&ended);
        }
        tasks.spawn(async move {
            task.await;
        });
    }
}

/// Logs a task that died; handlers are guarded, so this is a defect of ours or of a library.
pub(crate) fn log_panic(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task died");
    }
}
