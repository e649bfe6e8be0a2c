//! A thread that runs synchronous units, one after another, until none is left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Attempting, Executor, Next, decline};
use crate::graph::{Job, Launch};
use crate::unit::{Attempt, Call, Work};
use crate::{Context, Failure};

/// Works until the `cpu` line is empty, then gives the place back.
pub(super) fn drain(executor: &Arc<Executor>) {
    let mut job = executor.change(|graph, _| graph.next_job());
    while let Some(next) = job {
        job = match next {
            Job::Unit(launch) => run(executor, launch),
            Job::Compute(work) => {
                work();
                executor.change(|graph, _| {
                    graph.computed();
                    graph.next_job()
                })
            }
        };
    }
}

/// Runs one attempt; returns the thread's next job.
fn run(executor: &Arc<Executor>, launch: Launch) -> Option<Job> {
    if launch.token.is_cancelled() {
        let (id, over) = (launch.id, decline(launch));
        return executor.change(|graph, effects| graph.close_and_next(id, over, effects));
    }
    let (attempting, work) = Attempting::begin(launch);
    let cx = Context::new(
        executor,
        attempting.id,
        &attempting.active,
        &attempting.token,
    );
    let attempt = call(work, &cx);
    let (id, token) = (attempting.id, attempting.token.clone());
    match executor.judge(attempting, Some(attempt)) {
        Next::End(over) => {
            executor.change(|graph, effects| graph.close_and_next(id, over, effects))
        }
        Next::Rest { delay, unit, life } => {
            let job = executor.change(|graph, _| {
                graph.rest(id);
                graph.next_job()
            });
            executor.rest(id, token, delay, unit, life);
            job
        }
    }
}

fn call(work: Work, cx: &Context) -> Attempt {
    let work = AssertUnwindSafe(|| match work {
        Work::Sync(Call::Once(work)) => work(cx),
        Work::Sync(Call::Again(work)) => work(cx),
        Work::Async(..) => Err(Failure::message(
            "an asynchronous unit has no place on a thread",
        )),
    });
    catch_unwind(work).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}
