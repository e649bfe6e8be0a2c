//! One builder for many artifacts, with a result for each as soon as it is known.
//!
//! ```text
//! batch/NAME: the builder ──settle──▶ artifact/web ends      the builder ends ──▶ what it left out fails
//!                         ──settle──▶ artifact/api ends      the builder fails ──▶ all that are open fail by one cause
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_engine::{Context, Failure, Key, Retry, Run, WaitError, with_causes};
use serde::Serialize;
use tokio::sync::watch;

use crate::builder::ShipError;
use crate::observe::{ONCE, Summarised, observe};
use crate::outcome::Built;
use crate::runs::ShipRun;
use crate::task::Task;

/// Builds many artifacts together: for tools that build a whole workspace at once.
pub trait BatchBuilder: Send + Sync + 'static {
    /// Builds them all. Each is settled as soon as its result is known; what is left out fails.
    ///
    /// # Errors
    /// What goes wrong with the whole: it is the cause of every artifact that is not settled.
    fn build_all(&self, batch: &Batch, task: &Task) -> Result<(), ShipError>;
}

/// The artifacts of a batch, and which of them are settled.
pub struct Batch {
    artifacts: Vec<String>,
    settled: Mutex<BTreeMap<String, Result<Built, String>>>,
    /// Why the whole went wrong.
    cause: Mutex<Option<String>>,
    news: watch::Sender<()>,
}

/// Why an artifact cannot be settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The batch has no such artifact.
    #[error("the batch has no artifact `{0}`")]
    Unknown(String),
    /// It has a result.
    #[error("the artifact `{0}` was settled before")]
    Twice(String),
}

impl Batch {
    /// The artifacts that are to be built.
    pub fn artifacts(&self) -> &[String] {
        &self.artifacts
    }

    /// Gives an artifact its result, which is told at once.
    ///
    /// # Errors
    /// When it is none of the batch, or has a result: the first one stands.
    pub fn settle(
        &self,
        artifact: &str,
        result: Result<Built, ShipError>,
    ) -> Result<(), BatchError> {
        if !self.artifacts.iter().any(|name| name == artifact) {
            return Err(BatchError::Unknown(artifact.to_owned()));
        }
        match self.settled().entry(artifact.to_owned()) {
            Entry::Occupied(_) => return Err(BatchError::Twice(artifact.to_owned())),
            Entry::Vacant(place) => {
                place.insert(result.map_err(|error| with_causes(&error)));
            }
        }
        self.news.send_replace(());
        Ok(())
    }

    fn settled(&self) -> MutexGuard<'_, BTreeMap<String, Result<Built, String>>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cause(&self) -> MutexGuard<'_, Option<String>> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of an artifact, if it has one.
    fn result(&self, artifact: &str) -> Option<Result<Built, Failure>> {
        let result = self.settled().get(artifact)?.clone();
        Some(result.map_err(Failure::message))
    }

    /// The result of an artifact that the builder did not settle: the batch has ended.
    fn left_out(&self, artifact: &str) -> Failure {
        match &*self.cause() {
            Some(cause) => Failure::message(cause.clone()),
            None => Failure::message(format!("the builder gave no result for `{artifact}`")),
        }
    }
}

/// Adds the artifacts of a batch and the work on it to a run.
pub(crate) fn plan_batch(
    name: &str,
    artifacts: &[&str],
    builder: impl BatchBuilder,
    run: &ShipRun,
    units: &Run,
) {
    let batch = Arc::new(Batch {
        artifacts: artifacts.iter().map(|&name| name.to_owned()).collect(),
        settled: Mutex::default(),
        cause: Mutex::default(),
        news: watch::Sender::new(()),
    });
    let key: Key<Finished> = Key::from(format!("batch/{name}").as_str());
    for artifact in artifacts {
        let (batch, key, artifact) = (Arc::clone(&batch), key.clone(), (*artifact).to_owned());
        let target = crate::build::key(&artifact);
        let wait = move |context: Context| {
            settled(context, Arc::clone(&batch), key.clone(), artifact.clone())
        };
        units.add(target, &[], Retry::attempts(1).io(wait));
    }
    let work = move |_: &Context, task: &Task| -> Result<Finished, Failure> {
        let done = builder.build_all(&batch, task);
        if let Err(error) = &done {
            *batch.cause() = Some(with_causes(error));
        }
        done?;
        Ok(Finished {
            artifacts: batch.settled().len(),
        })
    };
    units.add(key, &[], observe(&format!("batch-{name}"), run, ONCE, work));
}

/// Waits until an artifact is settled or the builder has ended.
async fn settled(
    context: Context,
    batch: Arc<Batch>,
    key: Key<Finished>,
    artifact: String,
) -> Result<Built, Failure> {
    let mut news = batch.news.subscribe();
    let found = async {
        loop {
            if let Some(result) = batch.result(&artifact) {
                return result;
            }
            // The sender is in the batch.
            let _ = news.changed().await;
        }
    };
    let built = tokio::select! {
        biased;
        result = found => result?,
        ended = context.output(&key) => match (batch.result(&artifact), ended) {
            (Some(result), _) => result?,
            (None, Err(cancelled @ WaitError::Cancelled { .. })) => return Err(cancelled.into()),
            (None, _) => return Err(batch.left_out(&artifact)),
        },
    };
    context.summary(&Summarised::summary(&built))?;
    Ok(built)
}

/// A batch whose builder has ended well.
#[derive(Debug)]
struct Finished {
    artifacts: usize,
}

impl Summarised for Finished {
    fn summary(&self) -> impl Serialize {
        serde_json::json!({"settled": self.artifacts})
    }
}
