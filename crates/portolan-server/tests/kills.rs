//! A single server as a process of its own: killed under load at any moment, looked at while it writes files, and filled with
//! objects.
#![expect(clippy::panic, reason = "helpers of tests")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portolan_listen::{ListenConfig, TlsSource};
use portolan_server::{
    ApiServer, DataDirectory, FleetClient, FleetError, FleetMethod, ServerOptions, ServerStore,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Tells the process which directory it serves.
const DIRECTORY: &str = "PORTOLAN_TEST_DIRECTORY";
const KILLS: usize = 5;
const LONG_KILLS: usize = 500;
const WRITERS: usize = 4;
const COLLECTION: &str = "/api/v1alpha/namespaces/default/variables";
/// Objects of the guard of memory, and how many are created at the same time.
const OBJECTS: usize = 10_000;
const FILLERS: usize = 64;
/// What these may take beside what an empty server does: their bytes, the pages of the store that are kept in memory, and
/// the history that watches resume in.
const MOST_BYTES_OF_MANY: usize = 60 << 20;
/// For a state to come on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(2);

/// A running server.
struct Server {
    process: Child,
    client: FleetClient,
    /// From its start to its first answer.
    ready: Duration,
}

impl Server {
    /// Starts one, behind another program such as `strace` if there is one.
    fn start(directory: &Path, behind: &[&str], runtime: &Runtime) -> Self {
        let began = Instant::now();
        let program = std::env::current_exe().expect("this program");
        let mut words: Vec<PathBuf> = behind.iter().map(PathBuf::from).collect();
        words.push(program);
        let mut process = Command::new(&words[0])
            .args(&words[1..])
            .args(["--exact", "server_process", "--nocapture"])
            .env(DIRECTORY, directory)
            // It ends when this pipe does, so nothing is left however the test ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let port: u16 = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.rsplit_once("port ")?.1.parse().ok())
            .expect("a port");
        std::thread::spawn(move || lines.for_each(drop));
        let read = |name: &str| std::fs::read_to_string(directory.join(name));
        let client = loop {
            // The files of a first start come one after the other.
            if let (Ok(token), Ok(authority)) = (read("admin.token"), read("ca.pem")) {
                let token = portolan_http::Secret::from(token.trim());
                let url = format!("https://127.0.0.1:{port}");
                break FleetClient::new(&url, token, vec![authority]).expect("a client");
            }
            assert!(began.elapsed() < SOON, "no files");
            std::thread::park_timeout(Duration::from_millis(5));
        };
        loop {
            let asked = client.request(FleetMethod::Get, "/api/v1alpha/status", &[], None);
            match runtime.block_on(asked) {
                Ok(_) => break,
                Err(error) => assert!(began.elapsed() < SOON, "not ready: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Self {
            process,
            client,
            ready: began.elapsed(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process of the server: this program, started again.
#[test]
fn server_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::abort();
    });
    Runtime::new().expect("a runtime").block_on(async {
        let directory = PathBuf::from(directory);
        let files = DataDirectory::open(&directory).expect("a directory");
        let store = ServerStore::open(&files, None).expect("a store");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let started = ApiServer::start(store.store(), ServerOptions::new(&directory)).await;
        let (server, _) = started.unwrap_or_else(|error| panic!("{error}"));
        let names = ["127.0.0.1", "localhost"].map(str::to_owned).to_vec();
        let config = ListenConfig {
            tls: Some(TlsSource::OwnAuthority {
                directory,
                names: names.clone(),
            }),
            readiness: server.readiness(),
            ..ListenConfig::default()
        };
        let router = server.router(names);
        let cancelled = CancellationToken::new();
        let served = portolan_listen::serve(listener, router, config, cancelled.clone());
        println!("port {port}");
        let (served, why) = tokio::join!(served, server.run(cancelled));
        panic!("the server has ended: {why:?}, {:?}", served.err());
    });
}

fn variable(name: &str, number: u64) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": name, "namespace": "default"},
        "spec": {"values": {"number": number.to_string()}},
    })
}

/// Applies higher and higher numbers until the server is gone; returns the last one that was answered and the last one sent.
async fn write(
    client: FleetClient,
    name: String,
    first: u64,
    ended: Arc<AtomicBool>,
) -> (u64, u64) {
    let path = format!("{COLLECTION}/{name}");
    let mut answered = first;
    for number in first + 1.. {
        let body = variable(&name, number).to_string();
        let asked = client.request(FleetMethod::Put, &path, &[("apply", "true")], Some(&body));
        match asked.await {
            Ok(_) => answered = number,
            Err(FleetError::Refused {
                status, message, ..
            }) => panic!("{status}: {message}"),
            Err(_) => return (answered, number),
        }
        if ended.load(Ordering::SeqCst) {
            return (answered, number);
        }
    }
    (answered, answered)
}

#[test]
fn a_killed_server_has_everything_that_it_answered() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let kills = if is_long { LONG_KILLS } else { KILLS };
    eprintln!("kills of a server under load: {kills} of {LONG_KILLS}");
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = Runtime::new().expect("a runtime");
    let mut server = Server::start(directory.path(), &[], &runtime);
    let mut numbers = [0; WRITERS];
    let mut times = Vec::new();
    for kill in 0..kills {
        let ended = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let name = format!("register-{writer}");
                let client = server.client.clone();
                runtime.spawn(write(client, name, numbers[writer], Arc::clone(&ended)))
            })
            .collect();
        // Another moment each time, after some writes were answered.
        std::thread::park_timeout(Duration::from_millis(150 + (kill as u64 * 37) % 200));
        drop(server);
        ended.store(true, Ordering::SeqCst);
        let sent: Vec<(u64, u64)> = writers
            .into_iter()
            .map(|writer| runtime.block_on(writer).expect("no panic"))
            .collect();
        server = Server::start(directory.path(), &[], &runtime);
        times.push(server.ready);
        for (writer, (answered, last)) in sent.into_iter().enumerate() {
            let path = format!("{COLLECTION}/register-{writer}");
            let read = runtime.block_on(server.client.request(FleetMethod::Get, &path, &[], None));
            let found = match read {
                Ok(object) => {
                    let text = object["spec"]["values"]["number"].as_str();
                    text.and_then(|text| text.parse().ok()).expect("a number")
                }
                Err(FleetError::Refused { status: 404, .. }) => 0,
                Err(error) => panic!("{error}"),
            };
            assert!(
                (answered..=last).contains(&found),
                "writer {writer}: {answered} was answered, {found} is there"
            );
            numbers[writer] = found;
        }
    }
    times.sort_unstable();
    eprintln!(
        "  ready again: median {:.2} s, longest {:.2} s; {} writes",
        times[times.len() / 2].as_secs_f64(),
        times[times.len() - 1].as_secs_f64(),
        numbers.iter().sum::<u64>()
    );
}

