//! How a run on this node is steered from outside: how far it may go, whether it goes on, and the lease under which it
//! starts steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_fleet::NodeStop;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::lease::DispatchLease;
use crate::shares::LargeResult;
use crate::validity::NodeValidity;
use crate::wire::{SideAnswer, SideRequest};

/// The lease of the agent, which all its runs share.
pub(crate) type SharedLease = Arc<Mutex<DispatchLease>>;

/// How often something that nobody is told of is looked at: whether the lease came back, whether a lock is free.
const LOOK: Duration = Duration::from_millis(100);

/// What allows a run to start steps.
pub(crate) enum StartPermission {
    /// The lease that a server granted.
    Lease(SharedLease),
    /// The certificate of the node: a run that it makes itself needs no server.
    Certificate(Arc<NodeValidity>),
}

impl StartPermission {
    fn may_start(&self) -> bool {
        match self {
            Self::Lease(lease) => lease
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .may_start(),
            Self::Certificate(validity) => !validity.has_ended(),
        }
    }
}

/// Steers one run.
pub(crate) struct RunControl {
    inner: Mutex<Inner>,
    changed: Condvar,
    permission: StartPermission,
    /// Whether it has come to its steps.
    has_begun: AtomicBool,
    /// Ends the step at work.
    pub(super) kill: CancellationToken,
}

struct Inner {
    phase: usize,
    /// Whether the server has ordered the run over the newest stream. A new stream brings a new lease, and the run may have
    /// been given up while there was none.
    is_confirmed: bool,
    stop: Option<StopReason>,
    news: News,
    /// Steps that the node gave back and that the news may still have.
    given_back: BTreeSet<String>,
    /// Steps that other nodes should take, and what they answered, by step and item.
    asked: BTreeMap<(String, String), SideRequest>,
    answers: BTreeMap<(String, String), SideAnswer>,
}

/// What the server last said about other nodes.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Results of steps on the first node; null for one without.
    pub(super) shared: Map<String, Value>,
    /// Results of steps on all nodes, by step and node; null if they are too large together.
    pub(super) results: Map<String, Value>,
    /// Those that are stored apart.
    pub(super) large_shared: BTreeMap<String, LargeResult>,
    pub(super) large_results: BTreeMap<String, BTreeMap<String, LargeResult>>,
    /// Steps that few nodes take at the same time, and that this one may take.
    pub(super) permits: BTreeSet<String>,
    /// How many barriers the first node has come to.
    pub(super) first_passed: usize,
}

impl News {
    /// Reads what a server sent; `None` if it is something else.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut values: Map<String, Value> = serde_json::from_slice(text).ok()?;
        let mut map = |key: &str| match values.remove(key) {
            None => Some(Map::new()),
            Some(Value::Object(map)) => Some(map),
            Some(_) => None,
        };
        let (shared, results) = (map("shared")?, map("results")?);
        let mut large = |key: &str| values.remove(key).unwrap_or_else(|| json!({}));
        let large_shared = serde_json::from_value(large("largeShared")).ok()?;
        let large_results = serde_json::from_value(large("largeResults")).ok()?;
        let permits = values.get("permits").and_then(Value::as_array);
        let permits = permits.into_iter().flatten().filter_map(Value::as_str);
        let passed = values.get("firstPassed").and_then(Value::as_u64);
        Some(Self {
            shared,
            results,
            large_shared,
            large_results,
            permits: permits.map(str::to_owned).collect(),
            first_passed: usize::try_from(passed.unwrap_or_default()).unwrap_or(usize::MAX),
        })
    }
}

/// What another node gave as the result of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// The result.
    Value(Value),
    /// It is stored apart.
    Apart(LargeResult),
}

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The server wants the node to end.
    Cancelled,
    /// The agent ends; the run goes on when it is back.
    Suspended,
}

impl From<StopReason> for NodeStop {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Suspended => Self::AgentEnds,
        }
    }
}

impl RunControl {
    pub(super) fn new(phase: usize, lease: SharedLease) -> Self {
        Self::with(phase, StartPermission::Lease(lease))
    }

    /// A run that the node makes itself: no other node is waited for.
    pub(crate) fn of_node(validity: Arc<NodeValidity>) -> Self {
        Self::with(usize::MAX, StartPermission::Certificate(validity))
    }

