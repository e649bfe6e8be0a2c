//! What watches must report.

use std::sync::Arc;

use super::sequences::told_until;
use super::{SOON, next};
use crate::{
    Compare, Engine, Event, Range, Revision, Span, StoreError, Transaction, Update, Watcher,
};

pub(super) async fn check(engine: &Arc<dyn Engine>) {
    a_revision_is_told_whole_and_in_order(engine).await;
    a_watch_resumes_after_any_update(engine).await;
    a_watch_of_the_future_begins_there(engine).await;
    progress_says_how_far_a_watch_has_come(engine).await;
    a_slow_reader_gets_all_or_is_told(engine).await;
    a_list_and_a_watch_from_it_miss_nothing(engine).await;
    a_cancelled_wait_loses_nothing(engine).await;
}

/// Puts a key, whatever it was.
async fn put(engine: &Arc<dyn Engine>, key: &str, value: &str) -> Revision {
    let seen = engine
        .range(Range::key(key.to_owned()))
        .await
        .expect("a page");
    let revision = seen.records.first().map_or(0, |record| record.mod_revision);
    let transaction = Transaction::replace(key.to_owned(), revision, value.to_owned());
    let outcome = engine.transact(transaction).await.expect("an answer");
    assert!(outcome.succeeded, "nobody else writes `{key}`");
    outcome.revision
}

async fn watch(engine: &Arc<dyn Engine>, span: Span, from: Revision) -> Watcher {
    engine.watch(span, from).await.expect("a watch")
}

async fn a_revision_is_told_whole_and_in_order(engine: &Arc<dyn Engine>) {
    let first = put(engine, "/whole/z", "1").await;
    let keys = ["/whole/c", "/whole/a", "/whole/b"];
    let three = keys.iter().fold(Transaction::new(), |transaction, key| {
        transaction.when(Compare::absent(*key)).put(*key, "x")
    });
    let revision = engine.transact(three).await.expect("an answer").revision;
    let mut watcher = watch(engine, Span::prefix("/whole/"), first).await;
    assert_eq!(next(&mut watcher).await.revision(), first);
    let Update::Changes {
        revision: told,
        events,
    } = next(&mut watcher).await
    else {
        panic!("progress was not asked for");
    };
    let told_keys: Vec<&[u8]> = events.iter().map(|event| &event.key()[..]).collect();
    assert_eq!(told, revision);
    assert_eq!(
        told_keys,
        keys.map(str::as_bytes),
        "in the order of the transaction"
    );
}

async fn a_watch_resumes_after_any_update(engine: &Arc<dyn Engine>) {
    let mut written = Vec::new();
    for number in 0..20 {
        written.push(
            put(
                engine,
                &format!("/resume/{}", number % 3),
                &number.to_string(),
            )
            .await,
        );
    }
    let mut from = written[0];
    for expected in &written {
        let mut watcher = watch(engine, Span::prefix("/resume/"), from).await;
        let update = next(&mut watcher).await;
        assert_eq!(update.revision(), *expected);
        from = update.revision() + 1;
    }
}

async fn a_watch_of_the_future_begins_there(engine: &Arc<dyn Engine>) {
    let now = put(engine, "/future/a", "0").await;
    let mut watcher = watch(engine, Span::prefix("/future/"), now + 3).await;
    for number in 1..=4 {
        put(engine, "/future/a", &number.to_string()).await;
    }
    assert_eq!(next(&mut watcher).await.revision(), now + 3);
}

async fn progress_says_how_far_a_watch_has_come(engine: &Arc<dyn Engine>) {
    let first = put(engine, "/progress/a", "1").await;
    let mut watcher = watch(engine, Span::prefix("/progress/"), first).await;
    assert_eq!(next(&mut watcher).await.revision(), first);
    let elsewhere = put(engine, "/elsewhere", "1").await;
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        assert!(
            tokio::time::Instant::now() < deadline,
            "no progress in time"
        );
        watcher.request_progress();
        let wait = std::time::Duration::from_millis(200);
        match tokio::time::timeout(wait, watcher.next()).await {
            Ok(Ok(Update::Progress { revision })) if revision >= elsewhere => return,
            Ok(Ok(Update::Progress { .. })) | Err(_) => {}
            Ok(other) => panic!("{other:?} instead of progress"),
        }
    }
}

