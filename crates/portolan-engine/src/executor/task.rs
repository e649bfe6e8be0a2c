//! A task that runs one attempt of an asynchronous unit.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{Attempting, Executor, Next, decline, discard};
use crate::graph::{Launch, UnitId};
use crate::unit::{Attempt, AttemptFuture, Call, Work};
use crate::{Context, Failure};

pub(super) async fn run(executor: Arc<Executor>, launch: Launch) {
    if launch.token.is_cancelled() {
        let (id, over) = (launch.id, decline(launch));
        return executor.change(|graph, effects| graph.close(id, over, effects));
    }
    let (attempting, work) = Attempting::begin(launch);
    let cx = Context::new(
        &executor,
        attempting.id,
        &attempting.active,
        &attempting.token,
    );
    let attempt = Placed {
        executor: Arc::clone(&executor),
        id: attempting.id,
        called_off: attempting.watch(),
        work: Some(call(work, cx)),
    }
    .await;
    let (id, token) = (attempting.id, attempting.token.clone());
    match executor.judge(attempting, attempt) {
        Next::End(over) => executor.change(|graph, effects| graph.close(id, over, effects)),
        Next::Rest { delay, unit, life } => {
            executor.change(|graph, _| graph.rest(id));
            executor.rest(id, token, delay, unit, life);
        }
    }
}

/// The unit's function is called at the first poll, where a panic is caught.
fn call(work: Work, cx: Context) -> AttemptFuture {
    match work {
        Work::Async(_, Call::Once(work)) => Box::pin(async move { work(cx).await }),
        Work::Async(_, Call::Again(work)) => Box::pin(async move { work(cx).await }),
        Work::Sync(_) => Box::pin(async {
            Err(Failure::message(
                "a synchronous unit has no place in a task",
            ))
        }),
    }
}

/// An attempt that goes on only while it has a place, and not after it is called off.
struct Placed {
    executor: Arc<Executor>,
    id: UnitId,
    called_off: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    work: Option<AttemptFuture>,
}

impl Future for Placed {
    type Output = Option<Attempt>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Attempt>> {
        let this = self.get_mut();
        let polled = this.poll_attempt(cx);
        if polled.is_ready() {
            this.work.take().into_iter().for_each(discard);
        }
        polled
    }
}

impl Placed {
    fn poll_attempt(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Attempt>> {
        if let Some(called_off) = &mut self.called_off
            && called_off.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        if !self.executor.graph.lock().may_run(self.id, cx.waker()) {
            return Poll::Pending;
        }
        let Some(work) = &mut self.work else {
            return Poll::Ready(None);
        };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Err(panic) => Poll::Ready(Some(Err(Failure::panicked(&*panic)))),
            Ok(Poll::Ready(attempt)) => Poll::Ready(Some(attempt)),
            Ok(Poll::Pending) => {
                self.executor.change(|graph, _| graph.pend(self.id));
                Poll::Pending
            }
        }
    }
}

impl Attempting {
    /// Starts the first or next attempt of a unit that got its place.
    pub(super) fn begin(launch: Launch) -> (Self, Work) {
        let Launch {
            id,
            unit,
            life,
            token,
        } = launch;
        let again = unit.work.again().zip(unit.retry);
        let active = life.start();
        (
            Self {
                id,
                active,
                token,
                again,
                is_graceful: unit.is_graceful,
                weight: unit.weight,
            },
            unit.work,
        )
    }

    /// What ends the attempt from outside; a graceful unit watches by itself.
    fn watch(&self) -> Option<Pin<Box<WaitForCancellationFutureOwned>>> {
        let watched = (!self.is_graceful).then(|| CancellationToken::clone(&self.token));
        watched.map(|token| Box::pin(token.cancelled_owned()))
    }
}
