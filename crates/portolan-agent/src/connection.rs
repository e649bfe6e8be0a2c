//! A connection to a server: TLS with the node's certificate, HTTP/2, and one stream of messages each way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream;
use hyper_util::rt::TokioIo;
use portolan_identity::{EnrolClient, EnrolError};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint, Uri};
use tower_service::Service;

use crate::data::NodeIdentity;
use crate::wire::agent_service_client::AgentServiceClient;
use crate::wire::{AgentMessage, ServerMessage, agent_message};

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// How often the connection is tried while nothing is said on it, and how long an answer may take.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIME: Duration = Duration::from_secs(10);

/// Messages that wait to be sent.
const WAITING: usize = 64;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The certificate or the address cannot be used.
    #[error(transparent)]
    Identity(#[from] EnrolError),
    /// The server cannot be reached.
    #[error("cannot connect to the server")]
    Unreachable(#[from] tonic::transport::Error),
    /// Another server looks after runs.
    #[error("the server at {0} looks after runs")]
    Moved(String),
    /// The server refuses the agent, or has ended the stream.
    #[error("{}", .0.message())]
    Refused(Box<tonic::Status>),
}

/// A stream to a server.
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Streaming<ServerMessage>,
}

/// Where messages of the agent go.
#[derive(Clone)]
pub(crate) struct Sender(mpsc::Sender<AgentMessage>);

impl Sender {
    /// Sends a message; false when the stream is over.
    pub(crate) async fn send(&self, message: agent_message::Message) -> bool {
        let message = AgentMessage {
            message: Some(message),
        };
        self.0.send(message).await.is_ok()
    }
}

impl Connection {
    /// Opens a stream; `hello` is the first message.
    pub(crate) async fn open(
        server: &str,
        identity: &NodeIdentity,
        hello: agent_message::Message,
    ) -> Result<Self, ConnectError> {
        let channel = channel(server, identity).await?;
        let (sender, mut messages) = mpsc::channel(WAITING);
        let sender = Sender(sender);
        // There is room for the first message.
        sender.send(hello).await;
        let messages = stream::poll_fn(move |cx| messages.poll_recv(cx));
        let mut client = AgentServiceClient::new(channel);
        let answer = client.connect(messages).await;
        let receiver = answer.map_err(|status| ConnectError::Refused(Box::new(status)))?;
        Ok(Self {
            sender,
            receiver: receiver.into_inner(),
        })
    }
}

async fn channel(server: &str, identity: &NodeIdentity) -> Result<Channel, ConnectError> {
    let mut config = EnrolClient::new(server).tls(&identity.enrolled, &identity.key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    // To tonic the connection is a plain one: TLS is the connector's business. Requests name the real address.
    let origin = Uri::try_from(server).map_err(|_| EnrolError::Address(server.to_owned()))?;
    let endpoint = Endpoint::from_shared(server.replacen("https://", "http://", 1))?
        .origin(origin)
        .connect_timeout(CONNECT_TIME)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME)
        .keep_alive_while_idle(true);
    Ok(endpoint.connect_with_connector(Dial(connector)).await?)
}

/// Connects to the address of a server with TLS.
struct Dial(TlsConnector);

type Dialled = Pin<Box<dyn Future<Output = io::Result<TokioIo<TlsStream<TcpStream>>>> + Send>>;

impl Service<Uri> for Dial {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Dialled;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Dialled {
        let connector = self.0.clone();
        Box::pin(async move {
            let host = address.host().unwrap_or_default();
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            let port = address.port_u16().unwrap_or(443);
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(connector.connect(name, stream).await?))
        })
    }
}
