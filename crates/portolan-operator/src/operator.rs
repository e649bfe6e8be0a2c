//! The operator: watches, waits for its turn to act, looks after every rollout, and ends in good order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use portolan_client::EventPublisher;
use portolan_cluster::kube::core::DynamicObject;
use portolan_cluster::{Cache, Cluster, ClusterError, EventRecorder, Lease, LeaseOptions};
use portolan_listen::{ListenConfig, Metrics};
use portolan_rollout::objects::ROLLOUT_LABEL;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::context::Context;
use crate::interests::Interests;
use crate::measure::Measure;
use crate::memory::{Interest, Memory};
use crate::metrics::OperatorMetrics;
use crate::observe::label;
use crate::point::Deadly;
use crate::queue::{Key, Queue};
use crate::reconcile::reconcile;
use crate::webhook::Webhooks;

/// So many rollouts are looked at at a time.
const AT_ONCE: usize = 32;

/// So many jobs beside looks run at a time: measurements, gates, messages.
const JOBS_AT_ONCE: usize = 128;

/// How long looks that have begun may take when the operator ends.
const LAST_LOOKS: Duration = Duration::from_secs(10);

/// One request may take so long: a rollout is not to hang on one.
const PATIENCE: Duration = Duration::from_secs(15);

/// The name by which events and leases know the operator.
const CONTROLLER: &str = "portolan.dev/rollout";

/// How an operator runs.
pub struct OperatorOptions {
    /// The cluster.
    pub cluster: Cluster,
    /// The only namespace that is looked after; all of them if left out.
    pub namespace: Option<String>,
    /// Where measurements come from.
    pub measure: Arc<dyn Measure>,
    /// The lease that decides which of several operators acts; without it this one always does.
    pub lease: Option<LeaseOptions>,
    /// Where a fleet server is told what becomes of rollouts.
    pub publisher: EventPublisher,
    /// The name of this process in events.
    pub instance: String,
    /// In tests, the writes after which the process dies.
    pub deadly: Option<Deadly>,
}

/// An operator.
pub struct Operator {
    ctx: Arc<Context>,
    jobs: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
    lease: Option<Lease>,
}

impl Operator {
    /// An operator that does nothing yet.
    pub fn new(options: OperatorOptions) -> Self {
        let cluster = options.cluster.with_patience(PATIENCE);
        let (sender, jobs) = mpsc::unbounded_channel();
        let lease = options.lease.map(|lease| Lease::new(&cluster, lease));
        let ctx = Context {
            events: EventRecorder::new(&cluster, CONTROLLER, &options.instance),
            caches: Arc::new(Caches::new(options.namespace.as_deref())),
            cluster,
            publisher: options.publisher,
            queue: Queue::default(),
            memory: Memory::default(),
            interests: Interests::default(),
            measure: options.measure,
            webhooks: Webhooks::new(),
            metrics: OperatorMetrics::new(),
            jobs: sender,
            deadly: options.deadly,
        };
        Self {
            ctx: Arc::new(ctx),
            jobs,
            lease,
        }
    }

    /// How to listen for those who want to know how it is: `/metrics`, `/healthz` and `/readyz`.
    pub fn listen_config(&self) -> ListenConfig {
        let metrics = Metrics::default();
        self.ctx.metrics.register(&metrics, &self.ctx.caches);
        let publisher = self.ctx.publisher.clone();
        metrics.add_text(Box::new(move || publisher.metrics()));
        let caches = Arc::clone(&self.ctx.caches);
        ListenConfig {
            metrics,
            readiness: Arc::new(move || caches.check()),
            ..ListenConfig::default()
        }
    }

    /// How many requests were sent that change something.
    pub fn writes(&self) -> u64 {
        self.ctx.cluster.writes()
    }

    /// Looks after rollouts until it is cancelled; then ends the looks that have begun and gives the lease back.
    pub async fn run(mut self, cancelled: CancellationToken) {
        let ctx = Arc::clone(&self.ctx);
        let follow = ctx
            .caches
            .follow(&ctx.cluster, |cache, object| wake(&ctx, cache, object));
        tokio::select! {
            () = follow => {}
            () = self.take_turns(&cancelled) => {}
        }
    }

