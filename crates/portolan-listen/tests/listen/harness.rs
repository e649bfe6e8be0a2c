//! A server on a free port, and clients that speak raw HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use portolan_listen::{Drained, Limits, ListenConfig, Metrics, TlsError, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Metrics,
    pub(crate) cancelled: CancellationToken,
    /// Lets `/wait` answer.
    pub(crate) go: Arc<Notify>,
    /// Told when `/wait` has been asked.
    pub(crate) asked: Arc<Notify>,
    task: JoinHandle<Result<Drained, TlsError>>,
}

impl Server {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_with(ListenConfig {
            limits,
            ..ListenConfig::default()
        })
        .await
    }

    pub(crate) async fn start_with(config: ListenConfig) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("the test's own part works");
        let address = listener.local_addr().expect("the test's own part works");
        let (go, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let cancelled = CancellationToken::new();
        let metrics = config.metrics.clone();
        let router = router(&go, &asked);
        let task = tokio::spawn(serve(listener, router, config, cancelled.clone()));
        Self {
            address,
            metrics,
            cancelled,
            go,
            asked,
            task,
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let connected = TcpStream::connect(self.address);
        Connection(in_time(connected).await.expect("the test's own part works"))
    }

    /// The whole answer to a request on a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut connection = self.connect().await;
        connection.send(&head(path, "connection: close\r\n")).await;
        connection.rest().await
    }

    /// The number that a metric has; 0 when it is not there yet.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |value| {
            value.trim().parse().expect("the test's own part works")
        })
    }

    pub(crate) async fn wait_for_metric(&self, name: &str, value: u64) {
        let reached = async {
            while self.metric(name) != value {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        assert!(reached.is_ok(), "{name} is {}", self.metric(name));
    }

    /// Waits for the server's end after it was cancelled.
    pub(crate) async fn ended(self) -> Drained {
        in_time(self.task)
            .await
            .expect("the test's own part works")
            .expect("the test's own part works")
    }
}

fn router(go: &Arc<Notify>, asked: &Arc<Notify>) -> Router {
    let (go, asked) = (Arc::clone(go), Arc::clone(asked));
    let wait = move || {
        let (go, asked) = (Arc::clone(&go), Arc::clone(&asked));
        async move {
            asked.notify_one();
            go.notified().await;
            "waited\n"
        }
    };
    Router::new()
        .route("/hello", get(|| async { "hello\n" }))
        .route("/large", get(|| async { Body::from(vec![b'x'; 64 << 20]) }))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/never", get(std::future::pending::<&'static str>))
        .route("/panic", get(panics))
        .route("/wait", get(wait))
}

async fn panics() -> &'static str {
    let words: Vec<&'static str> = Vec::new();
    words.first().expect("a handler of the test panics")
}

pub(crate) struct Connection(pub(crate) TcpStream);

impl Connection {
    pub(crate) async fn send(&mut self, text: &str) {
        in_time(self.0.write_all(text.as_bytes()))
            .await
            .expect("the test's own part works");
    }

    /// Everything until the server closes the connection; one that it resets counts as closed.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = in_time(self.0.read(&mut buffer)).await {
            bytes.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads until this text has come.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        while !seen.contains(text) {
            let count = in_time(self.0.read(&mut buffer))
                .await
                .expect("the test's own part works");
            assert!(count > 0, "closed after {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        seen
    }
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.expect("it does not end")
}

pub(crate) fn head(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: test\r\n{headers}\r\n")
}

pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}