/// Creates objects of 1 KiB, many at a time.
async fn fill(client: &FleetClient, objects: usize) {
    let config = json!({
        "apiVersion": "v1alpha", "kind": "Config", "metadata": {"name": "server"},
        "spec": {"limits": {"requestsPerSecond": 100_000, "requestBurst": 100_000}},
    });
    let (path, config) = ("/api/v1alpha/configs", config.to_string());
    let created = client.request(FleetMethod::Post, path, &[], Some(&config));
    created.await.expect("a config");
    let next = Arc::new(AtomicUsize::new(0));
    let tasks = (0..FILLERS).map(|_| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= objects {
                    return;
                }
                let mut object = variable(&format!("filled-{number}"), 0);
                object["spec"]["values"]["number"] = "x".repeat(1024).into();
                let body = object.to_string();
                let create = || client.request(FleetMethod::Post, COLLECTION, &[], Some(&body));
                // The first of them may come before the limits of the Config count.
                while let Err(error) = create().await {
                    assert!(
                        matches!(error, FleetError::Refused { status: 429, .. }),
                        "{error}"
                    );
                    tokio::task::yield_now().await;
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
}

/// The bytes that a process has in memory.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.expect("a size") << 10
}

/// 100,000 objects must fit into 300 MB together with the program, the store and the audit log; `bench/store.sh` measures
/// that many.
#[test]
fn a_server_with_many_objects_stays_small() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = Runtime::new().expect("a runtime");
    let server = Server::start(directory.path(), &[], &runtime);
    let empty = resident(server.process.id());
    runtime.block_on(fill(&server.client, OBJECTS));
    let filled = resident(server.process.id());
    drop(server);
    let server = Server::start(directory.path(), &[], &runtime);
    let page = [("limit", "500")];
    let listed = server
        .client
        .request(FleetMethod::Get, COLLECTION, &page, None);
    let listed = runtime.block_on(listed).expect("a page");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(500));
    let started = resident(server.process.id());
    let mb = |bytes: usize| bytes >> 20;
    eprintln!(
        "  memory: {} MB empty, {} MB after {OBJECTS} objects of 1 KiB were created, {} MB when started with them",
        mb(empty),
        mb(filled),
        mb(started)
    );
    let most = MOST_BYTES_OF_MANY;
    assert!(filled <= empty + most, "{filled} bytes, {empty} when empty");
    assert!(
        started <= empty + most,
        "{started} bytes, {empty} when empty"
    );
}