    fn with(phase: usize, permission: StartPermission) -> Self {
        Self {
            inner: Mutex::new(Inner {
                phase,
                is_confirmed: true,
                stop: None,
                news: News::default(),
                given_back: BTreeSet::new(),
                asked: BTreeMap::new(),
                answers: BTreeMap::new(),
            }),
            changed: Condvar::new(),
            permission,
            has_begun: AtomicBool::new(false),
            kill: CancellationToken::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the run pass the barriers below a phase.
    pub(super) fn open(&self, phase: usize) {
        let mut inner = self.lock();
        inner.phase = inner.phase.max(phase);
        inner.is_confirmed = true;
        self.changed.notify_all();
    }

    /// There is a new stream: no step is started until the server orders the run again.
    pub(super) fn doubt(&self) {
        self.lock().is_confirmed = false;
    }

    /// The phase that the run may take.
    pub(super) fn phase(&self) -> usize {
        self.lock().phase
    }

    /// Ends the run after its current step; with `now`, that is ended as well.
    pub(crate) fn stop(&self, reason: StopReason, now: bool) {
        self.lock().stop.get_or_insert(reason);
        if now {
            self.kill.cancel();
        }
        self.changed.notify_all();
    }

    /// Why the run was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        self.lock().stop
    }

    /// Waits until a step may be started: nobody stopped the run, the server still wants it, and the lease is valid.
    pub(super) fn wait_for_lease(&self) -> Result<(), NodeStop> {
        self.wait_until(|inner| inner.is_confirmed && self.permission.may_start())
    }

    /// The run has come to its steps: it waits neither for files nor for other runs any more.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Whether the run has come to its steps.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Waits until a barrier is open.
    pub(super) fn wait_for_barrier(&self, barrier: usize) -> Result<(), NodeStop> {
        self.wait_until(|inner| inner.phase > barrier)
    }

    /// The server said what other nodes did.
    pub(super) fn hear(&self, news: News) {
        self.lock().news = news;
        self.changed.notify_all();
    }

    /// Something changed that runs may wait for.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits until the first node has given the result of a step, or is behind it: null without a result.
    pub(super) fn wait_for_first(&self, step: &str, passed: usize) -> Result<Given, NodeStop> {
        self.wait_until(|inner| {
            inner.news.shared.contains_key(step)
                || inner.news.large_shared.contains_key(step)
                || inner.news.first_passed > passed
        })?;
        let inner = self.lock();
        if let Some(large) = inner.news.large_shared.get(step) {
            return Ok(Given::Apart(large.clone()));
        }
        let value = inner.news.shared.get(step).cloned();
        Ok(Given::Value(value.unwrap_or_default()))
    }

    /// The results of a step on all nodes, which the server sends when the barrier behind that step opens. `None` if they
    /// are too large together, or the run was stopped.
    pub(super) fn results(&self, step: &str) -> Option<BTreeMap<String, Given>> {
        self.wait_until(|inner| inner.news.results.contains_key(step))
            .ok()?;
        let inner = self.lock();
        let Some(Value::Object(small)) = inner.news.results.get(step) else {
            return None;
        };
        let small = small.iter();
        let mut all: BTreeMap<String, Given> = small
            .map(|(node, value)| (node.clone(), Given::Value(value.clone())))
            .collect();
        let large = inner.news.large_results.get(step).into_iter().flatten();
        all.extend(large.map(|(node, large)| (node.clone(), Given::Apart(large.clone()))));
        Some(all)
    }

    /// Whether the run ends here, and with it everything that is waited for.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped().is_some()
    }

    /// Waits until the server has seen that the node gave a step back, if it did.
    pub(super) fn forget_permit(&self, step: &str) -> Result<(), NodeStop> {
        self.wait_until(|inner| {
            !inner.given_back.contains(step) || !inner.news.permits.contains(step)
        })?;
        self.lock().given_back.remove(step);
        Ok(())
    }

    /// Waits until the node may take a step that few may take at the same time.
    pub(super) fn wait_for_permit(&self, step: &str) -> Result<(), NodeStop> {
        self.wait_until(|inner| inner.news.permits.contains(step))
    }

    pub(super) fn give_back(&self, step: &str) {
        self.lock().given_back.insert(step.to_owned());
    }

    /// Remembers a question, so that it is asked again until it is answered.
    pub(super) fn ask(&self, request: &SideRequest) {
        let key = (request.step.clone(), request.item.clone());
        self.lock().asked.insert(key, request.clone());
    }

    /// Questions without an answer.
    pub(super) fn unanswered(&self) -> Vec<SideRequest> {
        self.lock().asked.values().cloned().collect()
    }

    pub(super) fn answer(&self, answer: SideAnswer) {
        let key = (answer.step.clone(), answer.item.clone());
        let mut inner = self.lock();
        if inner.asked.remove(&key).is_some() {
            inner.answers.insert(key, answer);
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Waits for the answer to a question.
    pub(super) fn wait_for_answer(&self, step: &str, item: &str) -> Result<SideAnswer, NodeStop> {
        let key = (step.to_owned(), item.to_owned());
        let mut inner = self.lock();
        loop {
            if let Some(answer) = inner.answers.remove(&key) {
                return Ok(answer);
            }
            // A run that is cancelled lets its current step end, wherever that is taken.
            match inner.stop {
                Some(StopReason::Cancelled) if !self.kill.is_cancelled() => {}
                Some(reason) => return Err(reason.into()),
                None => {}
            }
            let waited = self.changed.wait_timeout(inner, LOOK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until something holds that nobody tells; `Err` when the run was stopped meanwhile.
    pub(super) fn wait_while_not(&self, mut holds: impl FnMut() -> bool) -> Result<(), NodeStop> {
        self.wait_until(|_| holds())
    }

    /// Waits for some time; `false` when the run was stopped meanwhile.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let inner = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(inner, time, |inner| inner.stop.is_none());
        waited.is_ok_and(|(inner, _)| inner.stop.is_none())
    }

    fn wait_until(&self, mut holds: impl FnMut(&Inner) -> bool) -> Result<(), NodeStop> {
        let mut inner = self.lock();
        loop {
            if let Some(reason) = inner.stop {
                return Err(reason.into());
            }
            if holds(&inner) {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(inner, LOOK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
