//! Servers on one store, on ports of this machine, and clients of them over TLS.

use std::sync::Arc;
use std::time::Duration;

use portolan_identity::{
    CaPin, EXPORTER_LABEL, EnrolClient, Enrolled, Enrolment, JoinToken, NodeKey,
};
use portolan_listen::ListenConfig;
use portolan_server::{
    ApiServer, CertificateUpkeep, KeyEncryptionKey, ManualTime, ServerOptions, TimeSource,
};
use portolan_store::{Embedded, EmbeddedOptions, Store};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{ClientConfig, HandshakeKind, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// How long anything is waited for: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Bed {
    store: Store,
    keys: Vec<KeyEncryptionKey>,
    pub(crate) time: Arc<ManualTime>,
    pub(crate) first: Running,
}

/// A server.
pub(crate) struct Running {
    pub(crate) directory: Arc<tempfile::TempDir>,
    pub(crate) port: u16,
    pub(crate) upkeep: CertificateUpkeep,
    cancelled: CancellationToken,
    ended: tokio::task::JoinHandle<Option<String>>,
}

/// The clock of the clients is that of the servers.
#[derive(Debug)]
struct ClientTime(Arc<ManualTime>);

impl rustls::time_provider::TimeProvider for ClientTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.now()))
    }
}

/// An answer, and whether its connection was resumed.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) is_resumed: bool,
}

pub(crate) async fn bed() -> Bed {
    bed_at(1_800_000_000).await
}

/// A bed whose clock begins at so many seconds since 1970.
pub(crate) async fn bed_at(seconds: u64) -> Bed {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("a store");
    let store = Store::new(Arc::new(engine));
    let keys = vec![KeyEncryptionKey::generate()];
    let time = Arc::new(ManualTime::new(seconds));
    let first = start(&store, &keys, &time, Arc::new(directory)).await;
    Bed {
        store,
        keys,
        time,
        first,
    }
}

