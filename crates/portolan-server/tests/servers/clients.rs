//! Clients that read and replace a few objects through all servers, and what they and a watch saw.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portolan_kinds::find_kind;
use portolan_server::{FleetClient, FleetError, FleetMethod, ObjectPath};
use portolan_store::conformance::{HistoryVerdict, RegisterAction, RegisterCall, Seen, judge};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::processes::{COUNT, SOON, Servers, status};

const CLIENTS: u64 = 4;
const KEYS: usize = 3;
const COLLECTION: &str = "/api/v1alpha/namespaces/default/variables";
/// Between two operations of a client, so that a history has thousands of operations and not millions.
const PACE: Duration = Duration::from_millis(10);
/// What a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(4);
const STEPS: usize = 2_000_000;

/// An operation, with the version that a done swap was told.
#[derive(Clone)]
struct Done {
    key: usize,
    call: RegisterCall,
    version: String,
}

/// What was seen from the beginning to the end.
pub(crate) struct History {
    calls: Vec<Done>,
    /// What the watch told: version, key, value.
    told: Vec<(String, usize, u64)>,
    /// What was read at the end.
    last: Vec<Seen>,
}

#[derive(Default)]
struct Shared {
    clock: AtomicU64,
    value: AtomicU64,
    acknowledged: AtomicU64,
    has_ended: AtomicBool,
}

