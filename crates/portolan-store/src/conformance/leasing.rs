//! Leases that end, are renewed and revoked.

use std::sync::Arc;
use std::time::Duration;

use super::{SOON, next};
use crate::{Compare, Engine, Event, LeaseId, Range, Span, StoreError, Transaction, Update};

pub(super) async fn check(engine: &Arc<dyn Engine>) {
    an_ended_lease_takes_its_keys_in_one_revision(engine).await;
    a_renewed_lease_lives_on(engine).await;
    a_put_without_a_lease_leaves_it(engine).await;
    a_lease_that_is_gone_refuses_everything(engine).await;
}

async fn grant(engine: &Arc<dyn Engine>, seconds: u64) -> LeaseId {
    let time = Duration::from_secs(seconds);
    let (lease, granted) = engine.grant(time).await.expect("a lease");
    assert!(granted >= time, "granted {granted:?}, asked {time:?}");
    lease
}

async fn create(engine: &Arc<dyn Engine>, keys: &[&str], lease: LeaseId) -> u64 {
    let create = keys.iter().fold(Transaction::new(), |transaction, key| {
        let key = (*key).to_owned();
        transaction
            .when(Compare::absent(key.clone()))
            .put_leased(key, "x", lease)
    });
    let outcome = engine.transact(create).await.expect("an answer");
    assert!(outcome.succeeded);
    outcome.revision
}

async fn an_ended_lease_takes_its_keys_in_one_revision(engine: &Arc<dyn Engine>) {
    let lease = grant(engine, 1).await;
    let created = create(engine, &["/ends/b", "/ends/c", "/ends/a"], lease).await;
    let mut watcher = engine
        .watch(Span::prefix("/ends/"), created + 1)
        .await
        .expect("a watch");
    let Update::Changes { revision, events } = next(&mut watcher).await else {
        panic!("progress was not asked for");
    };
    let expected = ["/ends/a", "/ends/b", "/ends/c"].map(|key| Event::Delete {
        key: key.into(),
        mod_revision: revision,
    });
    assert_eq!(events, expected, "sorted, in one revision");
    gone(engine, lease).await;
}

async fn a_renewed_lease_lives_on(engine: &Arc<dyn Engine>) {
    let lease = grant(engine, 2).await;
    create(engine, &["/lives/a"], lease).await;
    let start = tokio::time::Instant::now();
    let lived = loop {
        let granted = engine.keep_alive(lease).await.expect("alive");
        if start.elapsed() > granted * 2 {
            break start.elapsed();
        }
        tokio::time::sleep(granted / 8).await;
    };
    let state = engine.lease(lease).await.expect("alive");
    assert!(lived > state.granted && state.remaining <= state.granted);
    assert_eq!(state.keys, ["/lives/a"]);
    engine.revoke(lease).await.expect("revoked");
    let page = engine.range(Range::key("/lives/a")).await.expect("a page");
    assert_eq!(page.records, []);
}

async fn a_put_without_a_lease_leaves_it(engine: &Arc<dyn Engine>) {
    let (first, second) = (grant(engine, 3600).await, grant(engine, 3600).await);
    let revision = create(engine, &["/leaves/a", "/leaves/b", "/leaves/c"], first).await;
    let change = Transaction::replace("/leaves/a", revision, "free")
        .when(Compare::unchanged("/leaves/b", revision))
        .put_leased("/leaves/b", "other", second);
    assert!(engine.transact(change).await.expect("an answer").succeeded);
    assert_eq!(
        engine.lease(first).await.expect("alive").keys,
        ["/leaves/c"]
    );
    engine.revoke(first).await.expect("revoked");
    let left = engine
        .range(Range::new(Span::prefix("/leaves/")))
        .await
        .expect("a page");
    let left: Vec<_> = left
        .records
        .iter()
        .map(|record| (&record.key[..], record.lease))
        .collect();
    assert_eq!(
        left,
        [(&b"/leaves/a"[..], None), (&b"/leaves/b"[..], Some(second))]
    );
    engine.revoke(second).await.expect("revoked");
}

async fn a_lease_that_is_gone_refuses_everything(engine: &Arc<dyn Engine>) {
    let lease = grant(engine, 3600).await;
    engine.revoke(lease).await.expect("revoked");
    gone(engine, lease).await;
    let before = engine.status().await.expect("a status").revision;
    let put = Transaction::create("/refused/a", "x")
        .when(Compare::absent("/refused/b"))
        .put_leased("/refused/b", "x", lease);
    let refused = engine.transact(put.clone()).await;
    assert!(
        matches!(refused, Err(StoreError::NoLease { .. })),
        "{refused:?}"
    );
    assert_eq!(
        engine.status().await.expect("a status").revision,
        before,
        "nothing was written"
    );
    // A failed compare comes first.
    let failed = engine
        .transact(put.when(Compare::unchanged("/refused/c", 1)))
        .await;
    assert!(!failed.expect("an answer").succeeded);
}

async fn gone(engine: &Arc<dyn Engine>, lease: LeaseId) {
    let deadline = tokio::time::Instant::now() + SOON;
    // Its keys go first; the lease itself may take a moment longer.
    while engine.keep_alive(lease).await.is_ok() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the lease is still there"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let state = engine.lease(lease).await;
    assert!(
        matches!(state, Err(StoreError::NoLease { .. })),
        "{state:?}"
    );
    let revoked = engine.revoke(lease).await;
    assert!(
        matches!(revoked, Err(StoreError::NoLease { .. })),
        "{revoked:?}"
    );
}
