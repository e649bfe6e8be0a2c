//! What every look shares.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use portolan_client::EventPublisher;
use portolan_cluster::{Cluster, ClusterError, EventRecorder};
use tokio::sync::mpsc;

use crate::caches::Caches;
use crate::interests::Interests;
use crate::measure::Measure;
use crate::memory::Memory;
use crate::metrics::OperatorMetrics;
use crate::point::{Deadly, Point};
use crate::queue::{Key, Queue};
use crate::webhook::Webhooks;

/// Who the objects belong to.
pub(crate) const MANAGER: &str = "portolan-rollout";

/// Changes are gathered for this long before a rollout is looked at, because they come in bursts.
const GATHER: Duration = Duration::from_millis(50);

/// What every look shares.
pub(crate) struct Context {
    pub(crate) cluster: Cluster,
    pub(crate) caches: Arc<Caches>,
    pub(crate) queue: Queue,
    pub(crate) memory: Memory,
    pub(crate) interests: Interests,
    pub(crate) events: EventRecorder,
    /// Tells a fleet server.
    pub(crate) publisher: EventPublisher,
    pub(crate) measure: Arc<dyn Measure>,
    pub(crate) webhooks: Webhooks,
    pub(crate) metrics: OperatorMetrics,
    /// Work that a look starts and does not wait for.
    pub(crate) jobs: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    pub(crate) deadly: Option<Deadly>,
}

impl Context {
    /// Asks for a look soon.
    pub(crate) fn wake(&self, key: &Key) {
        self.queue.add(key.clone(), GATHER);
    }

    /// Starts work that a look does not wait for. It ends with the operator's leadership.
    pub(crate) fn start(&self, job: impl Future<Output = ()> + Send + 'static) {
        // The receiver is gone only when nothing is to be done any more.
        let _ = self.jobs.send(Box::pin(job));
    }

    /// A write was made; in tests the process may die here.
    pub(crate) async fn wrote(&self, point: Point) {
        if self.deadly.as_ref().is_some_and(|deadly| deadly(point)) {
            std::future::pending::<()>().await;
        }
    }
}

/// Why a look was given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A revision that is to run is known by name only.
    #[error("the template of revision {0} is not known: its ControllerRevision is gone")]
    RevisionGone(String),
    /// Nothing is known of the rollout but its name.
    #[error("the rollout is nested too deep to be read")]
    TooDeep,
}
