//! Writes that get lost: before they arrive, after they took effect, or for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{
    Answer, Compare, Engine, EngineStatus, LeaseId, LeaseState, Outcome, Page, Range, Resolution,
    Revision, Span, Store, StoreError, Transaction, Watcher,
};

/// What happens to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It arrives and is answered.
    None,
    /// It never arrives.
    Request,
    /// It takes effect; its answer is lost.
    Answer,
    /// It is held up until [`LossyEngine::deliver`].
    Delayed,
}

/// An engine behind a network that loses what it is told to lose.
pub struct LossyEngine {
    inner: Arc<dyn Engine>,
    losses: Mutex<VecDeque<Loss>>,
    delayed: Mutex<Vec<Transaction>>,
}

impl LossyEngine {
    /// All is well at first.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            inner,
            losses: Mutex::default(),
            delayed: Mutex::default(),
        }
    }

    /// What happens to the next writes, in order.
    pub fn lose(&self, losses: impl IntoIterator<Item = Loss>) {
        self.losses.lock().extend(losses);
    }

    /// Lets everything arrive from now on.
    pub fn heal(&self) {
        self.losses.lock().clear();
    }

    /// Lets what was held up arrive. Returns which of it took effect.
    pub async fn deliver(&self) -> Vec<bool> {
        let delayed = std::mem::take(&mut *self.delayed.lock());
        let mut effects = Vec::new();
        for transaction in delayed {
            effects.push(
                self.inner
                    .transact(transaction)
                    .await
                    .expect("an answer")
                    .succeeded,
            );
        }
        effects
    }
}

fn lost() -> StoreError {
    StoreError::Unknown {
        operation: None,
        detail: "lost on the way".to_owned(),
    }
}

impl Engine for LossyEngine {
    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.inner.range(range)
    }

    fn transact(&self, transaction: Transaction) -> Answer<'_, Outcome> {
        let loss = self.losses.lock().pop_front().unwrap_or(Loss::None);
        Box::pin(async move {
            match loss {
                Loss::None => self.inner.transact(transaction).await,
                Loss::Request => Err(lost()),
                Loss::Answer => self
                    .inner
                    .transact(transaction)
                    .await
                    .and_then(|_| Err(lost())),
                Loss::Delayed => {
                    self.delayed.lock().push(transaction);
                    Err(lost())
                }
            }
        })
    }

    fn watch(&self, span: Span, from: Revision) -> Answer<'_, Watcher> {
        self.inner.watch(span, from)
    }

    fn compact(&self, revision: Revision) -> Answer<'_, ()> {
        self.inner.compact(revision)
    }

    fn grant(&self, time: Duration) -> Answer<'_, (LeaseId, Duration)> {
        self.inner.grant(time)
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, Duration> {
        self.inner.keep_alive(lease)
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        self.inner.revoke(lease)
    }

    fn lease(&self, lease: LeaseId) -> Answer<'_, LeaseState> {
        self.inner.lease(lease)
    }

    fn status(&self) -> Answer<'_, EngineStatus> {
        self.inner.status()
    }

    fn loses_answers(&self) -> bool {
        true
    }
}

/// A store on a lossy network, and one of somebody else without losses.
struct Setup {
    network: Arc<LossyEngine>,
    store: Store,
    other: Store,
}

impl Setup {
    fn new(engine: &Arc<dyn Engine>) -> Self {
        let network = Arc::new(LossyEngine::new(Arc::clone(engine)));
        Self {
            store: Store::new(network.clone()).with_deadline(Duration::from_millis(300)),
            other: Store::new(Arc::clone(engine)),
            network,
        }
    }

    async fn put(&self, key: &'static str, value: &'static str) -> Revision {
        let seen = self.other.get(key).await.expect("an answer");
        let revision = seen.map_or(0, |record| record.mod_revision);
        let outcome = self
            .other
            .commit(Transaction::replace(key, revision, value))
            .await;
        outcome.expect("an answer").revision
    }

    async fn value(&self, key: &'static str) -> Option<String> {
        let record = self.other.get(key).await.expect("an answer")?;
        Some(String::from_utf8_lossy(&record.value).into_owned())
    }

    /// Commits something whose outcome cannot be found out in time, and heals the network.
    async fn unknown(&self, transaction: Transaction, first: Loss) -> crate::OperationId {
        self.network.lose([first]);
        self.network.lose([Loss::Request; 100]);
        let ended = self.store.commit(transaction).await;
        self.network.heal();
        match ended {
            Err(StoreError::Unknown {
                operation: Some(operation),
                ..
            }) => operation,
            other => panic!("{other:?} instead of unknown"),
        }
    }
}

