//! The numbers of the engines, as rows of the table in `bench/README.md`.
//!
//! Without arguments, those of the embedded engine. With `etcd URL,URL SECONDS WRITERS`, only the transactions a second on
//! an etcd, to be compared with those of its own client.
//!
//! Every number is printed beside its bar. What is measured depends on the disk and on what else the machine does.
#![expect(clippy::print_stdout, reason = "its results go there")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_store::etcd::{Etcd, EtcdOptions};
use portolan_store::{Compare, Embedded, EmbeddedOptions, Range, Span, Store, Transaction};
use tokio::runtime::Runtime;

const VALUE: usize = 256;
const TIME: Duration = Duration::from_secs(5);

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [_, urls, seconds, writers] = &args[..] {
        let number = |text: &str| text.parse().expect("a number");
        let time = Duration::from_secs(number(seconds));
        runtime.block_on(etcd(urls, time, number(writers) as usize));
        return;
    }
    let directory = std::env::temp_dir().join(format!("store-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("store.redb");
    runtime.block_on(embedded(&path));
    objects(&runtime, &directory.join("objects.redb"));
    std::fs::remove_dir_all(&directory).expect("removed");
}

/// Writers that each replace a key of their own on an etcd. Prints the transactions a second.
async fn etcd(urls: &str, time: Duration, writers: usize) {
    let engine = Etcd::new(EtcdOptions::new(urls.split(','))).expect("usable addresses");
    let store = Store::new(Arc::new(engine));
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(store.clone(), writer, start + time)))
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a writer").len();
    }
    println!("{:.0}", count as f64 / start.elapsed().as_secs_f64());
}

/// A row of the table; a bar that was missed is told as such.
fn tell(what: &str, measured: &str, bar: &str, is_met: bool) {
    let bar = if is_met {
        bar.to_owned()
    } else {
        format!("{bar}: **missed**")
    };
    println!("| {what} | {measured} | | | {bar} |");
}

async fn embedded(path: &Path) {
    let engine = Arc::new(Embedded::open(path, EmbeddedOptions::default()).expect("opens"));
    writes(engine.clone(), 1, 300.0, None).await;
    writes(engine.clone(), 256, 20_000.0, Some(20.0)).await;
    reads(engine.clone()).await;
    watchers(engine).await;
}

/// Writers that each replace a key of their own as fast as they are answered.
async fn writes(engine: Arc<Embedded>, writers: usize, least: f64, most_ms: Option<f64>) {
    let store = Store::new(engine);
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(store.clone(), writer, start + TIME)))
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a writer"));
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100].as_secs_f64() * 1e3;
    let late = most_ms.map(|most| format!(", p99 < {most:.0} ms"));
    tell(
        &format!("embedded: writes of {VALUE} B, {writers} writers in the process"),
        &format!("{rate:.0}/s, p99 {p99:.1} ms"),
        &format!("≥ {least:.0}/s{}", late.unwrap_or_default()),
        rate >= least && most_ms.is_none_or(|most| p99 < most),
    );
}

async fn write(store: Store, writer: usize, end: Instant) -> Vec<Duration> {
    let key = format!("/portolan/v1/bench/{writer}");
    let mut seen = store
        .get(key.clone())
        .await
        .expect("a read")
        .map_or(0, |record| record.mod_revision);
    let mut times = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        let outcome = store
            .commit(Transaction::replace(key.clone(), seen, vec![b'x'; VALUE]))
            .await;
        seen = outcome.expect("an answer").revision;
        times.push(start.elapsed());
    }
    times
}

async fn reads(engine: Arc<Embedded>) {
    let start = Instant::now();
    let tasks: Vec<_> = (0..2)
        .map(|reader| {
            let store = Store::new(engine.clone());
            tokio::spawn(async move {
                let mut count = 0_u64;
                while start.elapsed() < TIME {
                    let key = format!("/portolan/v1/bench/{}", (count * 7 + reader) % 256);
                    assert!(store.get(key).await.expect("a read").is_some());
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a reader");
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    tell(
        "embedded: reads of one key, 2 readers in the process",
        &format!("{rate:.0}/s"),
        "≥ 300000/s",
        rate >= 300_000.0,
    );
}

/// Ten thousand watches of one key: how long after the write is answered the last of them has it.
async fn watchers(engine: Arc<Embedded>) {
    const WATCHERS: usize = 10_000;
    let store = Store::new(engine);
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let from = store.status().await.expect("a status").revision + 1;
    for _ in 0..WATCHERS {
        let mut watcher = store
            .watch(Span::key("/watched"), from)
            .await
            .expect("a watch");
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Ok(update) = watcher.next().await {
                let _ = sender.send((update.revision(), Instant::now()));
            }
        });
    }
    let (mut seen, mut latencies) = (0, Vec::new());
    for _ in 0..20 {
        let start = Instant::now();
        let outcome = store
            .commit(Transaction::replace("/watched", seen, "x"))
            .await;
        seen = outcome.expect("an answer").revision;
        for _ in 0..WATCHERS {
            let (_, at) = told.recv().await.expect("told");
            latencies.push(at - start);
        }
    }
    latencies.sort_unstable();
    let p99 = latencies[latencies.len() * 99 / 100].as_secs_f64() * 1e3;
    tell(
        "embedded: 10000 watches in the process, write to event, p99",
        &format!("{p99:.1} ms"),
        "≤ 100 ms",
        p99 <= 100.0,
    );
}

/// 100,000 objects of 1 KiB: opening, also without a clean end, a page, and memory.
fn objects(runtime: &Runtime, path: &Path) {
    const OBJECTS: usize = 100_000;
    let engine = Arc::new(Embedded::open(path, EmbeddedOptions::default()).expect("opens"));
    let store = Store::new(engine);
    runtime.block_on(async {
        for batch in 0..OBJECTS / 100 {
            let create = (0..100).fold(Transaction::new(), |transaction, number| {
                let key = format!("/portolan/v1/node/{:06}", batch * 100 + number);
                transaction
                    .when(Compare::absent(key.clone()))
                    .put(key, vec![b'x'; 1024])
            });
            assert!(store.commit(create).await.expect("an answer").succeeded);
        }
    });
    drop(store);
    // A copy of an open file is what a killed process leaves.
    let engine = Embedded::open(path, EmbeddedOptions::default()).expect("opens");
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).expect("a copy");
    drop(engine);
    for (what, path) in [("", path), (" after a kill", copy.as_path())] {
        let start = Instant::now();
        let engine = Embedded::open(path, EmbeddedOptions::default()).expect("opens");
        let took = start.elapsed();
        tell(
            &format!("embedded: 100000 objects of 1 KiB, ready{what}"),
            &format!("{:.2} s", took.as_secs_f64()),
            "< 3 s",
            took < Duration::from_secs(3),
        );
        let store = Store::new(Arc::new(engine));
        let start = Instant::now();
        let range = Range::new(Span::prefix("/portolan/v1/node/")).limit(500);
        let page = runtime.block_on(store.range(range)).expect("a page");
        assert_eq!(page.records.len(), 500);
        let took = start.elapsed().as_secs_f64() * 1e3;
        tell(
            "embedded: page of 500",
            &format!("{took:.1} ms"),
            "< 20 ms",
            took < 20.0,
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let megabytes = kib.expect("a size") >> 10;
    tell(
        "embedded: memory with 100000 objects, as after its start",
        &format!("{megabytes} MB"),
        "< 300 MB",
        megabytes < 300,
    );
}
