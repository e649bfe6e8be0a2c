//! The node's member of its cell: it notices peers that do not answer, and says so over the agent's stream.
//!
//! ```text
//! GossipCell (key, members) ──▶ NodeGossip::run ──sealed UDP──▶ peers
//!                                    │
//!                                    └─ whom it cannot reach, its generation ──GossipNews──▶ server
//! ```
//!
//! A peer that has given a member up listens to it again only under a higher generation. So each start takes the next one,
//! and those are kept on the disk.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_clock::{BootClock, Clock as _};
use portolan_detect::{
    CellKey, CellKeys, GossipCommand, GossipMember, GossipPorts, GossipStatus, NodeUid,
    PeerIdentity, Roster, run_gossip,
};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::data::{AgentData, DataError};
use crate::disk;
use crate::wire;

/// What waits to be done by the member.
const WAITING: usize = 16;

/// How long a member may take to say goodbye.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// The gossip of a node.
pub(crate) struct NodeGossip {
    /// `None` if the agent does not gossip.
    socket: Option<UdpSocket>,
    node: Option<NodeUid>,
    generation_file: Utf8PathBuf,
    cell: watch::Sender<Option<KnownCell>>,
    /// The server that the agent is connected to.
    server: watch::Sender<Option<String>>,
    /// What the server should know.
    news: watch::Sender<Option<wire::GossipNews>>,
    /// Where servers are, as peers say.
    hints: watch::Sender<Vec<String>>,
    /// Ends the member.
    ending: CancellationToken,
    ended: CancellationToken,
}

#[derive(Clone)]
struct KnownCell {
    keys: CellKeys,
    roster: Roster,
    /// The node itself, as others know it.
    own: PeerIdentity,
}

/// News for one stream.
pub(crate) struct GossipFeed(watch::Receiver<Option<wire::GossipNews>>);

impl NodeGossip {
    /// Takes a socket and the next generation. An address that cannot be used is told, and no error: the stream is enough.
    pub(crate) async fn open(
        data: &AgentData,
        node: &str,
        listen: Option<SocketAddr>,
    ) -> Result<Self, DataError> {
        let socket = match listen {
            Some(address) => {
                let bound = UdpSocket::bind(address).await;
                let failed = |error: &io::Error| tracing::warn!(%error, %address, "the agent does not gossip");
                bound.inspect_err(failed).ok()
            }
            None => None,
        };
        let gossip = Self {
            node: node.parse().ok(),
            generation_file: data.directory().join("generation"),
            cell: watch::Sender::new(None),
            server: watch::Sender::new(None),
            news: watch::Sender::new(None),
            hints: watch::Sender::new(Vec::new()),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            socket,
        };
        if let Some(address) = gossip.socket.as_ref().and_then(|one| one.local_addr().ok()) {
            let generation = gossip.next_generation(0)?;
            gossip.news.send_replace(Some(wire::GossipNews {
                address: address.to_string(),
                generation,
                accused: Vec::new(),
            }));
        }
        Ok(gossip)
    }

    /// A generation above the kept one, and not below another. It is on the disk before it is used.
    fn next_generation(&self, least: u32) -> Result<u32, DataError> {
        let path = &self.generation_file;
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let kept: u32 = text.trim().parse().unwrap_or(0);
        let next = kept.saturating_add(1).max(least);
        let written = disk::write_durable(path, next.to_string().as_bytes());
        written.map_err(|source| DataError::File {
            path: path.clone(),
            source,
        })?;
        Ok(next)
    }

    /// What the server says of the cell.
    pub(crate) fn take_cell(&self, cell: &wire::GossipCell) {
        let Some(known) = self.read_cell(cell) else {
            tracing::warn!("the server's message about the gossip of nodes cannot be used");
            return;
        };
        self.cell.send_replace(Some(known));
    }

    fn read_cell(&self, cell: &wire::GossipCell) -> Option<KnownCell> {
        let key: [u8; 32] = cell.key.as_ref().try_into().ok()?;
        let peers = cell.peers.iter().filter_map(|peer| {
            let (node, address) = (peer.node.parse().ok()?, peer.address.parse().ok()?);
            Some(PeerIdentity::new(node, peer.generation, address))
        });
        let roster = Roster::new(peers.collect());
        Some(KnownCell {
            own: *roster.get(self.node?)?,
            keys: CellKeys::one(CellKey::new(&Zeroizing::new(key))),
            roster,
        })
    }

    /// The server that the agent is connected to; without one, peers are asked where servers are.
    pub(crate) fn connected(&self, server: Option<&str>) {
        self.server.send_replace(server.map(str::to_owned));
    }

    /// A server that peers have named, other than a known one.
    pub(crate) fn server_hint(&self, known: &str) -> Option<String> {
        let hints = self.hints.borrow();
        hints.iter().find(|hint| *hint != known).cloned()
    }

    /// News for a new stream: the last ones first.
    pub(crate) fn subscribe(&self) -> GossipFeed {
        let mut feed = self.news.subscribe();
        feed.mark_changed();
        GossipFeed(feed)
    }

