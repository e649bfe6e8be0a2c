//! A journal read from its files by somebody who does not write it.

mod speaker;

use portolan_engine::{Durability, Journal, JournalFiles, JournalOptions, ReadError, Record};

/// Segments of a few records.
fn small() -> JournalOptions {
    JournalOptions {
        segment_bytes: 1 << 10,
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    }
}

async fn say(journal: &Journal, lines: u64) {
    speaker::say(journal, lines).await;
    journal.flush().await.expect("written");
}

fn read_all(files: &mut JournalFiles) -> Vec<Record> {
    let mut all = Vec::new();
    loop {
        let records = files.read().expect("a whole journal");
        if records.is_empty() {
            return all;
        }
        all.extend(records);
    }
}

#[tokio::test]
async fn files_are_read_while_they_grow_from_any_number_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut early = JournalFiles::after(directory.path(), 0);
    assert!(read_all(&mut early).is_empty());
    let journal = Journal::open(directory.path(), Durability::Written, small()).expect("a journal");
    say(&journal, 200).await;
    let first = read_all(&mut early);
    assert!(early.is_live().expect("a lock"));
    say(&journal, 200).await;
    let second = read_all(&mut early);
    let numbers: Vec<u64> = first
        .iter()
        .chain(&second)
        .map(|record| record.seq)
        .collect();
    assert_eq!(numbers, (1..=journal.last()).collect::<Vec<_>>());
    for after in [0, 1, 57, 200, journal.last() - 1, journal.last()] {
        let mut late = JournalFiles::after(directory.path(), after);
        let read = read_all(&mut late).len() as u64;
        assert_eq!(read, journal.last() - after, "after {after}");
    }
    drop(journal);
    assert!(!early.is_live().expect("a lock"));
}

#[tokio::test]
async fn what_is_no_longer_kept_is_told_with_the_oldest_that_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = JournalOptions {
        keep_bytes: 2 << 10,
        ..small()
    };
    let journal = Journal::open(directory.path(), Durability::Written, options).expect("a journal");
    for _ in 0..20 {
        say(&journal, 20).await;
    }
    let mut files = JournalFiles::after(directory.path(), 0);
    let Err(ReadError::Forgotten { next: 1, oldest }) = files.read() else {
        panic!("the first segments are gone");
    };
    files.seek(oldest - 1);
    let read = read_all(&mut files);
    assert_eq!(read.last().map(|record| record.seq), Some(journal.last()));
}

/// A writer that was killed in the middle of a line leaves the line without an end.
#[tokio::test]
async fn a_torn_end_is_not_read_and_a_damaged_line_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = Journal::open(
        directory.path(),
        Durability::Written,
        JournalOptions::default(),
    );
    let journal = journal.expect("a journal");
    say(&journal, 3).await;
    let last = journal.last();
    drop(journal);
    let path = directory.path().join("00000000000000000001.journal");
    let whole = std::fs::read_to_string(&path).expect("a segment");
    std::fs::write(&path, format!("{whole}0123abcd {{\"seq\"")).expect("written");
    let mut files = JournalFiles::after(directory.path(), 0);
    assert_eq!(read_all(&mut files).len() as u64, last);
    std::fs::write(&path, whole.replacen("line 1", "line 9", 1)).expect("written");
    let mut files = JournalFiles::after(directory.path(), 0);
    assert!(matches!(files.read(), Err(ReadError::Journal(_))));
}