/// A reader that does not read while much is written and compacted then gets either everything from where it was, without a
/// gap, or the news that it is gone.
async fn a_slow_reader_gets_all_or_is_told(engine: &Arc<dyn Engine>) {
    const CHANGES: u64 = 5_000;
    let first = put(engine, "/slow/a", "0").await;
    let mut slow = watch(engine, Span::prefix("/slow/"), first).await;
    let mut late = Vec::new();
    let mut seen = first;
    for number in 1..=CHANGES {
        let transaction = Transaction::replace("/slow/a", seen, number.to_string());
        seen = engine
            .transact(transaction)
            .await
            .expect("an answer")
            .revision;
        if number.is_multiple_of(1_000) {
            late.push((watch(engine, Span::prefix("/slow/"), first).await, first));
            engine.compact(seen - 10).await.expect("compacted");
        }
    }
    gets_all_or_is_told(&mut slow, first, seen).await;
    for (mut watcher, from) in late {
        gets_all_or_is_told(&mut watcher, from, seen).await;
    }
    let mut recent = watch(engine, Span::prefix("/slow/"), seen - 9).await;
    assert_eq!(told_until(&mut recent, seen).await.len(), 10);
}

async fn gets_all_or_is_told(watcher: &mut Watcher, from: Revision, end: Revision) {
    let mut expected = from;
    while expected <= end {
        match tokio::time::timeout(SOON, watcher.next())
            .await
            .expect("an answer in time")
        {
            Ok(update) => {
                assert_eq!(
                    update.revision(),
                    expected,
                    "a gap in what a slow reader is told"
                );
                expected += 1;
            }
            Err(StoreError::Compacted { oldest, .. }) => {
                assert!(
                    oldest > expected,
                    "revision {expected} is not gone: history begins at {oldest}"
                );
                let again = watcher.next().await;
                assert!(
                    matches!(again, Err(StoreError::Compacted { .. })),
                    "an error is final"
                );
                return;
            }
            Err(error) => panic!("slow reader: {error}"),
        }
    }
}

/// While others write, a list and a watch from its revision give the same as looking at the end.
async fn a_list_and_a_watch_from_it_miss_nothing(engine: &Arc<dyn Engine>) {
    let writers = (0..8).map(|writer| {
        let engine = Arc::clone(engine);
        tokio::spawn(async move {
            for number in 0..25 {
                put(
                    &engine,
                    &format!("/list/{writer}/{}", number % 4),
                    &number.to_string(),
                )
                .await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let page = engine
        .range(Range::new(Span::prefix("/list/")))
        .await
        .expect("a page");
    let mut watcher = watch(engine, Span::prefix("/list/"), page.revision + 1).await;
    for writer in writers {
        writer.await.expect("a writer");
    }
    let end = engine
        .range(Range::new(Span::prefix("/list/")))
        .await
        .expect("a page");
    let newest = end
        .records
        .iter()
        .map(|record| record.mod_revision)
        .max()
        .unwrap_or(0);
    let mut state: std::collections::BTreeMap<_, _> = page
        .records
        .into_iter()
        .map(|record| (record.key.clone(), record))
        .collect();
    if newest > page.revision {
        for (_, events) in told_until(&mut watcher, newest).await {
            for event in events {
                match event {
                    Event::Put(record) => drop(state.insert(record.key.clone(), record)),
                    Event::Delete { key, .. } => drop(state.remove(&key)),
                }
            }
        }
    }
    assert_eq!(state.into_values().collect::<Vec<_>>(), end.records);
}

async fn a_cancelled_wait_loses_nothing(engine: &Arc<dyn Engine>) {
    let first = put(engine, "/cancel/a", "0").await;
    let mut watcher = watch(engine, Span::prefix("/cancel/"), first).await;
    let mut told = Vec::new();
    let mut last = first;
    for number in 0..50 {
        last = put(engine, "/cancel/a", &number.to_string()).await;
        // Given up at once, whether something was there or not.
        let wait = std::time::Duration::from_micros(number * 20);
        if let Ok(update) = tokio::time::timeout(wait, watcher.next()).await {
            told.push(update.expect("no error").revision());
        }
    }
    let rest = told_until(&mut watcher, last).await;
    told.extend(rest.into_iter().map(|(revision, _)| revision));
    assert_eq!(told, (first..=last).collect::<Vec<_>>());
}
