//! Results by digest: made once, found again, bounded.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan_engine::{
    Digest, Failure, Journal, JournalOptions, Limits, ResultLimits, Results, Run, Unit,
};
use proptest::prelude::*;
use tokio::sync::Semaphore;

const LIMITS: ResultLimits = ResultLimits {
    digests: 16,
    variants: 3,
};

fn digest(number: usize) -> Digest {
    Digest::of(&number.to_le_bytes())
}

fn made<T>(value: T) -> impl Future<Output = Result<Arc<T>, Infallible>> {
    std::future::ready(Ok(Arc::new(value)))
}

#[tokio::test]
async fn a_result_is_made_once_and_found_again() {
    let results = Results::new(LIMITS);
    let first = results.get_or_make(digest(1), made(10)).await.unwrap();
    let again = results.get_or_make(digest(1), made(11)).await.unwrap();
    let other = results.get_or_make(digest(2), made(12)).await.unwrap();
    assert_eq!((*first, *again, *other), (10, 10, 12));
    assert_eq!((results.counts().made, results.counts().found), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn units_that_want_the_same_wait_for_the_one_that_makes_it() {
    let run = Run::new(
        Limits::default(),
        Journal::in_memory(JournalOptions::default()),
    );
    let results = Arc::new(Results::new(LIMITS));
    let makers = Arc::new(AtomicUsize::new(0));
    for unit in 0..64 {
        let (results, makers) = (Arc::clone(&results), Arc::clone(&makers));
        run.add(
            format!("unit {unit}"),
            &[],
            Unit::io(move |cx| async move {
                let inputs = digest(unit % 4);
                let result = results.get_or_make(inputs, async {
                    makers.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Failure>(Arc::new(cx.compute(move || unit % 4).await))
                });
                Ok(*result.await?)
            }),
        );
    }
    let report = run.finish().await;
    assert!(report.is_success());
    assert_eq!(makers.load(Ordering::SeqCst), 4);
    for unit in 0..64 {
        let key = format!("unit {unit}").into();
        assert_eq!(report.output::<usize>(&key).as_deref(), Some(&(unit % 4)));
    }
}

#[tokio::test]
async fn a_failure_is_not_kept_and_the_next_one_tries() {
    let results = Results::new(LIMITS);
    let failed = results.get_or_make(digest(1), async { Err("no such chart") });
    assert_eq!(failed.await, Err("no such chart"));
    assert_eq!(*results.get_or_make(digest(1), made(1)).await.unwrap(), 1);
}

/// Whoever was making a result and is dropped leaves the slot to the next.
#[tokio::test]
async fn a_maker_that_is_cancelled_leaves_its_place() {
    let results = Arc::new(Results::new(LIMITS));
    let begun = Arc::new(Semaphore::new(0));
    let stuck = tokio::spawn({
        let (results, begun) = (Arc::clone(&results), Arc::clone(&begun));
        async move {
            let never = async {
                begun.add_permits(1);
                std::future::pending::<Result<Arc<i32>, Infallible>>().await
            };
            let _ = results.get_or_make(digest(1), never).await;
        }
    });
    let _begun = begun.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let results = Arc::clone(&results);
        async move { *results.get_or_make(digest(1), made(7)).await.unwrap() }
    });
    stuck.abort();
    assert_eq!(waiting.await.unwrap(), 7);
}

#[tokio::test]
async fn of_several_results_the_newest_that_holds_is_found_and_the_oldest_goes() {
    let results = Results::new(LIMITS);
    for value in 1..=4 {
        results.of(digest(1)).await.keep(Arc::new(value));
    }
    let slot = results.of(digest(1)).await;
    assert_eq!(slot.find(|value| value % 2 == 0).as_deref(), Some(&4));
    assert_eq!(slot.find(|value| *value == 2).as_deref(), Some(&2));
    assert_eq!(slot.find(|value| *value == 1), None);
}

#[tokio::test]
async fn what_nobody_asked_for_since_the_last_time_is_forgotten() {
    let results = Results::new(LIMITS);
    results.get_or_make(digest(1), made(1)).await.unwrap();
    results.get_or_make(digest(2), made(2)).await.unwrap();
    results.forget_unused();
    assert_eq!(results.len(), 2);
    results.get_or_make(digest(2), made(0)).await.unwrap();
    results.forget_unused();
    assert_eq!(results.len(), 1);
    assert_eq!(*results.get_or_make(digest(2), made(0)).await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_being_made_is_never_forgotten() {
    let results = Results::new(ResultLimits {
        digests: 1,
        variants: 1,
    });
    let held = results.of(digest(0)).await;
    for other in 1..100 {
        results
            .get_or_make(digest(other), made(other))
            .await
            .unwrap();
    }
    results.forget_unused();
    results.forget_unused();
    assert!(results.len() <= 2, "{}", results.len());
    held.keep(Arc::new(1000));
    assert_eq!(
        *results.get_or_make(digest(0), made(0)).await.unwrap(),
        1000
    );
}

/// What is asked of results.
#[derive(Debug, Clone)]
enum Ask {
    Make(usize),
    Fail(usize),
    Forget,
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        8 => (0_usize..40).prop_map(Ask::Make),
        2 => (0_usize..40).prop_map(Ask::Fail),
        1 => Just(Ask::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked in whatever order: a result belongs to its digest, what was used last is still there, and no
    /// more is kept than the limit.
    #[test]
    fn results_belong_to_their_digest_and_stay_bounded(asks in prop::collection::vec(ask(), 1..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let results = Results::new(LIMITS);
            let mut newest = HashMap::new();
            for (moment, ask) in asks.into_iter().enumerate() {
                match ask {
                    Ask::Make(inputs) => {
                        let made = results.get_or_make(digest(inputs), made((inputs, moment))).await.unwrap();
                        prop_assert_eq!(made.0, inputs);
                        prop_assert!(made.1 == moment || newest.get(&inputs) == Some(&made.1));
                        newest.insert(inputs, made.1);
                        let again = results.get_or_make(digest(inputs), self::made((0, 0))).await.unwrap();
                        prop_assert_eq!(again, made);
                    }
                    Ask::Fail(inputs) => {
                        let asked = results.get_or_make(digest(inputs), async { Err::<Arc<(usize, usize)>, _>(()) });
                        if let Ok(found) = asked.await {
                            prop_assert_eq!(newest.get(&inputs), Some(&found.1));
                        }
                    }
                    Ask::Forget => results.forget_unused(),
                }
                prop_assert!(results.len() <= LIMITS.digests + 1);
            }
            Ok(())
        })?;
    }
}
