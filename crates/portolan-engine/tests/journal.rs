//! What the journal keeps, merges, forgets and brings back, one example per rule.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portolan_engine::{
    Context, Durability, Event, Journal, JournalError, JournalOptions, Limits, ReadError, Reader,
    Record, Run, RunPhase, State, Unit,
};

fn options() -> JournalOptions {
    JournalOptions {
        log_bytes: u64::MAX,
        ..JournalOptions::default()
    }
}

/// Small enough that a few thousand events fill the ring and several segments.
fn small() -> JournalOptions {
    JournalOptions {
        ring_bytes: 100 << 10,
        segment_bytes: 50 << 10,
        ..options()
    }
}

/// What a run of one unit tells beside its lines: `Began`, `Queued`, `Started`, `Done`, `Ended`.
const FRAME: usize = 5;

/// Says lines `0`, `1`, … through a unit: the only way into a journal.
async fn say(journal: &Journal, lines: u64) {
    perform(journal, move |cx| {
        (0..lines).for_each(|line| cx.log(line.to_string()));
    })
    .await;
}

async fn perform(journal: &Journal, work: impl FnOnce(&Context) + Send + 'static) {
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "speaker",
        &[],
        Unit::cpu(|cx| {
            work(cx);
            Ok(())
        }),
    );
    assert!(run.finish().await.is_success());
    journal.flush().await.unwrap();
}

fn read(reader: &mut Reader) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(batch) = reader.try_next().unwrap() {
        assert_eq!(
            batch.iter().count() as u64,
            batch.last() - batch.first() + 1
        );
        records.extend(batch.iter().cloned());
    }
    records
}

fn all(journal: &Journal) -> Vec<Record> {
    read(&mut journal.after(0))
}

fn events(journal: &Journal) -> Vec<Event> {
    let events: Vec<_> = all(journal)
        .into_iter()
        .map(|record| record.event)
        .collect();
    let begin = [Event::Began, Event::Queued, Event::Started { attempt: 1 }];
    assert_eq!(events[..3], begin);
    let (ended, events) = events.split_last().unwrap();
    assert!(matches!(
        ended,
        Event::Ended {
            done: 1,
            failed: 0,
            ..
        }
    ));
    let (done, events) = events.split_last().unwrap();
    assert!(matches!(done, Event::Done { .. }));
    events[3..].to_vec()
}

fn log(line: &str) -> Event {
    Event::Log { line: line.into() }
}

fn progress(done: u64) -> Event {
    Event::Progress(portolan_engine::Progress {
        done,
        ..Default::default()
    })
}

/// The files of a journal's segments, oldest first.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "journal"))
        .collect();
    paths.sort();
    paths
}

#[tokio::test(start_paused = true)]
async fn progress_in_quick_succession_is_merged_and_the_last_is_kept() {
    let journal = Journal::in_memory(options());
    perform(&journal, |cx| {
        (0..1000).for_each(|done| cx.progress(done, None, ""));
    })
    .await;
    assert_eq!(events(&journal), [progress(0), progress(999)]);
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_unit_that_falls_silent_is_told_after_a_while() {
    let journal = Journal::in_memory(options());
    let run = Run::new(Limits::default(), journal.clone());
    let seen = journal.clone();
    run.add(
        "silent",
        &[],
        Unit::io(|cx| async move {
            (0..3).for_each(|done| cx.progress(done, None, ""));
            tokio::time::sleep(Duration::from_millis(150)).await;
            let told = seen
                .state()
                .get(cx.key())
                .and_then(|unit| unit.progress.clone());
            assert_eq!(told.map(|progress| progress.done), Some(2));
            Ok(())
        }),
    );
    assert!(run.finish().await.is_success());
}

#[tokio::test]
async fn lines_beyond_the_budget_are_counted_where_they_were_left_out() {
    let journal = Journal::in_memory(JournalOptions {
        log_bytes: 10,
        ..options()
    });
    tokio::time::pause();
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "loud",
        &[],
        Unit::io(|cx| async move {
            for line in ["12345", "67890", "lost", "lost too"] {
                cx.log(line);
            }
            tokio::time::advance(Duration::from_secs(1)).await;
            cx.log("again");
            cx.log("also lost");
            Ok(())
        }),
    );
    run.finish().await;
    let expected = [
        log("12345"),
        log("67890"),
        Event::Dropped {
            lines: 2,
            bytes: 12,
        },
        log("again"),
        Event::Dropped { lines: 1, bytes: 9 },
    ];
    assert_eq!(events(&journal), expected);
    assert_eq!(
        journal.state().get(&"loud".into()).unwrap().dropped_lines,
        3
    );
}

