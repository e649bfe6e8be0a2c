//! A journal on a sink that is no file: read back from far behind, bounded, and a sink that fails.

mod speaker;

use std::error::Error;
use std::sync::Arc;

use portolan_engine::{
    History, Journal, JournalError, JournalOptions, MemorySink, ReadError, Record, Sink, State,
};
use proptest::prelude::*;
use speaker::say;

/// A ring that holds a few events only.
fn tiny() -> JournalOptions {
    JournalOptions {
        ring_bytes: 4 << 10,
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    }
}

async fn read_after(journal: &Journal, after: u64) -> Result<Vec<Record>, ReadError> {
    let mut reader = journal.after(after);
    let mut records = Vec::new();
    while reader.position() < journal.last()
        && let Some(batch) = reader.next().await?
    {
        records.extend(batch.iter().cloned());
    }
    Ok(records)
}

#[tokio::test]
async fn a_reader_that_fell_behind_reads_from_the_sink() {
    let sink = MemorySink::new(usize::MAX);
    let journal = Journal::keeping(sink, State::default(), tiny()).expect("a journal");
    say(&journal, 5000).await;
    journal.flush().await.expect("kept");
    let records = read_after(&journal, 0).await.expect("all of it");
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=journal.last()).collect::<Vec<_>>());
    let folded: State = records.iter().collect();
    assert_eq!(folded, journal.state());
}

#[tokio::test]
async fn what_a_bounded_sink_has_forgotten_is_told() {
    let journal = Journal::keeping(MemorySink::new(100), State::default(), tiny());
    let journal = journal.expect("a journal");
    say(&journal, 5000).await;
    journal.flush().await.expect("kept");
    let Err(ReadError::Forgotten { next, oldest }) = read_after(&journal, 0).await else {
        panic!("the first events are gone")
    };
    assert_eq!(next, 1);
    let rest = read_after(&journal, oldest - 1).await.expect("the rest");
    assert_eq!(rest.len() as u64, journal.last() - oldest + 1);
}

/// A journal goes on where the last one on the same sink ended.
#[tokio::test]
async fn numbers_go_on_after_what_the_sink_holds() {
    let sink = MemorySink::new(usize::MAX);
    let first = Journal::keeping(sink.clone(), State::default(), tiny()).expect("a journal");
    say(&first, 10).await;
    first.flush().await.expect("kept");
    let state = first.state();
    drop(first);
    let second = Journal::keeping(sink, state, tiny()).expect("a journal");
    say(&second, 10).await;
    second.flush().await.expect("kept");
    let records = read_after(&second, 0).await.expect("both");
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=second.last()).collect::<Vec<_>>());
    assert_eq!(second.state().runs().count(), 2);
}

/// A sink that takes some records and then no more.
struct Failing {
    left: usize,
    kept: MemorySink,
}

#[derive(Debug, thiserror::Error)]
#[error("the store is read-only")]
struct ReadOnly;

impl Sink for Failing {
    fn append(&mut self, records: &mut dyn Iterator<Item = &Record>) -> Result<(), JournalError> {
        let records: Vec<Record> = records.cloned().collect();
        if records.len() > self.left {
            return Err(JournalError::Sink(Arc::new(ReadOnly)));
        }
        self.left -= records.len();
        self.kept.append(&mut records.iter())
    }

    fn history(&self) -> Arc<dyn History> {
        self.kept.history()
    }
}

#[tokio::test]
async fn a_sink_that_fails_stops_nobody_and_is_told_by_flush() {
    let sink = Failing {
        left: 0,
        kept: MemorySink::new(10),
    };
    let options = JournalOptions::default();
    let journal = Journal::keeping(sink, State::default(), options).expect("a journal");
    say(&journal, 50).await;
    let error = journal.flush().await.expect_err("the store is read-only");
    assert_eq!(error.to_string(), "cannot keep events");
    let cause = error.source().map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("the store is read-only"));
    let records = read_after(&journal, 0).await.expect("from memory");
    assert_eq!(records.len() as u64, journal.last());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the ring holds, whoever asks from wherever: the same stream.
    #[test]
    fn the_stream_does_not_depend_on_the_ring(ring in 1usize..20_000, lines in 1u64..600, after in 0u64..600) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let options = JournalOptions { ring_bytes: ring, log_bytes: u64::MAX, ..JournalOptions::default() };
            let sink = MemorySink::new(usize::MAX);
            let journal = Journal::keeping(sink, State::default(), options).expect("a journal");
            say(&journal, lines).await;
            journal.flush().await.expect("kept");
            let after = after.min(journal.last());
            let records = read_after(&journal, after).await.expect("the rest");
            let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
            prop_assert_eq!(numbers, (after + 1..=journal.last()).collect::<Vec<_>>());
            Ok(())
        })?;
    }
}