impl Shared {
    /// Orders starts and ends as they really were.
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

/// The clients at work.
pub(crate) struct Clients {
    shared: Arc<Shared>,
    pub(crate) runtime: Runtime,
    pub(crate) servers: Vec<FleetClient>,
    workers: Vec<JoinHandle<Vec<Done>>>,
    watch: JoinHandle<Vec<(String, usize, u64)>>,
}

impl Clients {
    /// Starts them among the clients of the cluster.
    pub(crate) fn start(servers: &Servers) -> Self {
        let runtime = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                servers.cluster.enter();
                Runtime::new().expect("a runtime")
            });
            inside.join().expect("a runtime inside")
        });
        let shared = Arc::new(Shared::default());
        // Connections are made by the tasks, which run inside.
        let own = servers.clients();
        let first = own[0].clone();
        let begin = runtime.spawn(async move { begin(&first).await });
        let begin = runtime.block_on(begin).expect("no panic");
        let workers = (0..CLIENTS).map(|number| {
            let client = Client {
                servers: servers.clients(),
                shared: Arc::clone(&shared),
                random: number * 7919 + 1,
                seen: vec![None; KEYS],
                done: Vec::new(),
            };
            runtime.spawn(client.work())
        });
        let workers = workers.collect();
        let watch = runtime.spawn(follow(servers.clients(), begin));
        Self {
            shared,
            servers: own,
            workers,
            watch,
            runtime,
        }
    }

    /// Does something in the threads of the runtime, which are among the clients of the cluster; the caller's is not.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let task = self.runtime.spawn(future);
        self.runtime.block_on(task).expect("no panic")
    }

    /// Sends a request to one server.
    pub(crate) fn request(
        &self,
        server: usize,
        method: FleetMethod,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, FleetError> {
        let (server, path) = (self.servers[server].clone(), path.to_owned());
        self.inside(async move {
            let asked = server.request(method, &path, &[], body.as_deref());
            let timed = tokio::time::timeout(5 * PATIENCE, asked).await;
            timed.unwrap_or_else(|_| Err(FleetError::Foreign("nothing in time".to_owned())))
        })
    }

    /// Writes that were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until writes are acknowledged again.
    pub(crate) fn until_writable(&self) {
        let (before, start) = (self.acknowledged(), Instant::now());
        while self.acknowledged() < before + 3 * CLIENTS {
            assert!(start.elapsed() < SOON, "clients do not get on");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// The number of the server that does the work of the controllers, as some server other than `but` tells it.
    pub(crate) fn owner(&self, but: Option<usize>) -> Option<usize> {
        let clients = self.servers.clone();
        self.inside(async move {
            let asked = clients.iter().enumerate();
            for (_, client) in asked.filter(|(number, _)| Some(*number) != but) {
                let Ok(answer) = status(client).await else {
                    continue;
                };
                let servers = answer["servers"].as_array().expect("servers").iter();
                let mut servers = servers.filter(|server| server["isOwner"] == true);
                if let Some(owner) = servers.next() {
                    let address = owner["address"].as_str().expect("an address").to_owned();
                    let mut clients = clients.iter();
                    return clients.position(|client| client.server().starts_with(&address));
                }
            }
            None
        })
    }

    /// Sends a request to the servers in turn until one of them does it.
    pub(crate) fn insist(&self, method: FleetMethod, path: &str, body: Option<&Value>) -> Value {
        let start = Instant::now();
        loop {
            for server in 0..COUNT {
                match self.request(server, method, path, body.map(ToString::to_string)) {
                    Ok(answer) => return answer,
                    Err(FleetError::Refused { status, .. }) if status == 409 || status == 404 => {
                        return json!({ "status": status });
                    }
                    Err(_) => {}
                }
            }
            assert!(start.elapsed() < SOON, "nobody does {path}");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Ends the clients, and the watch when it has told everything.
    pub(crate) fn stop(mut self) -> History {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        let mut calls = Vec::new();
        for worker in std::mem::take(&mut self.workers) {
            calls.extend(self.runtime.block_on(worker).expect("no panic"));
        }
        let last = (0..KEYS).map(|key| {
            let path = format!("{COLLECTION}/register-{key}");
            let read = self.insist(FleetMethod::Get, &path, None);
            (read["status"] != 404).then(|| value(&read))
        });
        let last = last.collect();
        self.insist(FleetMethod::Post, COLLECTION, Some(&variable("end", 0)));
        let watch = self.watch;
        let watched = async { tokio::time::timeout(SOON, watch).await };
        let told = self.runtime.block_on(watched).expect("in time");
        History {
            calls,
            told: told.expect("no panic"),
            last,
        }
    }
}

struct Client {
    servers: Vec<FleetClient>,
    shared: Arc<Shared>,
    random: u64,
    /// The value and version of each object that this client saw last.
    seen: Vec<Option<(u64, String)>>,
    done: Vec<Done>,
}

impl Client {
    async fn work(mut self) -> Vec<Done> {
        while !self.shared.has_ended.load(Ordering::SeqCst) {
            let key = self.next(KEYS);
            let server = self.next(COUNT);
            let server = self.servers[server].clone();
            if self.next(3) == 0 {
                self.read(key, &server).await;
            } else {
                self.swap(key, &server).await;
            }
            tokio::time::sleep(PACE).await;
        }
        self.done
    }

    /// A number below another one, by a generator that is good enough to spread load.
    fn next(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.random >> 33) as usize) % below
    }

    async fn read(&mut self, key: usize, server: &FleetClient) {
        let start = self.shared.tick();
        let path = format!("{COLLECTION}/register-{key}");
        let asked = server.request(FleetMethod::Get, &path, &[], None);
        let seen = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(object)) => Some((value(&object), version(&object))),
            Ok(Err(FleetError::Refused { status: 404, .. })) => None,
            _ => return,
        };
        let action = RegisterAction::Read(seen.as_ref().map(|(value, _)| *value));
        self.seen[key] = seen;
        self.note(key, start, action, String::new());
    }

    async fn swap(&mut self, key: usize, server: &FleetClient) {
        let new = self.shared.value.fetch_add(1, Ordering::SeqCst) + 1;
        let mut object = variable(&format!("register-{key}"), new);
        let seen = self.seen[key].take();
        let (method, path) = match &seen {
            None => (FleetMethod::Post, COLLECTION.to_owned()),
            Some((_, version)) => {
                object["metadata"]["resourceVersion"] = version.as_str().into();
                (FleetMethod::Put, format!("{COLLECTION}/register-{key}"))
            }
        };
        let start = self.shared.tick();
        let body = object.to_string();
        let asked = server.request(method, &path, &[], Some(&body));
        let mut told = String::new();
        let done = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(object)) => {
                told = version(&object);
                self.seen[key] = Some((new, told.clone()));
                self.shared.acknowledged.fetch_add(1, Ordering::SeqCst);
                Some(true)
            }
            Ok(Err(FleetError::Refused { status: 409, .. })) => Some(false),
            // These say that nothing was done; a later read of the value would contradict them.
            Ok(Err(FleetError::Refused {
                status: 503 | 507, ..
            })) => return,
            _ => None,
        };
        let action = RegisterAction::Swap {
            expected: seen.map(|(value, _)| value),
            new: Some(new),
            done,
        };
        self.note(key, start, action, told);
    }

    fn note(&mut self, key: usize, start: u64, action: RegisterAction, version: String) {
        let end = self.shared.tick();
        let call = RegisterCall { start, end, action };
        self.done.push(Done { key, call, version });
    }
}

