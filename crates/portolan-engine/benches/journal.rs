//! How many events per second go through the journal, told by a unit and followed by a reader.
//!
//! The aim is at least 500,000 per second.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use portolan_engine::{Durability, Journal, JournalOptions, Limits, Reader, Run, Unit};
use tokio::runtime::Runtime;

const EVENTS: u64 = 1_000_000;

fn options() -> JournalOptions {
    JournalOptions {
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    }
}

async fn flood(journal: &Journal) {
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "flood",
        &[],
        Unit::cpu(|cx| {
            (0..EVENTS).for_each(|_| cx.log("a line of a usual length, as a build tool writes it"));
            Ok(())
        }),
    );
    assert!(run.finish().await.is_success());
    journal.flush().await.expect("the disk is not full");
}

/// Reads along; one that fell out of memory goes on with the oldest event there is.
async fn follow(mut reader: Reader) -> u64 {
    loop {
        match reader.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return reader.position(),
            Err(portolan_engine::ReadError::Forgotten { oldest, .. }) => reader.seek(oldest - 1),
            Err(error) => unreachable!("{error}"),
        }
    }
}

fn bench(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("1000000 events");
    group
        .throughput(Throughput::Elements(EVENTS))
        .sample_size(10);
    let mut measure = |name: &str, open: &dyn Fn(&tempfile::TempDir) -> Journal| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || tempfile::tempdir().expect("a directory"),
                |directory| {
                    runtime.block_on(async {
                        let journal = open(&directory);
                        let reader = tokio::spawn(follow(journal.after(0)));
                        flood(&journal).await;
                        journal.close();
                        assert_eq!(reader.await.expect("a reader's end"), EVENTS + 3);
                    });
                    directory
                },
                BatchSize::PerIteration,
            );
        });
    };
    measure("in memory", &|_| Journal::in_memory(options()));
    let open = |durability| {
        move |directory: &tempfile::TempDir| {
            Journal::open(directory.path(), durability, options()).expect("a new journal")
        }
    };
    measure("written to file", &open(Durability::Written));
    measure("synced to disk", &open(Durability::Synced));
}

criterion_group!(benches, bench);
criterion_main!(benches);
