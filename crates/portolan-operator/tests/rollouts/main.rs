//! Rollouts on a real API server: what the operator makes of releases, people, accidents and its own death.
//!
//! Each test has a namespace and an operator of its own. An observer reads every version of every object and checks the
//! rules about traffic, whatever the test is about. Rollouts mostly wait, so the cases of a file run together.

use futures_util::future::BoxFuture;

/// Makes one test of several cases, which run at the same time.
macro_rules! together {
    ($test:ident: $($case:ident),+ $(,)?) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            $crate::run_together(vec![$((stringify!($case), Box::pin($case()))),+]).await;
        }
    };
}
pub(crate) use together;

mod accidents;
mod bed;
mod death;
mod deletion;
mod measured;
mod mesh;
mod observer;
mod people;
mod quiet;
mod refusals;
mod releases;
mod rights;

/// Runs cases at the same time; fails with the names of those that fail.
async fn run_together(cases: Vec<(&'static str, BoxFuture<'static, ()>)>) {
    let started: Vec<_> = cases
        .into_iter()
        .map(|(name, case)| (name, tokio::spawn(case)))
        .collect();
    let mut failed = Vec::new();
    for (name, case) in started {
        if case.await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}
