//! What is left after a power cut, a failing disk, damaged bytes and a killed process: everything that was answered, and
//! nothing that was not written.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; the killed process tells its parent on stdout"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_store::conformance::{Crash, DiskFault, ForgetfulDisk};
use portolan_store::{
    Embedded, EmbeddedOptions, ManualClock, Range, Record, Revision, Span, Store, StoreError,
    Transaction, Update,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

/// Seeds in `./test` and in `./test --long`; the fixed part stops after [`PATIENCE`].
const SEEDS: u64 = 400;
const LONG_SEEDS: u64 = 10_000;
const PATIENCE: Duration = Duration::from_secs(25);
const KILLS: u64 = 6;
const LONG_KILLS: u64 = 500;

fn is_long() -> bool {
    std::env::var_os("PORTOLAN_LONG").is_some()
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        cache_bytes: 1 << 20,
        history_revisions: 20,
        history_time: Duration::ZERO,
        tick: Duration::from_millis(1),
        ..EmbeddedOptions::default()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

fn open(disk: ForgetfulDisk) -> Result<Embedded, StoreError> {
    Embedded::open_backend(disk, options(), Arc::new(ManualClock::default()))
}

/// What a writer was told, and what it does not know.
#[derive(Default)]
struct WriterKnowledge {
    /// The revision of the newest write that was answered.
    revision: Revision,
    /// The live keys after each revision that may be on the disk, answered or not.
    states: BTreeMap<Revision, BTreeMap<String, String>>,
}

/// Writes in groups, which share a commit, until the disk fails. Returns what it knows.
async fn write(store: &Store, random: &mut StdRng, groups: u32) -> WriterKnowledge {
    let mut told = WriterKnowledge {
        revision: 1,
        states: BTreeMap::from([(1, BTreeMap::new())]),
    };
    let mut seen: BTreeMap<String, Revision> = BTreeMap::new();
    let mut revision = 1;
    for _ in 0..groups {
        let (mut keys, mut writes) = (Vec::new(), Vec::new());
        for number in 0..random.random_range(1..6) {
            let key = format!(
                "/portolan/v1/kind{}/{number}-{}",
                number % 2,
                random.random_range(0..4)
            );
            let known = seen.get(&key).copied().unwrap_or(0);
            let is_delete = known > 0 && random.random_bool(0.2);
            let value = "v".repeat(random.random_range(0..700));
            let transaction = if is_delete {
                Transaction::remove(key.clone(), known)
            } else {
                Transaction::replace(key.clone(), known, value.clone())
            };
            let mut state = told.states[&revision].clone();
            revision += 1;
            let _ = if is_delete {
                state.remove(&key)
            } else {
                state.insert(key.clone(), value)
            };
            told.states.insert(revision, state);
            keys.push((key, (!is_delete).then_some(revision)));
            writes.push(store.commit(transaction));
        }
        for (number, answer) in futures_util::future::join_all(writes)
            .await
            .into_iter()
            .enumerate()
        {
            match answer {
                Ok(outcome) => {
                    assert!(outcome.succeeded, "one writer only");
                    told.revision = outcome.revision;
                    let (key, at) = &keys[number];
                    match at {
                        Some(at) => seen.insert(key.clone(), *at),
                        None => seen.remove(key),
                    };
                }
                Err(StoreError::Unknown { .. } | StoreError::Stopped { .. }) => return told,
                Err(error) => panic!("{error}"),
            }
        }
    }
    told
}

/// Holds what is on the disk against what the writer knows.
async fn check(engine: Embedded, told: &WriterKnowledge, what: &str) {
    let engine = Arc::new(engine);
    engine
        .verify()
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let store = Store::new(engine);
    let mut found = BTreeMap::new();
    let all = Span::all();
    let scanned = store.scan(&all, None, |record: Record| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        found.insert(text(&record.key), text(&record.value));
        Ok(())
    });
    let revision = scanned
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        revision >= told.revision,
        "{what}: revision {} was answered, the disk has {revision}",
        told.revision
    );
    assert_eq!(
        Some(&found),
        told.states.get(&revision),
        "{what}: at revision {revision}"
    );
    assert_history(&store, revision, what).await;
    let next = Transaction::create("/after", "x");
    assert_eq!(
        store.commit(next).await.expect("writes go on").revision,
        revision + 1,
        "{what}"
    );
}