/// What a process did with a file or a connection, in order.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Write(String),
    Sync(String),
    Send,
}

/// Reads what `strace -f -y` wrote: calls that ended well, at their end.
fn acts(trace: &str) -> Vec<Act> {
    let mut open: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for line in trace.lines() {
        let Some((process, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let whole = if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            open.insert(process, begun.to_owned());
            continue;
        } else if call.starts_with("<... ") {
            let rest = call.split_once("resumed>").map_or("", |(_, rest)| rest);
            format!("{}{rest}", open.remove(process).unwrap_or_default())
        } else {
            call.to_owned()
        };
        let Some((name, rest)) = whole.split_once('(') else {
            continue;
        };
        // `12</data/audit.log>, …` or `9<socket:[123]>, …`
        let path = rest
            .split_once('<')
            .and_then(|(_, path)| path.split_once('>'));
        let Some((path, _)) = path.filter(|_| !whole.contains(" = -1 ")) else {
            continue;
        };
        match name {
            "fsync" | "fdatasync" => found.push(Act::Sync(path.to_owned())),
            _ if path.starts_with("socket:") || path.starts_with("TCP") => found.push(Act::Send),
            "write" | "pwrite64" | "writev" => found.push(Act::Write(path.to_owned())),
            _ => {}
        }
    }
    found
}

#[test]
fn files_are_synced_with_their_directory_before_a_request_is_answered() {
    if !portolan_testbed::has_program("strace", "--version") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().canonicalize().expect("a path");
    let log = tempfile::NamedTempFile::new().expect("a file");
    let output = log.path().to_str().expect("a plain name");
    let calls = "trace=write,pwrite64,writev,sendto,sendmsg,fsync,fdatasync";
    let behind = ["strace", "-f", "-y", "-s", "8", "-e", calls, "-o", output];
    let runtime = Runtime::new().expect("a runtime");
    let server = Server::start(&data, &behind, &runtime);
    let body = variable("region", 1).to_string();
    let created = server
        .client
        .request(FleetMethod::Post, COLLECTION, &[], Some(&body));
    runtime.block_on(created).expect("created");
    drop(server);
    let trace = std::fs::read_to_string(log.path()).expect("a trace");
    let acts = acts(&trace);
    let path = |name: &str| data.join(name).display().to_string();
    let first_answer = acts
        .iter()
        .position(|act| *act == Act::Send)
        .expect("an answer");
    let directory_synced = Act::Sync(data.display().to_string());
    // Keys are written under other names first, so their directory is what shows.
    for name in ["server.id", "secrets.key", "admin.token"] {
        let synced = acts.iter().position(|act| *act == Act::Sync(path(name)));
        let synced = synced.unwrap_or_else(|| panic!("{name} is never synced"));
        let named = acts[synced..first_answer].contains(&directory_synced);
        assert!(
            named,
            "the name of {name} is not synced before the first answer"
        );
    }
    let mut lines = 0;
    for (at, act) in acts.iter().enumerate() {
        if *act == Act::Write(path("audit.log")) {
            lines += 1;
            let mut next = acts[at..].iter();
            let next =
                next.find(|act| matches!(act, Act::Send) || **act == Act::Sync(path("audit.log")));
            assert_eq!(
                next,
                Some(&Act::Sync(path("audit.log"))),
                "answered before the log is synced"
            );
        }
    }
    assert!(lines > 0, "nothing was written to the audit log");
}