/// The version of the store before the first write.
async fn begin(server: &FleetClient) -> String {
    let start = Instant::now();
    loop {
        let listed = server
            .request(FleetMethod::Get, COLLECTION, &[], None)
            .await;
        if let Ok(list) = listed {
            return version(&list);
        }
        assert!(start.elapsed() < SOON, "no server: {listed:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Follows all objects, from the next server whenever one ends the watch, until the end is told.
async fn follow(servers: Vec<FleetClient>, begin: String) -> Vec<(String, usize, u64)> {
    let kind = find_kind("Variable").expect("a kind");
    let path = ObjectPath {
        kind,
        namespace: Some("default".to_owned()),
        name: None,
    };
    let mut told = Vec::new();
    let mut resume = begin;
    for server in servers.iter().cycle() {
        let mut has_ended = false;
        let from = resume.clone();
        let query = [("resourceVersion", from.as_str())];
        // A bookmark comes every ten seconds; one that does not come means that the server is gone.
        let watching = server.watch(&path, &query, |message| {
            let object = &message["object"];
            resume = version(object);
            match message["type"].as_str() {
                Some("ADDED" | "MODIFIED") if object["metadata"]["name"] == "end" => {
                    has_ended = true;
                }
                Some("ADDED" | "MODIFIED") => {
                    told.push((version(object), number(object), value(object)));
                }
                Some("BOOKMARK") => {}
                _ => panic!("{message}"),
            }
            !has_ended
        });
        let _ = tokio::time::timeout(Duration::from_secs(20), watching).await;
        if has_ended {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    told
}

fn variable(name: &str, value: u64) -> Value {
    json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": name, "namespace": "default"},
        "spec": {"values": {"number": value.to_string()}},
    })
}

fn value(object: &Value) -> u64 {
    let text = object["spec"]["values"]["number"].as_str();
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{object}"))
}

fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_else(|| panic!("{object}")).to_owned()
}

fn number(object: &Value) -> usize {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let number = name
        .strip_prefix("register-")
        .and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{object}"))
}

/// Checks everything that was seen.
pub(crate) fn check(history: &History) {
    check_watch(history);
    for key in 0..KEYS {
        let own = history.calls.iter().filter(|done| done.key == key);
        let calls: Vec<RegisterCall> = own.map(|done| done.call).collect();
        match judge(&calls, STEPS) {
            HistoryVerdict::Linearizable => {}
            HistoryVerdict::NotLinearizable(at) => {
                let near: Vec<_> = calls[at.saturating_sub(5)..].iter().take(10).collect();
                panic!(
                    "object {key}: no order explains {:?}, near {near:#?}",
                    calls[at]
                );
            }
            HistoryVerdict::TooHard => panic!("object {key}: not found out in {STEPS} steps"),
        }
    }
    let is_unknown =
        |done: &&Done| matches!(done.call.action, RegisterAction::Swap { done: None, .. });
    eprintln!(
        "  {} operations, {} changes told, {} never found out",
        history.calls.len(),
        history.told.len(),
        history.calls.iter().filter(is_unknown).count()
    );
}

/// Every acknowledged write is told once, with its version; what else is told was never found out; versions rise.
fn check_watch(history: &History) {
    let revision = |version: &str| {
        let number = version
            .split('.')
            .nth(1)
            .and_then(|text| text.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("{version}"))
    };
    let versions: Vec<u64> = history
        .told
        .iter()
        .map(|(version, ..)| revision(version))
        .collect();
    let is_ordered = versions.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(is_ordered, "versions are told twice or in another order");
    let told = history.told.iter();
    let mut told: BTreeMap<&str, (usize, u64)> = told
        .map(|(version, key, value)| (version.as_str(), (*key, *value)))
        .collect();
    let mut open = BTreeSet::new();
    for done in &history.calls {
        let RegisterAction::Swap {
            new: Some(new),
            done: is_done,
            ..
        } = done.call.action
        else {
            continue;
        };
        match is_done {
            Some(true) => assert_eq!(
                told.remove(done.version.as_str()),
                Some((done.key, new)),
                "the write of version {} is not told as it was made",
                done.version
            ),
            Some(false) => {}
            None => drop(open.insert((done.key, new))),
        }
    }
    for (version, change) in told {
        assert!(
            open.contains(&change),
            "version {version}: nobody made {change:?}"
        );
    }
    for (key, last) in history.last.iter().enumerate() {
        let mut own = history
            .told
            .iter()
            .rev()
            .filter(|(_, told, _)| *told == key);
        assert_eq!(own.next().map(|(.., value)| *value), *last, "object {key}");
    }
}