pub(super) async fn check(engine: &Arc<dyn Engine>) {
    let setup = Setup::new(engine);
    a_lost_answer_is_found_and_a_lost_request_made_again(&setup).await;
    an_overwritten_write_is_known_to_have_happened(&setup).await;
    a_deleted_and_created_key_is_not_written_twice(&setup).await;
    a_lost_delete_is_found(&setup).await;
    several_keys_are_one_write(&setup).await;
    a_write_that_arrives_after_its_fence_has_no_effect(&setup).await;
    a_failed_compare_is_an_answer_though_it_was_lost(&setup).await;
    slots_of_given_up_writes_are_used_again(&setup).await;
    a_cleared_slot_begins_anew(&setup).await;
    random_losses_never_write_twice(engine).await;
}

async fn a_lost_answer_is_found_and_a_lost_request_made_again(setup: &Setup) {
    for (key, losses) in [
        ("/lost/answer", vec![Loss::Answer]),
        ("/lost/request", vec![Loss::Request]),
        (
            "/lost/fences",
            vec![Loss::Answer, Loss::Request, Loss::Answer],
        ),
        (
            "/lost/again",
            vec![Loss::Request, Loss::Answer, Loss::Answer, Loss::None],
        ),
    ] {
        setup.network.lose(losses);
        let reading = Transaction::create(key, "x").read(Range::key(key));
        let outcome = setup.store.commit(reading).await.expect("found out");
        setup.network.heal();
        assert!(outcome.succeeded, "{key}");
        let record = setup
            .other
            .get(key)
            .await
            .expect("an answer")
            .expect("written");
        assert_eq!(
            (record.mod_revision, record.version),
            (outcome.revision, 1),
            "{key}"
        );
        assert_eq!(
            outcome.pages[0].records,
            [record],
            "{key}: reads are made up for"
        );
    }
}

async fn an_overwritten_write_is_known_to_have_happened(setup: &Setup) {
    let transaction = Transaction::create("/over/a", "mine");
    let operation = setup.unknown(transaction, Loss::Answer).await;
    let written = setup
        .other
        .get("/over/a")
        .await
        .expect("an answer")
        .expect("it had happened");
    setup.put("/over/a", "theirs").await;
    let resolution = setup.store.resolve(operation).await.expect("resolved");
    assert_eq!(resolution, Resolution::Happened(written.mod_revision));
    assert_eq!(
        setup.store.resolve(operation).await.expect("remembered"),
        resolution
    );
    assert_eq!(setup.value("/over/a").await.as_deref(), Some("theirs"));
}

async fn a_deleted_and_created_key_is_not_written_twice(setup: &Setup) {
    let operation = setup
        .unknown(Transaction::create("/again/a", "mine"), Loss::Answer)
        .await;
    let seen = setup
        .other
        .get("/again/a")
        .await
        .expect("an answer")
        .expect("it had happened");
    let removed = setup
        .other
        .commit(Transaction::remove("/again/a", seen.mod_revision))
        .await;
    assert!(removed.expect("an answer").succeeded);
    // The key is absent again: a second attempt would find its compare to hold.
    let resolution = setup.store.resolve(operation).await.expect("resolved");
    assert_eq!(resolution, Resolution::Happened(seen.mod_revision));
    assert_eq!(setup.value("/again/a").await, None);
}

async fn a_lost_delete_is_found(setup: &Setup) {
    let revision = setup.put("/delete/a", "x").await;
    setup.network.lose([Loss::Answer]);
    let outcome = setup
        .store
        .commit(Transaction::remove("/delete/a", revision))
        .await;
    assert!(outcome.expect("found out").succeeded);
    assert_eq!(setup.value("/delete/a").await, None);

    let revision = setup.put("/delete/b", "x").await;
    let operation = setup
        .unknown(Transaction::remove("/delete/b", revision), Loss::Request)
        .await;
    let resolution = setup.store.resolve(operation).await.expect("resolved");
    assert_eq!(resolution, Resolution::Never);
    assert_eq!(setup.value("/delete/b").await.as_deref(), Some("x"));
}

async fn several_keys_are_one_write(setup: &Setup) {
    let revision = setup.put("/several/b", "old").await;
    let both = Transaction::create("/several/a", "new")
        .when(Compare::unchanged("/several/b", revision))
        .delete("/several/b");
    setup.network.lose([Loss::Answer, Loss::Answer]);
    assert!(setup.store.commit(both).await.expect("found out").succeeded);
    let values = (
        setup.value("/several/a").await,
        setup.value("/several/b").await,
    );
    assert_eq!(values, (Some("new".to_owned()), None));
}

