//! Clients that read and replace a few objects through all servers, and what they and a watch saw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_kinds::find_kind;
use portolan_server::{FleetClient, FleetError, FleetMethod, ObjectPath};
use portolan_store::Revision;
use portolan_store::conformance::{
    KeyedCall, RegisterAction, RegisterCounters, RegisterHistory, ToldChange,
};
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

/// The clients at work.
pub(crate) struct Clients {
    shared: Arc<RegisterCounters>,
    pub(crate) runtime: Runtime,
    pub(crate) servers: Vec<FleetClient>,
    workers: Vec<JoinHandle<Vec<KeyedCall>>>,
    watch: JoinHandle<Vec<ToldChange>>,
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
        let shared = Arc::new(RegisterCounters::default());
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
        self.shared.acknowledged()
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
    pub(crate) fn stop(mut self) -> RegisterHistory {
        self.shared.end();
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
        RegisterHistory {
            calls,
            told: told.expect("no panic"),
            last,
        }
    }
}

struct Client {
    servers: Vec<FleetClient>,
    shared: Arc<RegisterCounters>,
    random: u64,
    /// The value and version of each object that this client saw last.
    seen: Vec<Option<(u64, String)>>,
    done: Vec<KeyedCall>,
}

impl Client {
    async fn work(mut self) -> Vec<KeyedCall> {
        while !self.shared.has_ended() {
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
        self.note(key, start, action, 0);
    }

    async fn swap(&mut self, key: usize, server: &FleetClient) {
        let new = self.shared.fresh_value();
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
        let mut told = 0;
        let done = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(object)) => {
                told = revision(&object);
                self.seen[key] = Some((new, version(&object)));
                self.shared.acknowledge();
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

    fn note(&mut self, key: usize, start: u64, action: RegisterAction, revision: Revision) {
        self.done
            .push(self.shared.call(key, start, action, revision));
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
async fn follow(servers: Vec<FleetClient>, begin: String) -> Vec<ToldChange> {
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
                    told.push(ToldChange {
                        revision: revision(object),
                        key: number(object),
                        seen: Some(value(object)),
                    });
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

/// The revision of the store in a version.
fn revision(object: &Value) -> Revision {
    let version = version(object);
    let number = version.split('.').nth(1);
    let number = number.and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{version}"))
}

fn number(object: &Value) -> usize {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let number = name
        .strip_prefix("register-")
        .and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{object}"))
}
