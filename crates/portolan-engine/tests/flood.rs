//! A million events, a hundred readers that keep up and one that is stuck: nothing is lost, and memory stays small.
//!
//! The only test of its process, because it looks at the memory of the whole process.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use portolan_engine::{
    Batch, Durability, Event, Journal, JournalOptions, Limits, Reader, Run, Unit,
};

const LINES: u64 = 1_000_000;
const READERS: usize = 100;
const MAX_KILOBYTES: u64 = 64 * 1024;

fn flood(journal: &Journal) -> Run {
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "flood",
        &[],
        Unit::cpu(|cx| {
            (0..LINES).for_each(|line| cx.log(line.to_string()));
            Ok(())
        }),
    );
    run
}

/// Checks that a batch joins on and returns its last number.
fn check(batch: &Batch, mut last: u64) -> u64 {
    for record in batch.iter() {
        assert_eq!(record.seq, last + 1);
        last = record.seq;
        // `Began`, `Queued` and `Started` come before the first line.
        if let Event::Log { line } = &record.event
            && last.is_multiple_of(1000)
        {
            assert_eq!(*line, (last - 4).to_string());
        }
    }
    last
}

async fn follow(mut reader: Reader) -> u64 {
    let mut last = reader.position();
    while let Some(batch) = reader.next().await.unwrap() {
        last = check(&batch, last);
    }
    last
}

/// The most memory this process ever had, where the system tells.
fn peak_kilobytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_events_reach_a_hundred_readers_and_a_stuck_one_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    };
    let journal = Journal::open(directory.path(), Durability::Written, options).unwrap();
    let readers: Vec<_> = (0..READERS)
        .map(|_| tokio::spawn(follow(journal.after(0))))
        .collect();
    let mut stuck = journal.after(0);

    let run = tokio::spawn(flood(&journal).finish());
    let first = stuck.next().await.unwrap().unwrap();
    assert!(run.await.unwrap().is_success());
    journal.flush().await.unwrap();
    journal.close();

    for reader in readers {
        assert_eq!(reader.await.unwrap(), LINES + 5);
    }
    check(&first, 0);
    assert_eq!(
        follow(stuck).await,
        LINES + 5,
        "the stuck reader goes on from file"
    );
    if let Some(peak) = peak_kilobytes() {
        assert!(peak < MAX_KILOBYTES, "{peak} kB");
    }
}
