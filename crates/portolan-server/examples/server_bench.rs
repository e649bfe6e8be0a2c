//! What a running server does in a second, as rows of the table in `bench/README.md`.
//!
//! `server_bench rates PORT DATA PID` writes and reads for some seconds; `streams PORT DATA CONNECTIONS STREAMS` follows one
//! change by many; `fill PORT DATA PID OBJECTS` creates objects of 1 KiB; `page PORT DATA PID` waits until the server is ready and
//! reads a page of them. The client is another process than the server, over TLS and gRPC, on the same cores.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its results and mistakes go there"
)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_kinds::wire::{
    GetRequest, ListRequest, Metadata, Object, ObjectList, WatchEvent, WatchRequest, WriteRequest,
};
use portolan_kinds::{encode, message};
use serde_json::json;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

const TIME: Duration = Duration::from_secs(5);
/// Requests that are under way at the same time.
const TASKS: usize = 64;
/// A server that does not become ready in this time does not become ready.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().expect("a number");
    match words[..] {
        ["rates", port, data, pid] => rates(&Server::new(port, data), pid).await,
        ["streams", port, data, connections, streams] => {
            let server = Server::new(port, data);
            follow(&server, number(connections), number(streams)).await;
        }
        ["fill", port, data, pid, objects] => {
            fill(&Server::new(port, data), number(objects)).await;
            tell_memory(
                "server: memory when 100000 objects of 1 KiB were created",
                pid,
            );
        }
        ["page", port, data, pid] => page(port, data, pid).await,
        _ => {
            eprintln!("the head of this program's source says what it takes");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
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

/// How a server is reached.
#[derive(Clone)]
struct Server {
    endpoint: Endpoint,
    token: MetadataValue<tonic::metadata::Ascii>,
}

impl Server {
    fn new(port: &str, data: &str) -> Self {
        let read =
            |name: &str| std::fs::read_to_string(Path::new(data).join(name)).expect("a file");
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(read("ca.pem")))
            .domain_name("localhost");
        let endpoint = Endpoint::from_shared(format!("https://localhost:{port}"));
        let endpoint = endpoint.expect("an address").tls_config(tls);
        let token = format!("Bearer {}", read("admin.token").trim());
        Self {
            endpoint: endpoint.expect("an authority"),
            token: token.parse().expect("a header"),
        }
    }

    async fn connect(&self) -> Client {
        let channel = self.endpoint.connect().await.expect("a connection");
        Client {
            grpc: Grpc::new(channel).max_decoding_message_size(64 << 20),
            token: self.token.clone(),
        }
    }
}

/// One connection.
#[derive(Clone)]
struct Client {
    grpc: Grpc<Channel>,
    token: MetadataValue<tonic::metadata::Ascii>,
}

impl Client {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request
            .metadata_mut()
            .insert("authorization", self.token.clone());
        request
    }

    async fn call<Q, A>(&mut self, method: &'static str, message: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let ready = self.grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = format!("/portolan.v1alpha.Objects/{method}");
        let path = path.parse().expect("a path");
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let answer = self.grpc.unary(self.request(message), path, codec).await?;
        Ok(answer.into_inner())
    }

    async fn watch(&mut self, asked: WatchRequest) -> Streaming<WatchEvent> {
        self.grpc.ready().await.expect("a connection");
        let path = http::uri::PathAndQuery::from_static("/portolan.v1alpha.Objects/Watch");
        let codec: ProstCodec<WatchRequest, WatchEvent> = ProstCodec::default();
        let request = self.request(asked);
        let answer = self.grpc.server_streaming(request, path, codec).await;
        answer.expect("a watch").into_inner()
    }
}

fn variable(name: &str, value: &str) -> WriteRequest {
    let spec = json!({"values": {"value": value}});
    let descriptor = message("VariableSpec").expect("a message");
    let bytes = encode(descriptor, &spec);
    WriteRequest {
        object: Some(Object {
            api_version: "v1alpha".to_owned(),
            kind: "Variable".to_owned(),
            metadata: Some(Metadata {
                name: Some(name.to_owned()),
                namespace: Some("default".to_owned()),
                ..Metadata::default()
            }),
            spec: Some(prost_types::Any {
                type_url: "type.googleapis.com/portolan.v1alpha.VariableSpec".to_owned(),
                value: bytes,
            }),
            status: None,
        }),
        dry_run: false,
    }
}

/// Writes and reads of many tasks over four connections.
async fn rates(server: &Server, pid: &str) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(server.connect().await);
    }
    let value = "x".repeat(256);
    let start = Instant::now();
    let writers = (0..TASKS).map(|task| {
        let (mut client, value) = (clients[task % clients.len()].clone(), value.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            while start.elapsed() < TIME {
                let (began, count) = (Instant::now(), times.len());
                let write = variable(&format!("bench-{task}"), &format!("{value}{count}"));
                let written: Result<Object, Status> = client.call("Apply", write).await;
                written.expect("written");
                times.push(began.elapsed());
            }
            times
        })
    });
    let (rate, p99) = gathered(writers.collect(), start).await;
    let measured = format!("{rate:.0}/s, p99 {:.1} ms", p99.as_secs_f64() * 1e3);
    tell(
        "server: writes of 256 B over gRPC and TLS, 64 at once",
        &measured,
        "≥ 5000/s",
        rate >= 5_000.0,
    );

    let (start, used) = (Instant::now(), cpu_time(pid));
    let readers = (0..TASKS).map(|task| {
        let mut client = clients[task % clients.len()].clone();
        tokio::spawn(async move {
            let mut times = Vec::new();
            while start.elapsed() < TIME {
                let began = Instant::now();
                let asked = GetRequest {
                    kind: "Variable".to_owned(),
                    namespace: "default".to_owned(),
                    name: format!("bench-{task}"),
                };
                let read: Result<Object, Status> = client.call("Get", asked).await;
                read.expect("read");
                times.push(began.elapsed());
            }
            times
        })
    });
    let (rate, p99) = gathered(readers.collect(), start).await;
    let each = cpu_time(pid).saturating_sub(used).as_secs_f64() * 1e6 / (rate * TIME.as_secs_f64());
    let measured = format!(
        "{rate:.0}/s, p99 {:.1} ms, {each:.0} µs of the server's CPU each",
        p99.as_secs_f64() * 1e3
    );
    tell(
        "server: gets over gRPC and TLS, 64 at once",
        &measured,
        "≥ 10000/s, ≤ 60 µs",
        rate >= 10_000.0 && each <= 60.0,
    );
}