async fn start(
    store: &Store,
    keys: &[KeyEncryptionKey],
    time: &Arc<ManualTime>,
    directory: Arc<tempfile::TempDir>,
) -> Running {
    let options = ServerOptions {
        secret_keys: keys.to_vec(),
        time: Arc::clone(time) as Arc<dyn TimeSource>,
        ..ServerOptions::new(directory.path())
    };
    let started = ApiServer::start(store.clone(), options).await;
    let (server, _) = started.expect("it starts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let names = vec!["localhost".to_owned()];
    let config = ListenConfig {
        tls: Some(server.tls(names.clone()).expect("a certificate")),
        client_certificates: Some(EXPORTER_LABEL),
        readiness: server.readiness(),
        ..ListenConfig::default()
    };
    let cancelled = CancellationToken::new();
    let router = server.router(names);
    tokio::spawn(portolan_listen::serve(
        listener,
        router,
        config,
        cancelled.clone(),
    ));
    let upkeep = server.certificates();
    let ended = tokio::spawn(server.run(cancelled.clone()));
    Running {
        directory,
        port,
        upkeep,
        cancelled,
        ended,
    }
}

impl Bed {
    /// Another server on the same store.
    pub(crate) async fn another(&self) -> Running {
        let directory = tempfile::tempdir().expect("a directory");
        start(&self.store, &self.keys, &self.time, Arc::new(directory)).await
    }

    /// Ends a server and starts it again, with the same files.
    pub(crate) async fn restart(&self, mut server: Running) -> Running {
        server.cancelled.cancel();
        (&mut server.ended).await.expect("it ends");
        let directory = Arc::clone(&server.directory);
        start(&self.store, &self.keys, &self.time, directory).await
    }

    pub(crate) fn client(&self, server: &Running) -> EnrolClient {
        EnrolClient::new(&format!("https://localhost:{}", server.port))
            .with_time(Arc::new(ClientTime(Arc::clone(&self.time))))
    }

    /// TLS without a certificate, trusting the `ca.pem` of the first server.
    pub(crate) fn anonymous(&self) -> Arc<ClientConfig> {
        let pem = std::fs::read_to_string(self.first.directory.path().join("ca.pem"));
        self.trusting(&pem.expect("an authority"))
    }

    pub(crate) fn trusting(&self, pem: &str) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for one in portolan_identity::certificates_from_pem(pem).expect("certificates") {
            roots.add(one).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let time = Arc::new(ClientTime(Arc::clone(&self.time)));
        let config = ClientConfig::builder_with_details(provider, time)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }

    /// TLS of a node.
    pub(crate) fn mutual(&self, enrolled: &Enrolled, key: &NodeKey) -> Arc<ClientConfig> {
        let client = self.client(&self.first);
        Arc::new(client.tls(enrolled, key).expect("TLS"))
    }

    /// A request of the admin to the first server.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let token = self.admin_token();
        let config = self.anonymous();
        ask(&config, self.first.port, method, path, Some(&token), body).await
    }

    pub(crate) fn admin_token(&self) -> String {
        let path = self.first.directory.path().join("admin.token");
        let token = std::fs::read_to_string(path).expect("a token");
        token.trim().to_owned()
    }

    /// A join token and the pin of the server.
    pub(crate) async fn join_token(&self, body: Value) -> (JoinToken, CaPin) {
        let answer = self
            .admin("POST", "/api/v1alpha/join-tokens", Some(body))
            .await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let text = |key: &str| answer.body[key].as_str().expect(key).to_owned();
        let token = text("token").parse().expect("a token");
        (token, text("caPin").parse().expect("a pin"))
    }

    /// A node that was enrolled with a token of its own.
    pub(crate) async fn node(&self, name: &str) -> (Enrolled, NodeKey) {
        let (token, pin) = self.join_token(json!({"uses": 1})).await;
        let key = NodeKey::generate().expect("a key");
        let client = self.client(&self.first);
        let enrolled = client.enrol(pin, Some(&token), name, &key).await;
        (is_enrolled(enrolled.expect("an answer")), key)
    }

    /// Creates an object.
    pub(crate) async fn create(&self, path: &str, kind: &str, name: &str, spec: Value) {
        let namespace = path
            .strip_prefix("namespaces/")
            .and_then(|rest| rest.split('/').next());
        let mut object = json!({
            "apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let path = format!("/api/v1alpha/{path}");
        let answer = self.admin("POST", &path, Some(object)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// The lines of the audit log of the first server.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let path = self.first.directory.path().join("audit.log");
        let text = std::fs::read_to_string(path).expect("an audit log");
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

pub(crate) fn is_enrolled(enrolment: Enrolment) -> Enrolled {
    match enrolment {
        Enrolment::Enrolled(enrolled) => enrolled,
        Enrolment::Pending { fingerprint } => unreachable!("{fingerprint} is pending"),
    }
}

pub(crate) async fn connect(config: &Arc<ClientConfig>, port: u16) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await;
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::clone(config));
    let connected = connector.connect(name, stream.expect("a connection")).await;
    connected.expect("TLS")
}

pub(crate) fn request(
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> String {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let body = body.map(ToString::to_string).unwrap_or_default();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        token.unwrap_or_default(),
        body.len()
    )
}

/// Sends a request on a connection of its own.
pub(crate) async fn ask(
    config: &Arc<ClientConfig>,
    port: u16,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<Value>,
) -> Answer {
    let exchange = async {
        let mut stream = connect(config, port).await;
        let text = request(method, path, token, body.as_ref());
        stream.write_all(text.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        // A server may end without saying goodbye in TLS.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Answer {
            status: status.expect("a status"),
            body: serde_json::from_str(body).unwrap_or_else(|_| Value::from(body)),
            is_resumed: stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    };
    tokio::time::timeout(PATIENCE, exchange)
        .await
        .expect("in time")
}