#[tokio::test]
async fn a_journal_without_units_has_every_event_all_the_same() {
    let journal = Journal::in_memory(JournalOptions {
        keep_units: false,
        ..options()
    });
    say(&journal, 3).await;
    assert_eq!(events(&journal).len(), 3);
    let state = journal.state();
    assert!(state.is_empty());
    assert_eq!(state.seq(), journal.last());
}

#[tokio::test]
async fn times_count_from_the_epoch_that_was_given() {
    tokio::time::pause();
    let journal = Journal::in_memory(JournalOptions {
        epoch_ms: 1_700_000_000_000,
        ..options()
    });
    tokio::time::advance(Duration::from_millis(5)).await;
    say(&journal, 1).await;
    assert_eq!(all(&journal)[0].at, 1_700_000_000_005);
}

#[tokio::test]
async fn a_reader_ends_when_the_journal_is_closed_or_gone() {
    let journal = Journal::in_memory(options());
    say(&journal, 1).await;
    let mut reader = journal.after(0);
    drop(journal);
    assert_eq!(
        reader.next().await.unwrap().unwrap().last(),
        1 + FRAME as u64
    );
    assert!(reader.next().await.unwrap().is_none());
}

/// What was appended before the close may not be written yet.
#[tokio::test]
async fn a_closed_journal_is_read_to_its_very_end() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let journal = Journal::open(directory.path(), Durability::Synced, small()).unwrap();
        let run = Run::new(Limits::default(), journal.clone());
        run.add("a", &[], Unit::cpu(|_| Ok(())));
        run.finish().await;
        journal.close();
        let mut reader = journal.after(0);
        while reader.next().await.unwrap().is_some() {}
        assert_eq!(reader.position() % FRAME as u64, 0);
        drop(journal);
    }
}

#[tokio::test]
async fn memory_forgets_the_oldest_events_and_says_so() {
    let journal = Journal::in_memory(small());
    say(&journal, 10_000).await;
    let mut reader = journal.after(0);
    let Err(ReadError::Forgotten { next: 1, oldest }) = reader.try_next() else {
        panic!("the first event cannot still be there");
    };
    reader.seek(oldest - 1);
    let kept = read(&mut reader);
    assert_eq!(kept.first().unwrap().seq, oldest);
    assert_eq!(kept.last().unwrap().seq, journal.last());
}

/// A snapshot and the events after it are as good as all events.
#[tokio::test]
async fn a_state_is_continued_by_the_events_after_it() {
    let journal = Journal::in_memory(options());
    say(&journal, 100).await;
    let mut state = journal.state();
    say(&journal, 100).await;
    for record in read(&mut journal.after(state.seq())) {
        state.apply(&record);
    }
    assert_eq!(state, journal.state());
    assert_eq!(state, all(&journal).iter().collect::<State>());
}

#[tokio::test]
async fn a_run_is_named_by_its_first_event_and_its_records_carry_the_name() {
    let journal = Journal::in_memory(options());
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = Run::new(Limits::default(), journal.clone());
        runs.push(run.id());
        run.add("a", &[], Unit::cpu(|_| Ok(())));
        run.finish().await;
    }
    let numbers: Vec<u64> = runs.iter().map(|run| run.number()).collect();
    assert_eq!(numbers, [1, 6, 11]);
    for record in all(&journal) {
        let owner = runs.iter().rev().find(|run| run.number() <= record.seq);
        assert_eq!(Some(&record.run), owner);
    }
    let state = journal.state();
    let names: Vec<_> = state.runs().map(|(id, _)| id).collect();
    assert_eq!(names, runs);
    assert!(state.runs().all(|(_, run)| run.units().len() == 1));
}

