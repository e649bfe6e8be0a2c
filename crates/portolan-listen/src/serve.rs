//! The server: accepts connections, runs each one, and lets them finish when it is cancelled.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::connections::{Connections, Place};
use crate::executor::{ConnectionTasks, log_panic};
use crate::limits::Limits;
use crate::listener::{Connection, Listener};
use crate::metrics::Metrics;
use crate::respond::{Asker, Responder, with_json_errors};
use crate::tls::{Certificates, TlsError, TlsPeer, TlsSource};

/// How often files with a certificate are looked at.
const RELOAD_EVERY: Duration = Duration::from_secs(30);

/// The pause when the system has no descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a request that is on its way is waited for when the server ends.
const LAST_REQUEST: Duration = Duration::from_millis(500);

/// What HTTP/2 clients may send before anybody has asked for it: of one request, and of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;

/// The bytes of an answer that wait to be sent on an HTTP/2 stream.
const SEND_BUFFER: usize = 64 * 1024;

/// The least that hyper can read a request's head with.
const MIN_HEADER_BYTES: usize = 8192;

/// Says whether the server can do its work; the text is what `/readyz` says otherwise.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// How a server listens.
#[derive(Clone)]
pub struct ListenConfig {
    /// What a client may cost.
    pub limits: Limits,
    /// The certificate; without it the server speaks plain HTTP.
    pub tls: Option<TlsSource>,
    /// How often files with a certificate are looked at.
    pub reload_every: Duration,
    /// Asks clients for a certificate, which they need not have, and derives a secret of each connection by this
    /// label. Requests then have a [`crate::TlsPeer`].
    pub client_certificates: Option<&'static [u8]>,
    /// What `/readyz` says.
    pub readiness: Readiness,
    /// What `/metrics` says.
    pub metrics: Metrics,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were closed because they did not end in time.
    pub cut: usize,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            tls: None,
            reload_every: RELOAD_EVERY,
            client_certificates: None,
            readiness: Arc::new(|| Ok(())),
            metrics: Metrics::default(),
        }
    }
}

/// Answers requests until it is cancelled, and then until those in flight have ended.
///
/// `/healthz`, `/readyz` and `/metrics` are answered here, everything else by the router. An error means that there is no
/// certificate to begin with; nothing that happens later ends the server.
pub async fn serve(
    listener: impl Into<Listener>,
    router: Router,
    config: ListenConfig,
    cancelled: CancellationToken,
) -> Result<Drained, TlsError> {
    let listener = listener.into();
    let certificates = config.tls.map(Certificates::load).transpose()?;
    let label = config.client_certificates;
    let tls = certificates
        .as_ref()
        .map(|certificates| certificates.server_config(label.is_some()));
    let connections = Arc::new(Connections::new(config.limits));
    let server = Arc::new(Server {
        tls: tls.transpose()?.map(TlsAcceptor::from),
        exporter_label: label,
        responder: Responder {
            router: with_json_errors(router),
            connections: Arc::clone(&connections),
            metrics: config.metrics,
            readiness: config.readiness,
        },
        cancelled: cancelled.clone(),
    });
    let mut tasks = JoinSet::new();
    let renewals = async {
        match certificates {
            Some(certificates) => certificates.keep_current(config.reload_every).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(renewals);
    loop {
        tokio::select! {
            () = cancelled.cancelled() => break,
            () = &mut renewals => {}
            Some(ended) = tasks.join_next() => log_panic(&ended),
            connection = accept(&listener, &connections) => {
                match connections.admit(Client::of(connection.address())).await {
                    Some(place) => {
                        tasks.spawn(Arc::clone(&server).connection(connection, place));
                    }
                    None => server.responder.metrics.refused(),
                }
            }
        }
    }
    drop(listener);
    Ok(drain(tasks, connections.limits().drain_time).await)
}

/// Waits for connections to end; what lasts longer is closed.
async fn drain(mut tasks: JoinSet<()>, time: Duration) -> Drained {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            log_panic(&ended);
        }
    };
    let in_time = tokio::time::timeout(time, all).await.is_ok();
    let cut = if in_time { 0 } else { tasks.len() };
    tasks.shutdown().await;
    Drained { cut }
}

/// The next connection. An error of one connection is no error of the server.
async fn accept(listener: &Listener, connections: &Connections) -> Connection {
    loop {
        match listener.accept().await {
            Ok(connection) => return connection,
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                connections.evict_oldest();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// What all connections share.
struct Server {
    tls: Option<TlsAcceptor>,
    exporter_label: Option<&'static [u8]>,
    responder: Responder,
    cancelled: CancellationToken,
}

impl Server {
    /// One connection, from its handshake to its end.
    async fn connection(self: Arc<Self>, connection: Connection, place: Place) {
        let _open = self.responder.metrics.opened();
        let address = connection.address();
        let stream = match connection {
            Connection::Tcp(stream, _) => stream,
            Connection::Socket(stream) => return self.drive(stream, address, None, &place).await,
        };
        // The end of a long answer must not wait until its beginning is acknowledged.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.drive(stream, address, None, &place).await;
        };
        tokio::select! {
            secured = tls.accept(stream) => match secured {
                Ok(stream) => {
                    let label = self.exporter_label;
                    let peer = label.map(|label| Arc::new(TlsPeer::of(stream.get_ref().1, label)));
                    self.drive(stream, address, peer, &place).await;
                }
                Err(error) => tracing::debug!(client = %address, %error, "no TLS connection"),
            },
            closed = place.activity.overdue() => self.responder.metrics.closed(closed),
            () = self.cancelled.cancelled() => {}
        }
    }

    async fn drive(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        address: IpAddr,
        peer: Option<Arc<TlsPeer>>,
        place: &Place,
    ) {
        let asker = Asker {
            client: place.client,
            address,
            peer,
            activity: Arc::clone(&place.activity),
        };
        let service = service_fn(|request| {
            let (server, asker) = (Arc::clone(self), asker.clone());
            async move { Ok::<_, Infallible>(server.responder.respond(request, asker).await) }
        });
        let builder = builder(self.responder.connections.limits());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut draining = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(client = %address, %error, "connection ended");
                    }
                    return;
                }
                closed = place.activity.overdue() => {
                    tracing::debug!(client = %address, reason = closed.name(), "connection closed");
                    return self.responder.metrics.closed(closed);
                }
                () = self.cancelled.cancelled(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                    let limits = self.responder.connections.limits();
                    place.activity.drain(LAST_REQUEST, limits.drain_stall);
                }
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<ConnectionTasks> {
    let header_bytes = limits.header_bytes.max(MIN_HEADER_BYTES);
    let mut builder = Builder::new(ConnectionTasks::default());
    // All times are those of `Activity`: hyper's own begin only when it knows which protocol is spoken.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(header_bytes)
        .max_headers(limits.headers);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER);
    builder
}
