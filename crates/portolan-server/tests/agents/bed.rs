//! A server and agents in one process, with real streams over TLS.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_agent::{
    Agent, AgentData, AgentEnd, AgentError, AgentNotice, AgentOptions, BootClock, SystemDate,
    WallClock,
};
use portolan_http::Secret;
use portolan_identity::{CaPin, EXPORTER_LABEL, EnrolClient, Enrolled, JoinToken, NodeKey};
use portolan_listen::ListenConfig;
use portolan_modules::Root;
use portolan_server::{ApiServer, FleetClient, FleetError, FleetMethod, ServerOptions};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

/// How long a state is waited for, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server, and a directory for agents.
pub(crate) struct Bed {
    directory: tempfile::TempDir,
    pub(crate) store: Store,
    server: RunningServer,
    /// The date of agents that are started from now on.
    pub(crate) date: Arc<dyn WallClock>,
}

pub(crate) struct RunningServer {
    port: u16,
    cancelled: CancellationToken,
    ended: JoinHandle<()>,
}

impl RunningServer {
    pub(crate) async fn end(self) {
        self.cancelled.cancel();
        self.ended.await.expect("it ends");
    }
}

/// An agent, and what it told.
pub(crate) struct RunningAgent {
    pub(crate) stop: CancellationToken,
    pub(crate) ended: JoinHandle<Result<AgentEnd, AgentError>>,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.redb");
        let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
        let store = Store::new(Arc::new(engine));
        let server = start_server(&store, directory.path(), 0).await;
        Self {
            directory,
            store,
            server,
            date: Arc::new(SystemDate),
        }
    }

    /// Ends the server in the middle of everything, and starts it again on the same port.
    pub(crate) async fn restart(&mut self) {
        self.pause().await;
        self.resume().await;
    }

    /// Ends the server until [`Self::resume`].
    pub(crate) async fn pause(&mut self) {
        self.server.cancelled.cancel();
        (&mut self.server.ended).await.expect("it ends");
    }

    /// Starts the server again that was paused.
    pub(crate) async fn resume(&mut self) {
        self.server = start_server(&self.store, self.directory.path(), self.server.port).await;
    }

    /// Starts another server on the same store, which takes the place of this one in the bed; gives the first.
    pub(crate) async fn add_server(&mut self) -> RunningServer {
        let data = self.path("second");
        std::fs::create_dir(&data).expect("a directory");
        std::fs::copy(self.path("secrets.key"), data.join("secrets.key")).expect("copied");
        let second = start_server(&self.store, data.as_std_path(), 0).await;
        std::mem::replace(&mut self.server, second)
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.server.port)
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        let directory = Utf8Path::from_path(self.directory.path()).expect("UTF-8");
        directory.join(name)
    }

    pub(crate) async fn admin(
        &self,
        method: FleetMethod,
        path: &str,
        body: Option<Value>,
    ) -> Option<Value> {
        self.asked(method, path, body).await.ok()
    }

    pub(crate) async fn asked(
        &self,
        method: FleetMethod,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, FleetError> {
        let read = |name: &str| std::fs::read_to_string(self.path(name)).expect(name);
        let token = Secret::from(read("admin.token").trim().to_owned());
        let client = FleetClient::new(&self.url(), token, vec![read("ca.pem")]).expect("a client");
        let path = format!("/api/v1alpha/{path}");
        let body = body.map(|body| body.to_string());
        client.request(method, &path, &[], body.as_deref()).await
    }

    pub(crate) async fn join_token(&self) -> (JoinToken, CaPin) {
        let made = self.admin(FleetMethod::Post, "join-tokens", Some(json!({"uses": 1})));
        let made = made.await.expect("a token");
        let text = |key: &str| made[key].as_str().expect(key).to_owned();
        let token = text("token").parse().expect("a token");
        (token, text("caPin").parse().expect("a pin"))
    }

    /// What a node gets with its certificate, as its agent has it on the disk; `None` if it is refused.
    pub(crate) async fn as_node(&self, node: &str, path: &str) -> Option<Value> {
        let identity = std::fs::read_to_string(self.path(node).join("identity.json"));
        let identity: Value = serde_json::from_str(&identity.expect("an identity")).expect("JSON");
        let key = NodeKey::from_pem(identity["key"].as_str().expect("a key")).expect("a key");
        let enrolled = Enrolled::read(&identity["enrolled"]).expect("a certificate");
        let config = EnrolClient::new(&self.url())
            .tls(&enrolled, &key)
            .expect("TLS");
        let stream = TcpStream::connect(("127.0.0.1", self.server.port))
            .await
            .expect("connected");
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect(name, stream).await.expect("TLS");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        head.starts_with("HTTP/1.1 200")
            .then(|| serde_json::from_str(body).expect("JSON"))
    }

    /// A field of a node's status.
    pub(crate) async fn status(&self, node: &str, field: &str) -> Value {
        let path = format!("nodes/{node}");
        let found = self.admin(FleetMethod::Get, &path, None);
        found.await.unwrap_or_default()["status"][field].clone()
    }

    pub(crate) async fn wait_for_state(&self, node: &str, state: &str) {
        wait_until(state, async || self.status(node, "state").await == state).await;
    }

    /// Starts the agent of node `web-1` on this machine, whose data is in a directory of its own.
    pub(crate) fn start_agent(&self, data: &str, join: Option<(JoinToken, CaPin)>) -> RunningAgent {
        let root = Root::machine().expect("a root directory");
        self.start("web-1", data, root, join)
    }

    /// Starts an agent whose node is a directory.
    pub(crate) fn start_rooted(
        &self,
        name: &str,
        join: Option<(JoinToken, CaPin)>,
    ) -> RunningAgent {
        let root = self.root(name);
        for inside in ["etc", "srv"] {
            std::fs::create_dir_all(root.join(inside)).expect("a directory");
        }
        std::fs::write(root.join("etc/hostname"), format!("{name}\n")).expect("written");
        let root = Root::other(&root).expect("a root directory");
        self.start(name, name, root, join)
    }

    /// The directory that stands for a node.
    pub(crate) fn root(&self, name: &str) -> Utf8PathBuf {
        self.path(&format!("{name}-root"))
    }

    fn start(
        &self,
        name: &str,
        data: &str,
        root: Root,
        join: Option<(JoinToken, CaPin)>,
    ) -> RunningAgent {
        let (join_token, ca_pin) = join.unzip();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&notices);
        let options = AgentOptions {
            server: self.url(),
            ca_pin,
            join_token,
            name: name.to_owned(),
            root: Arc::new(root),
            // These tests run no commands, which need the program of an agent.
            program: "/nowhere".into(),
            allows_exec: false,
            fakes_boot: false,
            ends_when_replaced: false,
            gossip: Some(([127, 0, 0, 1], 0).into()),
            clock: Arc::new(BootClock),
            date: Arc::clone(&self.date),
            notify: Box::new(move |notice: AgentNotice| {
                told.lock().expect("no panic").push(format!("{notice:?}"));
            }),
        };
        let data = AgentData::open(&self.path(data)).expect("a data directory");
        let stop = CancellationToken::new();
        RunningAgent {
            ended: tokio::spawn(Agent::new(data, options).run(stop.clone())),
            stop,
            notices,
        }
    }
}

