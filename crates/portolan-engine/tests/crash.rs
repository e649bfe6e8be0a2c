//! A process that writes durable events is killed at random points, and whatever it acknowledged is there afterwards.
//!
//! The test starts its own binary again as the writer, which says on standard output what was acknowledged.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use portolan_engine::{Durability, Event, Journal, JournalOptions, Limits, Record, Run, Unit};

const KILLS: u64 = 200;
const WRITERS: u64 = 4;
const DIRECTORY: &str = "PORTOLAN_CRASH_TEST_DIRECTORY";

fn open(directory: &Path) -> Journal {
    // Small segments, so that kills also hit their change.
    let options = JournalOptions {
        segment_bytes: 16 << 10,
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    };
    Journal::open(directory, Durability::Synced, options).expect("a killed journal opens again")
}

/// The writer. Without a directory to write to, there is nothing to do.
#[tokio::test]
async fn writer() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let journal = open(Path::new(&directory));
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "writer",
        &[],
        Unit::io(|cx| async move {
            for line in 0u64.. {
                cx.log(line.to_string());
                // Groups of different sizes are under way when the process is killed.
                if line.is_multiple_of(1 + line % 17) {
                    let acknowledged = journal.flush().await?;
                    writeln!(std::io::stdout(), "acknowledged {acknowledged}")?;
                }
            }
            Ok(())
        }),
    );
    run.finish().await;
}

#[test]
fn every_acknowledged_event_survives_two_hundred_kills() {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut directory = tempfile::tempdir().unwrap();
                let mut before = 0;
                for kill in 0..KILLS / WRITERS {
                    if kill % 10 == 0 {
                        directory = tempfile::tempdir().unwrap();
                        before = 0;
                    }
                    let point = (writer * 7919 + kill * 104_729) % 50;
                    before = kill_once(directory.path(), before, point as usize);
                }
            });
        }
    });
}

/// Starts a writer, kills it some acknowledgements later, wherever it then is, and returns how many events there are.
fn kill_once(directory: &Path, before: u64, point: usize) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut numbers = lines.map_while(Result::ok).filter_map(|line| {
        // The harness writes its own words before the first acknowledgement.
        line.split("acknowledged ").nth(1)?.parse::<u64>().ok()
    });
    let first = numbers
        .nth(point)
        .expect("the writer acknowledges until it is killed");
    writer.kill().unwrap();
    let acknowledged = numbers.last().unwrap_or(first);
    writer.wait().unwrap();
    check(directory, before, acknowledged)
}

fn check(directory: &Path, before: u64, acknowledged: u64) -> u64 {
    let journal = open(directory);
    assert!(
        journal.last() >= acknowledged,
        "{} of {acknowledged}",
        journal.last()
    );
    let mut reader = journal.after(before);
    let mut records = Vec::<Record>::new();
    while let Some(batch) = reader.try_next().unwrap() {
        records.extend(batch.iter().cloned());
    }
    assert!(
        records
            .iter()
            .map(|record| record.seq)
            .eq(before + 1..=journal.last())
    );
    let lines = records.iter().filter_map(|record| match &record.event {
        Event::Log { line } => Some(line.clone()),
        _ => None,
    });
    // `Began`, `Queued` and `Started`; the run before was cut off, which is told first.
    let said = records.len() - 3 - usize::from(before > 0);
    assert!(lines.eq((0..said).map(|line| line.to_string())), "in order");
    journal.last()
}