    /// Acts whenever this operator holds the lease.
    async fn take_turns(&mut self, cancelled: &CancellationToken) {
        while !cancelled.is_cancelled() {
            let acquired = async {
                if let Some(lease) = &self.lease {
                    let trouble =
                        |error: &ClusterError| tracing::warn!(%error, "cannot get the lease");
                    lease.acquire(trouble).await;
                }
            };
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = acquired => {}
            }
            self.ctx.metrics.is_leading.set(1);
            tracing::info!("leading");
            self.lead(cancelled).await;
            self.ctx.metrics.is_leading.set(0);
            // What was remembered is what this operator wrote; another one may have written since.
            self.ctx.memory.clear();
            if let Some(lease) = &self.lease
                && let Err(error) = lease.release().await
            {
                tracing::warn!(%error, "cannot give the lease back");
            }
        }
    }

    /// Looks after rollouts until the lease is lost, at once, or until it is cancelled, when what has begun is ended.
    async fn lead(&mut self, cancelled: &CancellationToken) {
        let ctx = Arc::clone(&self.ctx);
        let lost = async {
            match &self.lease {
                Some(lease) => lease.keep().await,
                None => std::future::pending().await,
            }
        };
        for object in ctx.caches.rollouts.all() {
            wake(&ctx, &ctx.caches.rollouts, &object);
        }
        tokio::select! {
            () = lost => tracing::warn!("the lease is lost; nothing is written any more"),
            () = work(&ctx, &mut self.jobs, cancelled) => {}
        }
        // Jobs that were asked for and not begun belong to the time before.
        while self.jobs.try_recv().is_ok() {}
    }
}

/// Looks after rollouts until it is cancelled. Dropped, it stops everything at once.
async fn work(
    ctx: &Arc<Context>,
    jobs: &mut mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
    cancelled: &CancellationToken,
) {
    let mut looks: JoinSet<()> = JoinSet::new();
    let mut beside: JoinSet<()> = JoinSet::new();
    while ctx.caches.check().is_err() {
        tokio::select! {
            () = cancelled.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
    loop {
        ctx.metrics
            .queue
            .set(i64::try_from(ctx.queue.depth()).unwrap_or(i64::MAX));
        tokio::select! {
            () = cancelled.cancelled() => break,
            key = ctx.queue.next(), if looks.len() < AT_ONCE => {
                looks.spawn(look(Arc::clone(ctx), key));
            }
            Some(job) = jobs.recv(), if beside.len() < JOBS_AT_ONCE => {
                beside.spawn(job);
            }
            Some(ended) = looks.join_next() => log_panic(&ended),
            Some(ended) = beside.join_next() => log_panic(&ended),
        }
    }
    let rest = async {
        while let Some(ended) = looks.join_next().await {
            log_panic(&ended);
        }
    };
    if tokio::time::timeout(LAST_LOOKS, rest).await.is_err() {
        tracing::warn!("looks that took too long were given up");
    }
}

async fn look(ctx: Arc<Context>, key: Key) {
    let started = Instant::now();
    // A panic must not keep the rollout from being looked at again.
    let done = Done {
        ctx: &ctx,
        key: &key,
        again: Some(Duration::from_secs(30)),
    };
    let again = reconcile(&ctx, &key).await;
    ctx.metrics.looked(started.elapsed().as_secs_f64());
    done.with(again);
}

/// Says that a look is over, however it ends.
struct Done<'a> {
    ctx: &'a Context,
    key: &'a Key,
    again: Option<Duration>,
}

impl Done<'_> {
    fn with(mut self, again: Option<Duration>) {
        self.again = again;
    }
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.ctx.queue.done(self.key.clone(), self.again);
    }
}

fn log_panic(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task died");
    }
}

/// Asks for a look at every rollout that an object concerns.
fn wake(ctx: &Context, cache: &Cache, object: &DynamicObject) {
    let metadata = &object.metadata;
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let name = metadata.name.clone().unwrap_or_default();
    let kind = &cache.resource().kind;
    if *kind == ctx.caches.rollouts.resource().kind {
        ctx.wake(&Key { namespace, name });
        return;
    }
    if let Some(rollout) = label(object, ROLLOUT_LABEL) {
        let name = rollout.to_owned();
        ctx.wake(&Key {
            namespace: namespace.clone(),
            name,
        });
    }
    let interest = Interest {
        kind: kind.clone(),
        namespace,
        name,
    };
    for key in ctx.interests.of(&interest) {
        ctx.wake(&key);
    }
}

/// Answers `/metrics`, `/healthz` and `/readyz` until it is cancelled.
pub async fn serve(
    listener: TcpListener,
    config: ListenConfig,
    cancelled: CancellationToken,
) -> Result<(), portolan_listen::TlsError> {
    let router = axum::Router::new();
    portolan_listen::serve(listener, router, config, cancelled).await?;
    Ok(())
}