async fn gathered(
    tasks: Vec<tokio::task::JoinHandle<Vec<Duration>>>,
    start: Instant,
) -> (f64, Duration) {
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a task"));
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    (rate, times[times.len() * 99 / 100])
}

/// How long after a write all streams have it.
async fn follow(server: &Server, connections: usize, streams: usize) {
    let mut writer = server.connect().await;
    let current = |written: Object| {
        written
            .metadata
            .and_then(|one| one.resource_version)
            .expect("a version")
    };
    let written: Result<Object, Status> = writer.call("Apply", variable("followed", "0")).await;
    let version = current(written.expect("written"));
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    for connection in 0..connections {
        let mut client = server.connect().await;
        for _ in 0..streams / connections + usize::from(connection < streams % connections) {
            let mut watch = client
                .watch(WatchRequest {
                    kind: "Variable".to_owned(),
                    namespace: "default".to_owned(),
                    resource_version: version.clone(),
                    ..WatchRequest::default()
                })
                .await;
            let sender = sender.clone();
            tokio::spawn(async move {
                while let Ok(Some(event)) = watch.message().await {
                    if event.r#type != "BOOKMARK" {
                        let _ = sender.send(Instant::now());
                    }
                }
            });
        }
    }
    let mut longest = Vec::new();
    for round in 1..=5 {
        let start = Instant::now();
        let write = variable("followed", &round.to_string());
        let written: Result<Object, Status> = writer.call("Apply", write).await;
        written.expect("written");
        let mut last = start;
        for _ in 0..streams {
            let next = tokio::time::timeout(PATIENCE, told.recv());
            last = last.max(next.await.expect("told").expect("a stream"));
        }
        longest.push(last - start);
    }
    longest.sort_unstable();
    let took = longest[2].as_secs_f64() * 1e3;
    let measured = format!("{took:.0} ms (median of 5 writes)");
    let most = if connections == streams {
        500.0
    } else {
        1_000.0
    };
    tell(
        &format!(
            "server: {streams} streams over {connections} connections, write to the last event"
        ),
        &measured,
        &format!("≤ {most:.0} ms"),
        took <= most,
    );
}

async fn fill(server: &Server, objects: usize) {
    let client = server.connect().await;
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let value = "x".repeat(1024);
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (mut client, next, value) = (client.clone(), Arc::clone(&next), value.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    if number >= objects {
                        return;
                    }
                    let write = variable(&format!("filled-{number:06}"), &value);
                    let written: Result<Object, Status> = client.call("Create", write).await;
                    written.expect("written");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
}

/// From now until a server answers, a page, and its memory.
async fn page(port: &str, data: &str, pid: &str) {
    let start = Instant::now();
    let asked = ListRequest {
        kind: "Variable".to_owned(),
        namespace: "default".to_owned(),
        limit: 500,
        ..ListRequest::default()
    };
    let mut client = loop {
        if let Ok(channel) = Server::new(port, data).endpoint.connect().await {
            let server = Server::new(port, data);
            let mut client = Client {
                grpc: Grpc::new(channel).max_decoding_message_size(64 << 20),
                token: server.token,
            };
            let first: Result<ObjectList, Status> = client
                .call(
                    "List",
                    ListRequest {
                        limit: 1,
                        ..asked.clone()
                    },
                )
                .await;
            if first.is_ok() {
                break client;
            }
        }
        assert!(start.elapsed() < PATIENCE, "not ready");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let ready = start.elapsed().as_secs_f64();
    tell(
        "server: 100000 objects of 1 KiB, ready after a kill",
        &format!("{ready:.2} s"),
        "< 3 s",
        ready < 3.0,
    );
    let mut times = Vec::new();
    for _ in 0..9 {
        let start = Instant::now();
        let page: Result<ObjectList, Status> = client.call("List", asked.clone()).await;
        assert_eq!(page.expect("a page").items.len(), 500);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = times[4].as_secs_f64() * 1e3;
    tell(
        "server: page of 500 of them over gRPC",
        &format!("{median:.1} ms"),
        "< 20 ms",
        median < 20.0,
    );
    tell_memory(
        "server: memory with 100000 objects, as after its start",
        pid,
    );
}

fn tell_memory(what: &str, pid: &str) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let megabytes = kib.expect("a size") >> 10;
    tell(
        what,
        &format!("{megabytes} MB"),
        "< 300 MB",
        megabytes < 300,
    );
}

/// The processor time that a process has used.
fn cpu_time(pid: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, rest) = text.rsplit_once(") ").expect("its name");
    let ticks = rest
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("ticks"));
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
