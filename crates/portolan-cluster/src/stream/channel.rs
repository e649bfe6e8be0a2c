//! A WebSocket with numbered channels: the first byte of each message says which one it belongs to.

use std::pin::Pin;

use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use http::Request;
use portolan_engine::with_causes;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::cluster::Cluster;
use crate::error::ClusterError;

/// Tells the other side that nothing more comes on a channel.
const CLOSE: u8 = 255;

/// An open connection, in its two directions.
pub(crate) struct Channels {
    pub(crate) sender: ChannelSender,
    pub(crate) receiver: ChannelReceiver,
}

/// What is sent.
pub(crate) struct ChannelSender {
    sink: Pin<Box<dyn Sink<Message, Error = SocketError> + Send>>,
    can_close: bool,
}

/// What is received.
pub(crate) struct ChannelReceiver {
    messages: Pin<Box<dyn Stream<Item = Result<Message, SocketError>> + Send>>,
    server: String,
}

impl Cluster {
    /// Opens a connection. It is not tried again if it breaks: what it is for may have begun.
    pub(crate) async fn channels(&self, path: &str) -> Result<Channels, ClusterError> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| ClusterError::Answer {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        self.count_request();
        let client = self.client();
        let opened = tokio::time::timeout(self.patience(), client.connect(request)).await;
        let connection = opened.map_err(|_| self.too_slow(path))?;
        let connection = connection.map_err(|error| self.not_opened(path, &error))?;
        let can_close = connection.supports_stream_close();
        let (sink, messages) = connection.into_stream().split();
        Ok(Channels {
            sender: ChannelSender {
                sink: Box::pin(sink),
                can_close,
            },
            receiver: ChannelReceiver {
                messages: Box::pin(messages),
                server: self.server().to_owned(),
            },
        })
    }

    fn not_opened(&self, path: &str, error: &kube::Error) -> ClusterError {
        let path = path.split('?').next().unwrap_or(path).to_owned();
        match error {
            kube::Error::Api(status) => ClusterError::Status {
                path,
                code: status.code,
                message: status.message.clone(),
            },
            kube::Error::UpgradeConnection(refused) => ClusterError::Answer {
                path,
                message: with_causes(refused),
            },
            error => ClusterError::unreachable(self.server(), error),
        }
    }
}

// === impl ChannelSender ===

impl ChannelSender {
    /// Sends bytes on a channel.
    pub(crate) async fn send(&mut self, channel: u8, bytes: &[u8]) -> Result<(), SocketError> {
        let mut message = Vec::with_capacity(bytes.len() + 1);
        message.push(channel);
        message.extend_from_slice(bytes);
        self.sink.send(Message::binary(message)).await
    }

    /// Says that nothing more comes on a channel; servers before Kubernetes 1.29 cannot be told.
    pub(crate) async fn end(&mut self, channel: u8) -> Result<(), SocketError> {
        if self.can_close {
            self.send(CLOSE, &[channel]).await?;
        }
        Ok(())
    }

    /// Keeps a connection open that nothing is sent on.
    pub(crate) async fn ping(&mut self) -> Result<(), SocketError> {
        self.sink.send(Message::Ping(Vec::new().into())).await
    }

    /// Ends the connection.
    pub(crate) async fn close(&mut self) -> Result<(), SocketError> {
        self.sink.close().await
    }
}

// === impl ChannelReceiver ===

impl ChannelReceiver {
    /// The next message that has bytes, with its channel; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, ClusterError> {
        while let Some(message) = self.messages.next().await {
            let message = message.map_err(|error| ClusterError::Unreachable {
                server: self.server.clone(),
                cause: with_causes(&error),
            })?;
            let Message::Binary(bytes) = message else {
                continue;
            };
            if let Some((channel, bytes)) = bytes.split_first()
                && !bytes.is_empty()
            {
                return Ok(Some((*channel, bytes.to_vec())));
            }
        }
        Ok(None)
    }
}