/// The last revisions can be watched without a gap.
async fn assert_history(store: &Store, revision: Revision, what: &str) {
    let from = revision.saturating_sub(5).max(2);
    let mut watcher = store.watch(Span::all(), from).await.expect("a watch");
    for expected in from..=revision {
        match watcher.next().await {
            Ok(Update::Changes { revision, .. }) => assert_eq!(revision, expected, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// One life of a store that ends in a power cut, and what is left of it.
fn cut(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let fault = fault(&mut random);
    live_and_die(seed, fault, &mut random);
}

fn fault(random: &mut StdRng) -> DiskFault {
    match random.random_range(0..6) {
        0 => DiskFault::FailedSync(random.random_range(1..120)),
        1 => DiskFault::Full(random.random_range(1..200)),
        _ => DiskFault::PowerCut(random.random_range(1..300)),
    }
}

fn live_and_die(seed: u64, fault: DiskFault, random: &mut StdRng) {
    let what = format!("seed {seed}, {fault:?}");
    let disk = ForgetfulDisk::new(fault);
    let runtime = runtime();
    let told = match open(disk.clone()) {
        Ok(engine) => {
            runtime.block_on(async { write(&Store::new(Arc::new(engine)), random, 12).await })
        }
        Err(_) => WriterKnowledge {
            revision: 0,
            states: BTreeMap::from([(1, BTreeMap::new())]),
        },
    };
    let left = disk.crash(Crash { seed });
    let engine = match open(ForgetfulDisk::holding(left, DiskFault::None)) {
        Ok(engine) => engine,
        // A store that was never made may be half there; then nothing was ever answered.
        Err(_) if told.revision == 0 => return,
        Err(error) => panic!("{what}: {error}"),
    };
    runtime.block_on(check(engine, &told, &what));
}

#[test]
fn a_power_cut_takes_nothing_that_was_answered() {
    let seeds = if is_long() { LONG_SEEDS } else { SEEDS };
    let start = Instant::now();
    let mut done = 0;
    for seed in 0..seeds {
        if !is_long() && start.elapsed() > PATIENCE {
            break;
        }
        cut(seed);
        done += 1;
    }
    eprintln!(
        "power cuts: {done} of {LONG_SEEDS} in {:?}",
        start.elapsed()
    );
    assert!(done >= 20, "only {done} power cuts in {PATIENCE:?}");
}

/// The test above can fail: on a disk that only says that it syncs, it does.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let mut random = StdRng::seed_from_u64(1);
    let seen = (0..40).any(|seed| {
        let fault = DiskFault::Lying(random.random_range(100..300));
        let lived = std::panic::catch_unwind(|| {
            live_and_die(seed, fault, &mut StdRng::seed_from_u64(seed));
        });
        lived.is_err()
    });
    assert!(seen);
}

#[test]
fn a_failed_sync_and_a_full_disk_stop_the_store_and_are_told() {
    let runtime = runtime();
    for (fault, is_before) in [
        (DiskFault::FailedSync(40), false),
        (DiskFault::Full(60), false),
    ] {
        let disk = ForgetfulDisk::new(fault);
        let engine = Arc::new(open(disk).expect("opens"));
        let store = Store::new(engine.clone());
        runtime.block_on(async {
            let mut number = 0;
            let error = loop {
                number += 1;
                let create = Transaction::create(format!("/{number}"), vec![0; 5_000]);
                if let Err(error) = store.commit(create).await {
                    break error;
                }
            };
            assert!(
                matches!(
                    error,
                    StoreError::Unknown { .. } | StoreError::Stopped { .. }
                ),
                "{error}"
            );
            let refused = store.commit(Transaction::create("/later", "x")).await;
            assert!(
                matches!(refused, Err(StoreError::Stopped { .. })),
                "{refused:?}"
            );
            assert!(!engine.failed().await.is_empty());
            assert!(!is_before);
        });
    }
}

/// A flipped byte is noticed when the store is opened or read, or it hit nothing that is read.
#[test]
fn damaged_bytes_are_never_read_as_good() {
    let runtime = runtime();
    let disk = ForgetfulDisk::new(DiskFault::None);
    let mut random = StdRng::seed_from_u64(3);
    let told = runtime.block_on(async {
        let engine = Arc::new(open(disk.clone()).expect("opens"));
        write(&Store::new(engine), &mut random, 25).await
    });
    let whole = disk.content();
    let expected = &told.states[&told.revision];
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let tries = if is_long() { 5_000 } else { 150 };
    let (mut noticed, start) = (0, Instant::now());
    for number in 0..tries {
        let mut content = whole.clone();
        let at = used[random.random_range(0..used.len())];
        match number % 3 {
            0 => content[at] ^= 1 << random.random_range(0..8),
            1 => content[at] = content[at].wrapping_add(random.random_range(1..255)),
            _ => {
                let sector = at / 512 * 512;
                content[sector..sector + 512].fill(0);
            }
        }
        let found = open(ForgetfulDisk::holding(content, DiskFault::None)).and_then(|engine| {
            let store = Store::new(Arc::new(engine));
            let mut found = BTreeMap::new();
            runtime.block_on(store.scan(&Span::all(), None, |record| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                found.insert(text(&record.key), text(&record.value));
                Ok(())
            }))?;
            Ok(found)
        });
        match found {
            Ok(found) => assert_eq!(&found, expected, "try {number}: byte {at}"),
            Err(_) => noticed += 1,
        }
        if !is_long() && start.elapsed() > PATIENCE {
            break;
        }
    }
    eprintln!("damaged bytes: {noticed} noticed of {tries}, the others are not read");
    assert!(noticed > 0);
}

const CHILD: &str = "PORTOLAN_STORE_WRITER";

/// The process that gets killed: counts up in ten keys and says each time what was answered.
#[test]
fn the_process_that_gets_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let engine = Embedded::open(Path::new(&path), EmbeddedOptions::default()).expect("opens");
    let store = Store::new(Arc::new(engine));
    runtime.block_on(async {
        let writers = (0..10).map(|writer| count_up(&store, writer));
        futures_util::future::join_all(writers).await;
    });
}

async fn count_up(store: &Store, writer: u32) {
    let key = format!("/count/{writer}");
    loop {
        let seen = store.get(key.clone()).await.expect("a read");
        let revision = seen.as_ref().map_or(0, |record| record.mod_revision);
        let value = seen.map_or(0, |record| number(&record)) + 1;
        let replace = Transaction::replace(key.clone(), revision, value.to_string());
        assert!(store.commit(replace).await.expect("a commit").succeeded);
        println!("told {writer} {value}");
    }
}

fn number(record: &Record) -> u64 {
    let text = std::str::from_utf8(&record.value).expect("text");
    text.parse().expect("a number")
}

#[test]
fn a_killed_process_loses_nothing_that_it_told() {
    let kills = if is_long() { LONG_KILLS } else { KILLS };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let mut random = StdRng::seed_from_u64(5);
    let mut told: BTreeMap<u32, u64> = BTreeMap::new();
    for round in 0..kills {
        let lines = random.random_range(1..300);
        kill_after(&path, lines, &mut told);
        let start = Instant::now();
        let engine = Arc::new(Embedded::open(&path, EmbeddedOptions::default()).expect("opens"));
        let took = start.elapsed();
        assert!(
            took < Duration::from_secs(10),
            "round {round}: open after {took:?}"
        );
        runtime().block_on(async {
            engine.verify().await.expect("whole");
            let store = Store::new(engine.clone());
            let page = store
                .range(Range::new(Span::prefix("/count/")))
                .await
                .expect("a page");
            for (writer, value) in &told {
                let key = format!("/count/{writer}");
                let record = page.records.iter().find(|record| record.key == key);
                let found = record.map_or(0, number);
                assert!(
                    found >= *value,
                    "round {round}: {key} was {value}, now {found}"
                );
            }
        });
    }
    eprintln!("killed processes: {kills} of {LONG_KILLS}");
}

/// Starts the writer, reads what it tells, kills it after so many lines, and reads what was still on the way.
fn kill_after(path: &Path, lines: usize, told: &mut BTreeMap<u32, u64>) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "the_process_that_gets_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut count = 0;
    for line in output.lines() {
        let line = line.expect("text");
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["told", writer, value] = words[..]
            && let (Ok(writer), Ok(value)) = (writer.parse(), value.parse())
        {
            told.insert(writer, value);
            count += 1;
        }
        if count == lines {
            child.kill().expect("killed");
        }
    }
    assert!(count >= lines, "the writer ended by itself");
    child.wait().expect("ended");
}
