//! Logs over several files, after crashes, and in the hands of somebody who changes them.

use std::path::Path;

use serde_json::json;

use super::chain::{full_file, verify_audit};
use super::*;

fn writer(directory: &Path) -> LogWriter {
    let path = directory.join(NEWEST_FILE);
    let file = open_file(&path).expect("a file");
    let length = file.metadata().expect("a length").len();
    LogWriter {
        path,
        file,
        length,
        head: read_newest(directory, None).expect("a log"),
        told: watch::channel(AuditHead::default()).0,
    }
}

fn write(writer: &mut LogWriter, user: &str) {
    writer
        .append(std::iter::once(&json!({"user": user})))
        .expect("written");
}

/// Makes a new file as if the one there were full.
fn rotate(writer: &mut LogWriter) {
    writer.length = MAX_BYTES;
    writer.rotate().expect("rotated");
}

/// A log of three files: entries 1 and 2, 3 and 4, 5 and 6.
fn three_files(directory: &Path) -> AuditHead {
    let mut log = writer(directory);
    write(&mut log, "ann");
    write(&mut log, "bob");
    rotate(&mut log);
    write(&mut log, "eve");
    rotate(&mut log);
    write(&mut log, "joe");
    log.head
}

fn change(path: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.contains(old), "{text}");
    std::fs::write(path, text.replacen(old, new, 1)).expect("written");
}

#[test]
fn a_log_goes_on_over_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let head = three_files(directory.path());
    assert_eq!(head.number, 6);
    assert_eq!(
        read_newest(directory.path(), Some(&head)).expect("a log"),
        head
    );
    let known = Some((head.number, head.digest.as_str()));
    assert_eq!(verify_audit(directory.path(), known).expect("a log"), 6);
    // Old files may be kept elsewhere.
    std::fs::remove_file(directory.path().join(full_file(2))).expect("removed");
    assert_eq!(verify_audit(directory.path(), known).expect("a log"), 6);
}

#[test]
fn a_start_after_a_kill_between_two_files_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = writer(directory.path());
    write(&mut log, "ann");
    let newest = directory.path().join(NEWEST_FILE);
    std::fs::rename(&newest, directory.path().join(full_file(1))).expect("renamed");
    assert_eq!(
        read_newest(directory.path(), None).expect("a log"),
        log.head
    );
    std::fs::write(&newest, "{\"acti").expect("half a line");
    assert_eq!(
        read_newest(directory.path(), None).expect("a log"),
        log.head
    );
    let mut log = writer(directory.path());
    write(&mut log, "bob");
    assert_eq!(verify_audit(directory.path(), None).expect("a log"), 2);
}

#[test]
fn half_a_line_of_a_failed_write_is_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = writer(directory.path());
    write(&mut log, "ann");
    log.file.write_all(b"{\"user\":\"bo").expect("half a line");
    log.cut().expect("cut");
    write(&mut log, "bob");
    assert_eq!(verify_audit(directory.path(), None).expect("a log"), 2);
}

#[test]
fn what_was_changed_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let head = three_files(directory.path());
    let full = directory.path().join(full_file(4));
    change(&full, "eve", "ann");
    let why = verify_audit(directory.path(), None).expect_err("changed");
    // The line after the changed one does not fit: the first of the next file.
    assert!(matches!(why, AuditError::Broken { line: 1, .. }), "{why}");
    let why = read_newest(directory.path(), None).expect_err("changed");
    assert!(matches!(why, AuditError::Broken { line: 1, .. }), "{why}");
    std::fs::remove_file(&full).expect("removed");
    let why = verify_audit(directory.path(), None).expect_err("a file is missing");
    assert!(matches!(why, AuditError::Broken { line: 1, .. }), "{why}");

    // A log that was made anew fits together, but is not the one that the store knows.
    let other = tempfile::tempdir().expect("a directory");
    let mut log = writer(other.path());
    for _ in 0..head.number {
        write(&mut log, "nobody");
    }
    let why = read_newest(other.path(), Some(&head)).expect_err("another log");
    assert_eq!(
        why.to_string(),
        "entry 6 of the audit log is not the one that the store knows"
    );
    let later = AuditHead { number: 9, ..head };
    let why = read_newest(other.path(), Some(&later)).expect_err("a short log");
    assert_eq!(
        why.to_string(),
        "the audit log ends at entry 6, but the store knows of entry 9"
    );
}

#[tokio::test]
async fn a_log_that_cannot_be_written_says_so_and_takes_nothing_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = writer(directory.path());
    write(&mut log, "ann");
    // Neither written nor cut.
    log.file = File::open(&log.path).expect("a file");
    let (entries, receiver) = mpsc::channel(QUEUE);
    let head = log.told.subscribe();
    let running = std::thread::spawn(move || log.run(receiver));
    let log = AuditLog { entries, head };
    assert!(log.is_open());
    assert!(!log.write(json!({"user": "bob"})).await);
    running.join().expect("it ends");
    assert!(!log.is_open());
    assert!(!log.write(json!({"user": "eve"})).await);
    assert_eq!(verify_audit(directory.path(), None).expect("a log"), 1);
}
