//! A local port whose connections lead to a pod that is ready at that moment.
//!
//! Each local connection has its own connection to the pod. When the pod goes, its connections end, and the next ones
//! lead to another pod: a roll-out needs no new forward.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_engine::with_causes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::channel::{ChannelReceiver, ChannelSender, Channels};
use super::target::{PodTarget, TargetPod};
use crate::cluster::Cluster;
use crate::error::ClusterError;

const DATA: u8 = 0;
const ERROR: u8 = 1;

/// How much is sent at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// How long a pod that is ready is waited for, as between two revisions.
const WAIT_FOR_POD: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How long an answer may take after the local side has said all, or its rest if it has begun. A WebSocket cannot be
/// closed in one direction, so the pod is not told; and whether the local side still reads is not known.
const LAST_ANSWER: Duration = Duration::from_secs(30);
const REST_OF_ANSWER: Duration = Duration::from_secs(1);

/// How often a connection is used at least, so that nobody on the way takes it for dead.
const PING: Duration = Duration::from_secs(30);

/// What is forwarded.
#[derive(Debug, Clone)]
pub struct ForwardOptions {
    /// Whose port.
    pub target: PodTarget,
    /// The port of the target; for a Service its own port, not the pod's.
    pub port: u16,
    /// The local port; 0 for any.
    pub local: u16,
    /// How many connections there may be at once; others wait.
    pub max_connections: usize,
}

/// What happens to a forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardEvent {
    /// Connections lead to this pod from now on.
    Pod(String),
    /// A connection ended by an error.
    Failed(String),
}

/// A local port that is listened on.
pub struct PortForward {
    cluster: Cluster,
    options: ForwardOptions,
    listener: TcpListener,
    address: SocketAddr,
}

impl Cluster {
    /// Listens on a local port of this machine alone; [`PortForward::serve`] forwards its connections.
    pub async fn port_forward(&self, options: ForwardOptions) -> std::io::Result<PortForward> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.local)).await?;
        let address = listener.local_addr()?;
        Ok(PortForward {
            cluster: self.clone(),
            options,
            listener,
            address,
        })
    }
}

impl PortForward {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards connections for as long as it is polled; when it is dropped, all of them end.
    pub async fn serve(self, tell: impl Fn(ForwardEvent) + Send + Sync + 'static) -> Infallible {
        let places = Arc::new(Semaphore::new(self.options.max_connections.max(1)));
        let mut connections = JoinSet::new();
        let tell = Arc::new(tell);
        let mut current: Option<String> = None;
        loop {
            let place = Arc::clone(&places).acquire_owned().await;
            while connections.try_join_next().is_some() {}
            let socket = match self.listener.accept().await {
                Ok((socket, _)) => socket,
                Err(error) => {
                    tell(ForwardEvent::Failed(with_causes(&error)));
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
            };
            let (pod, port) = match self.pod().await {
                Ok(found) => found,
                Err(error) => {
                    tell(ForwardEvent::Failed(with_causes(&error)));
                    continue;
                }
            };
            if current.as_ref() != Some(&pod.name) {
                tell(ForwardEvent::Pod(pod.name.clone()));
                current = Some(pod.name.clone());
            }
            let (cluster, tell) = (self.cluster.clone(), Arc::clone(&tell));
            connections.spawn(async move {
                let _place = place;
                if let Err(why) = connect(&cluster, &pod, port, socket).await {
                    tell(ForwardEvent::Failed(why));
                }
            });
        }
    }

    /// A pod that is ready, waited for if there is none.
    async fn pod(&self) -> Result<(TargetPod, u16), ClusterError> {
        let started = Instant::now();
        loop {
            let options = &self.options;
            match self.cluster.ready_port(&options.target, options.port).await {
                Err(ClusterError::NoPod { .. }) if started.elapsed() < WAIT_FOR_POD => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                found => return found,
            }
        }
    }
}

/// Who spoke last on a connection, and when.
struct LastWord(Mutex<(Instant, bool)>);

impl LastWord {
    fn new() -> Self {
        Self(Mutex::new((Instant::now(), true)))
    }

    fn is_of_pod(&self, is_of_pod: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), is_of_pod);
    }

    /// Until when more of the pod is waited for.
    fn deadline(&self) -> Instant {
        let (at, is_of_pod) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at + if is_of_pod {
            REST_OF_ANSWER
        } else {
            LAST_ANSWER
        }
    }
}

/// Forwards one connection to its end.
async fn connect(
    cluster: &Cluster,
    pod: &TargetPod,
    port: u16,
    mut socket: TcpStream,
) -> Result<(), String> {
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/portforward?ports={port}",
        pod.namespace, pod.name
    );
    let channels = cluster.channels(&path).await;
    let Channels {
        mut sender,
        mut receiver,
    } = channels.map_err(|error| with_causes(&error))?;
    let (mut from_client, mut to_client) = socket.split();
    let last = LastWord::new();
    let ended = tokio::select! {
        ended = receive(&mut receiver, &mut to_client, &last) => ended,
        ended = send(&mut sender, &mut from_client, &last) => ended,
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), sender.close()).await;
    ended.map_err(|why| format!("port {port} of the pod `{}`: {why}", pod.name))
}

/// Passes on what the client says; after its end, waits for the rest of the answer.
async fn send(
    sender: &mut ChannelSender,
    client: &mut (impl AsyncRead + Unpin),
    last: &LastWord,
) -> Result<(), String> {
    let mut ping = tokio::time::interval(PING);
    ping.reset();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let sent = tokio::select! {
            read = client.read(&mut piece) => match read {
                // The client is gone or has said all.
                Ok(0) => break,
                Ok(count) => {
                    last.is_of_pod(false);
                    sender.send(DATA, &piece[..count]).await
                }
                Err(_) => return Ok(()),
            },
            _ = ping.tick() => sender.ping().await,
        };
        sent.map_err(|error| with_causes(&error))?;
    }
    while Instant::now() < last.deadline() {
        tokio::time::sleep_until(last.deadline()).await;
    }
    Ok(())
}

/// Passes on what the pod says.
async fn receive(
    receiver: &mut ChannelReceiver,
    client: &mut (impl AsyncWrite + Unpin),
    last: &LastWord,
) -> Result<(), String> {
    // The first message of each channel repeats the port.
    let mut begun = [false; 2];
    loop {
        let message = receiver.next().await.map_err(|error| with_causes(&error))?;
        let Some((channel, bytes)) = message else {
            let _ = client.shutdown().await;
            return Ok(());
        };
        let Some(begun) = begun.get_mut(usize::from(channel)) else {
            continue;
        };
        if !std::mem::replace(begun, true) {
            continue;
        }
        match channel {
            ERROR => return Err(String::from_utf8_lossy(&bytes).trim().to_owned()),
            _ if client.write_all(&bytes).await.is_err() => return Ok(()),
            _ => last.is_of_pod(true),
        }
    }
}