async fn a_write_that_arrives_after_its_fence_has_no_effect(setup: &Setup) {
    // The original is held up, the fence gets through, the write is made again; then the original arrives.
    setup.network.lose([Loss::Delayed]);
    let outcome = setup
        .store
        .commit(Transaction::create("/late/a", "x"))
        .await;
    let first = outcome.expect("made again");
    assert!(first.succeeded);
    assert_eq!(
        setup.network.deliver().await,
        [false],
        "the original comes too late"
    );

    // The key is deleted before the original arrives, so that its own compare would hold.
    let operation = setup
        .unknown(Transaction::create("/late/b", "x"), Loss::Delayed)
        .await;
    let resolution = setup.store.resolve(operation).await.expect("resolved");
    assert_eq!(resolution, Resolution::Never);
    assert_eq!(setup.network.deliver().await, [false]);
    assert_eq!(setup.value("/late/b").await, None);

    // Here the original arrives before anybody asks.
    let operation = setup
        .unknown(Transaction::create("/late/c", "x"), Loss::Delayed)
        .await;
    assert_eq!(setup.network.deliver().await, [true]);
    let resolution = setup.store.resolve(operation).await.expect("resolved");
    assert!(matches!(resolution, Resolution::Happened(_)));
}

async fn a_failed_compare_is_an_answer_though_it_was_lost(setup: &Setup) {
    setup.put("/compare/a", "theirs").await;
    setup.network.lose([Loss::Answer]);
    let create = Transaction::create("/compare/a", "mine").otherwise(Range::key("/compare/a"));
    let outcome = setup.store.commit(create).await.expect("found out");
    assert!(!outcome.succeeded);
    assert_eq!(
        outcome.pages.len(),
        1,
        "the look at the slot is not the caller's"
    );
    assert_eq!(outcome.pages[0].records[0].value, "theirs");
}

async fn slots_of_given_up_writes_are_used_again(setup: &Setup) {
    for number in 0..100 {
        let key = format!("/given-up/{number}");
        setup
            .network
            .lose([Loss::Delayed, Loss::Request, Loss::Request]);
        let commit = setup.store.commit(Transaction::create(key, "x"));
        // The caller stops waiting in the middle of it.
        let given_up = tokio::time::timeout(Duration::from_millis(5), commit).await;
        setup.network.heal();
        drop(given_up);
    }
    let commit = setup
        .store
        .commit(Transaction::create("/given-up/last", "x"));
    assert!(commit.await.expect("a slot is found").succeeded);
    setup.network.deliver().await;
}

async fn a_cleared_slot_begins_anew(setup: &Setup) {
    let outcome = setup
        .store
        .commit(Transaction::create("/cleared/a", "x"))
        .await;
    let revision = outcome.expect("an answer").revision;
    let cleared = setup
        .other
        .clear_slots(revision + 1)
        .await
        .expect("cleared");
    assert!(cleared > 0);
    for number in 0..70 {
        let create = Transaction::create(format!("/cleared/b/{number}"), "x");
        assert!(
            setup
                .store
                .commit(create)
                .await
                .expect("an answer")
                .succeeded
        );
    }
}

/// Many writers count in one key over a network that loses one call in three: every count that was answered is there,
/// and what was never answered is there at most once.
async fn random_losses_never_write_twice(engine: &Arc<dyn Engine>) {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    let network = Arc::new(LossyEngine::new(Arc::clone(engine)));
    let mut random = StdRng::seed_from_u64(7);
    network.lose((0..20_000).map(|_| match random.random_range(0..9) {
        0 => Loss::Request,
        1 => Loss::Answer,
        2 => Loss::Delayed,
        _ => Loss::None,
    }));
    let store = Store::new(network.clone());
    let writers = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { count(&store, 10).await })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        writer.await.expect("a writer");
        network.deliver().await;
    }
    let record = store
        .get("/count")
        .await
        .expect("an answer")
        .expect("counted");
    assert_eq!(record.value, "80", "each of 8 writers counted 10 times");
    assert_eq!(record.version, 80);
}

async fn count(store: &Store, times: u32) {
    let mut done = 0;
    while done < times {
        let seen = store.get("/count").await.expect("an answer");
        let (revision, value) = seen.map_or((0, 0), |record| {
            let value = String::from_utf8_lossy(&record.value).parse::<u32>();
            (record.mod_revision, value.expect("a number"))
        });
        let transaction = Transaction::replace("/count", revision, (value + 1).to_string());
        if store
            .commit(transaction)
            .await
            .expect("found out")
            .succeeded
        {
            done += 1;
        }
    }
}