/// A server runs for months: what it knows of runs that ended is bounded.
#[tokio::test]
async fn only_the_newest_runs_that_ended_are_kept_and_all_that_go_on() {
    let journal = Journal::in_memory(JournalOptions {
        keep_runs: 2,
        ..options()
    });
    let open = Run::new(Limits::default(), journal.clone());
    let mut ended = Vec::new();
    for _ in 0..5 {
        let run = Run::new(Limits::default(), journal.clone());
        ended.push(run.id());
        run.add("a", &[], Unit::cpu(|_| Ok(())));
        run.finish().await;
    }
    let state = journal.state();
    let known: Vec<_> = state.runs().map(|(id, _)| id).collect();
    assert_eq!(known, [open.id(), ended[3], ended[4]]);
    assert_eq!(state.run(open.id()).unwrap().phase(), &RunPhase::Running);
    assert!(state.run(ended[4]).unwrap().phase().is_end());
}

#[tokio::test]
async fn a_run_that_its_process_did_not_end_is_told_by_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Journal::open(directory.path(), Durability::Written, options()).unwrap();
    let journal = open();
    let cut_off = Run::new(Limits::default(), journal.clone()).id();
    drop(journal);
    let journal = open();
    assert_eq!(journal.last(), 1, "nothing is written by opening");
    say(&journal, 1).await;
    let phase = |journal: &Journal| journal.state().run(cut_off).unwrap().phase().clone();
    assert_eq!(phase(&journal), RunPhase::Interrupted);
    drop(journal);
    let journal = open();
    say(&journal, 1).await;
    let told = all(&journal)
        .into_iter()
        .filter(|record| record.event == Event::Interrupted);
    assert_eq!(told.count(), 1, "once");
}

#[tokio::test]
async fn a_reopened_journal_goes_on_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let journal = Journal::open(directory.path(), Durability::Synced, small()).unwrap();
        assert_eq!(all(&journal), expected);
        assert_eq!(journal.state(), expected.iter().collect());
        say(&journal, 1000).await;
        expected = all(&journal);
    }
    assert_eq!(expected.len(), 3 * (1000 + FRAME));
    assert!(expected.iter().map(|record| record.seq).eq(1..=3015));
    assert!(segments(directory.path()).len() > 2);
}

#[tokio::test]
async fn a_segment_without_its_checksums_is_a_stream_of_events() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, options()).unwrap();
    say(&journal, 10).await;
    let text = fs::read_to_string(&segments(directory.path())[0]).unwrap();
    let records: Vec<_> = text
        .lines()
        .map(|line| Record::from_json(&line[9..]).unwrap())
        .collect();
    assert_eq!(records, all(&journal));
}

#[tokio::test]
async fn a_torn_end_is_cut_wherever_it_is_torn() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, options()).unwrap();
    say(&journal, 5).await;
    let before = all(&journal);
    drop(journal);
    let path = segments(directory.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let journal = Journal::open(directory.path(), Durability::Written, options()).unwrap();
        let complete = whole[..length].split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(all(&journal), before[..complete]);
        say(&journal, 1).await;
        let is_cut_off = complete > 0 && complete < before.len();
        let follows = usize::from(is_cut_off) + 1 + FRAME;
        assert_eq!(all(&journal).len(), complete + follows, "it joins on");
        let told = all(&journal)[complete].event == Event::Interrupted;
        assert_eq!(told, is_cut_off, "the run that was cut off is told");
    }
}

#[tokio::test]
async fn a_flipped_bit_at_the_end_is_cut_and_in_a_finished_segment_refused() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, small()).unwrap();
    // Segments are begun between groups, so that it takes several.
    for _ in 0..5 {
        say(&journal, 1000).await;
    }
    drop(journal);
    let paths = segments(directory.path());
    let (newest, oldest) = (paths.last().unwrap(), &paths[0]);
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    flip(newest);
    let journal = Journal::open(directory.path(), Durability::Written, small()).unwrap();
    assert_eq!(journal.last(), 5 * (1000 + FRAME as u64) - 1);
    drop(journal);
    flip(oldest);
    let refused = Journal::open(directory.path(), Durability::Written, small());
    assert!(matches!(refused, Err(JournalError::Damaged { path, .. }) if path == *oldest));
}