async fn start_server(store: &Store, data: &std::path::Path, port: u16) -> RunningServer {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let options = ServerOptions {
        address: format!("https://localhost:{port}"),
        ..ServerOptions::new(data)
    };
    let started = ApiServer::start(store.clone(), options).await;
    let (server, _) = started.expect("it starts");
    let names = vec!["localhost".to_owned()];
    let config = ListenConfig {
        tls: Some(server.tls(names.clone()).expect("a certificate")),
        client_certificates: Some(EXPORTER_LABEL),
        readiness: server.readiness(),
        ..ListenConfig::default()
    };
    let cancelled = CancellationToken::new();
    let router = server.router(names);
    let served = portolan_listen::serve(listener, router, config, cancelled.clone());
    let run = server.run(cancelled.clone());
    let ended = tokio::spawn(async {
        let (served, _) = tokio::join!(served, run);
        served.expect("it serves");
    });
    RunningServer {
        port,
        cancelled,
        ended,
    }
}

impl RunningAgent {
    /// Ends the agent without a word, as a kill would.
    pub(crate) async fn kill(self) {
        self.ended.abort();
        let _ = self.ended.await;
    }

    pub(crate) fn has_told(&self, text: &str) -> bool {
        self.count(text) > 0
    }

    /// How often the agent told something.
    pub(crate) fn count(&self, text: &str) -> usize {
        let notices = self.notices.lock().expect("no panic");
        notices
            .iter()
            .filter(|notice| notice.contains(text))
            .count()
    }
}

pub(crate) async fn wait_until(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, wait).await;
    assert!(in_time.is_ok(), "it did not come to `{what}`");
}