    /// Lets the member say goodbye. To be polled together with [`run`](Self::run).
    pub(crate) async fn leave(&self) {
        self.ending.cancel();
        if self.cell.borrow().is_some() {
            let _ = tokio::time::timeout(LEAVE_TIME, self.ended.cancelled()).await;
        }
    }

    /// Runs the member until the future is dropped.
    pub(crate) async fn run(&self) -> Infallible {
        let mut cells = self.cell.subscribe();
        while let (Some(socket), false) = (&self.socket, self.ending.is_cancelled()) {
            let cell = match cells.wait_for(Option::is_some).await {
                Ok(cell) => cell.clone(),
                Err(_) => break,
            };
            if let Some(cell) = cell {
                self.run_member(socket, cell, &mut cells).await;
            }
        }
        self.ended.cancel();
        std::future::pending().await
    }

    /// Runs a member until it is ended, or the server knows the node at another address.
    async fn run_member(
        &self,
        socket: &UdpSocket,
        cell: KnownCell,
        cells: &mut watch::Receiver<Option<KnownCell>>,
    ) {
        let generation = self.generation().max(cell.own.generation);
        let identity = PeerIdentity::new(cell.own.uid, generation, cell.own.address());
        let member = GossipMember::new(identity, cell.keys, rand::random(), BootClock.now());
        let first = GossipStatus {
            report: member.report(),
            counters: member.counters(),
        };
        let (status, mut statuses) = watch::channel(first);
        let (commands, receiver) = mpsc::channel(WAITING);
        let mut servers = self.server.subscribe();
        servers.mark_changed();
        let cancel = self.ending.child_token();
        let ports = GossipPorts {
            commands: receiver,
            status,
            cancel: cancel.clone(),
        };
        // There is room for the first commands.
        let _ = commands.send(GossipCommand::Roster(cell.roster)).await;
        let running = run_gossip(socket, &BootClock, member, ports);
        tokio::pin!(running);
        loop {
            // The member is polled in all arms but its own, so a command waits for nobody.
            let command = tokio::select! {
                _ = &mut running => return,
                Ok(()) = cells.changed() => {
                    let Some(cell) = cells.borrow_and_update().clone() else { continue };
                    if cell.own.address() != identity.address() {
                        cancel.cancel();
                        cells.mark_changed();
                        continue;
                    }
                    let _ = commands.try_send(GossipCommand::Keys(cell.keys));
                    GossipCommand::Roster(cell.roster)
                }
                Ok(()) = servers.changed() => {
                    GossipCommand::Server(servers.borrow_and_update().clone())
                }
                Ok(()) = statuses.changed() => {
                    let status = statuses.borrow_and_update().clone();
                    self.tell(&status);
                    continue;
                }
            };
            // A member that is so far behind gets the next roster.
            let _ = commands.try_send(command);
        }
    }

    fn generation(&self) -> u32 {
        self.news
            .borrow()
            .as_ref()
            .map_or(1, |news| news.generation)
    }

    /// Gives what the member says to the streams.
    fn tell(&self, status: &GossipStatus) {
        let report = &status.report;
        if report.identity.generation > self.generation()
            && let Err(error) = self.next_generation(report.identity.generation)
        {
            tracing::warn!(%error, "the generation of the gossip member cannot be kept");
        }
        self.hints.send_if_modified(|hints| {
            let is_new = *hints != report.servers;
            hints.clone_from(&report.servers);
            is_new
        });
        self.news.send_if_modified(|news| {
            let Some(news) = news else { return false };
            let accused: Vec<String> = report.accused.iter().map(ToString::to_string).collect();
            let is_new = news.accused != accused || news.generation != report.identity.generation;
            news.accused = accused;
            news.generation = report.identity.generation;
            is_new
        });
    }
}

impl GossipFeed {
    /// Waits for news.
    pub(crate) async fn next(&mut self) -> wire::GossipNews {
        loop {
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(news) = self.0.borrow_and_update().clone() {
                return news;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    const NODE: &str = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9";

    #[tokio::test]
    async fn each_start_takes_a_higher_generation() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let data = AgentData::open(path).expect("opened");
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        for generation in 1..4 {
            let gossip = NodeGossip::open(&data, NODE, listen).await.expect("opened");
            assert_eq!(gossip.generation(), generation);
            let news = gossip.subscribe().next().await;
            assert_eq!(news.generation, generation);
        }
        let quiet = NodeGossip::open(&data, NODE, None).await.expect("opened");
        assert!(quiet.news.borrow().is_none());
    }

    #[tokio::test]
    async fn a_cell_that_does_not_name_the_node_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let data = AgentData::open(path).expect("opened");
        let gossip = NodeGossip::open(&data, NODE, None).await.expect("opened");
        let cell = |node: &str, key: usize| wire::GossipCell {
            key: vec![1; key].into(),
            peers: vec![wire::GossipPeer {
                node: node.to_owned(),
                generation: 1,
                address: "10.0.0.1:7000".to_owned(),
            }],
        };
        gossip.take_cell(&cell(&NODE.replace('a', "b"), 32));
        gossip.take_cell(&cell(NODE, 31));
        assert!(gossip.cell.borrow().is_none());
        gossip.take_cell(&cell(NODE, 32));
        assert!(gossip.cell.borrow().is_some());
    }
}