#[tokio::test]
async fn a_missing_segment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, small()).unwrap();
    for _ in 0..5 {
        say(&journal, 1000).await;
    }
    drop(journal);
    fs::remove_file(&segments(directory.path())[1]).unwrap();
    let refused = Journal::open(directory.path(), Durability::Written, small());
    assert!(matches!(
        refused,
        Err(JournalError::Damaged { offset: 0, .. })
    ));
}

#[tokio::test]
async fn only_one_journal_writes_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, options()).unwrap();
    let second = Journal::open(directory.path(), Durability::Written, options());
    assert!(matches!(second, Err(JournalError::InUse(_))));
    drop(journal);
    Journal::open(directory.path(), Durability::Written, options()).unwrap();
}

#[tokio::test]
async fn old_segments_go_when_there_are_too_many_bytes_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let keep = JournalOptions {
        keep_bytes: 100 << 10,
        ..small()
    };
    let journal = Journal::open(directory.path(), Durability::Written, keep.clone()).unwrap();
    for _ in 0..20 {
        say(&journal, 1000).await;
    }
    let mut reader = journal.after(0);
    let Err(ReadError::Forgotten { oldest, .. }) = reader.try_next() else {
        panic!("the first segment cannot still be there");
    };
    reader.seek(oldest - 1);
    let kept = read(&mut reader);
    assert!(
        kept.iter()
            .map(|record| record.seq)
            .eq(oldest..=journal.last())
    );
    drop((reader, journal));
    let journal = Journal::open(directory.path(), Durability::Written, keep).unwrap();
    assert_eq!(read(&mut journal.after(oldest - 1)), kept);
}

/// A disk that fails must not stop the run; whoever needs safety asks `flush`.
#[cfg(unix)]
#[tokio::test]
async fn when_the_disk_fails_events_stay_visible_and_flush_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("journal");
    let journal = Journal::open(&inner, Durability::Synced, small()).unwrap();
    fs::remove_dir_all(&inner).unwrap();
    let run = Run::new(Limits::default(), journal.clone());
    run.add("a", &[], Unit::cpu(|_| Ok(())));
    assert!(run.finish().await.is_success());
    assert!(matches!(
        journal.flush().await,
        Err(JournalError::Io { act: "make", .. })
    ));
    assert_eq!(all(&journal).len(), FRAME);
}

/// Numbers drawn without a clock or an environment, so that a failure can be repeated.
fn draws(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

#[tokio::test]
async fn a_reader_that_resumes_a_thousand_times_at_random_sees_the_same_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, small()).unwrap();
    for _ in 0..20 {
        say(&journal, 1000).await;
    }
    let stream = all(&journal);
    let mut draw = draws(1);
    for _ in 0..1000 {
        let after = draw(journal.last());
        let mut reader = journal.after(after);
        let mut at = after as usize;
        for _ in 0..=draw(3) {
            let Some(batch) = reader
                .next()
                .await
                .unwrap_or_else(|error| panic!("{error}"))
            else {
                break;
            };
            assert!(batch.iter().eq(&stream[at..batch.last() as usize]));
            at = batch.last() as usize;
            if at == stream.len() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_reader_that_resumes_while_events_arrive_sees_the_same_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), Durability::Written, small()).unwrap();
    let writing = tokio::spawn({
        let journal = journal.clone();
        async move {
            for _ in 0..50 {
                say(&journal, 1000).await;
            }
            journal.close();
        }
    });
    let mut resumed = Vec::new();
    let mut draw = draws(2);
    let mut reader = journal.after(0);
    while let Some(batch) = reader.next().await.unwrap() {
        // Stops in the middle of what it was given and comes back.
        let taken = 1 + draw(batch.last() - batch.first() + 1) as usize;
        resumed.extend(batch.iter().take(taken).cloned());
        reader = journal.after(resumed.len() as u64);
    }
    writing.await.unwrap();
    assert_eq!(resumed.len(), 50 * (1000 + FRAME));
    assert_eq!(resumed, all(&journal));
}
