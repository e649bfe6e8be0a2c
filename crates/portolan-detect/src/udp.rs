//! A member on a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use portolan_clock::Clock;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::member::{GossipCounters, GossipMember, GossipReport};
use crate::roster::Roster;
use crate::seal::{CellKeys, MAX_PACKET_BYTES};

/// Packets that are read before timers get their turn: a flood must not stop a member's own probes.
const MOST_AT_ONCE: usize = 1_024;

/// What an agent tells its member.
#[derive(Debug, Clone)]
pub enum GossipCommand {
    /// The keys of the cell, as the server hands them out.
    Keys(CellKeys),
    /// The members of the cell, as the server names them.
    Roster(Roster),
    /// The server that the agent is connected to; `None` when it looks for one, so that peers are asked.
    Server(Option<String>),
}

/// What a member says while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GossipStatus {
    /// What the agent should act on.
    pub report: GossipReport,
    /// What was counted until the report last changed.
    pub counters: GossipCounters,
}

/// How an agent and its running member are connected.
pub struct GossipPorts {
    /// What the agent tells it. The member leaves when the sender is dropped.
    pub commands: mpsc::Receiver<GossipCommand>,
    /// What it says, whenever that changes.
    pub status: watch::Sender<GossipStatus>,
    /// Ends it; it says goodbye to its peers.
    pub cancel: CancellationToken,
}

/// Runs a member on a socket until it is cancelled, and returns what it has counted.
///
/// The socket is read until it is empty before timers are looked at: after a pause, the answers that waited there are heard
/// before anybody is missed.
pub async fn run_gossip(
    socket: &UdpSocket,
    clock: &impl Clock,
    mut member: GossipMember,
    mut ports: GossipPorts,
) -> GossipCounters {
    let mut buffer = [0; MAX_PACKET_BYTES + 1];
    loop {
        read_all(socket, clock, &mut member, &mut buffer);
        member.poll(clock.now(), &mut |to, packet| send(socket, to, packet));
        if let Some(report) = member.take_report() {
            let counters = member.counters();
            ports.status.send_replace(GossipStatus { report, counters });
        }
        let pause = member.next_poll().saturating_sub(clock.now());
        // Timers of less than a millisecond are rounded up by the runtime, and never down.
        tokio::select! {
            biased;
            () = ports.cancel.cancelled() => break,
            command = ports.commands.recv() => match command {
                Some(command) => obey(command, socket, clock, &mut member),
                None => break,
            },
            _ = socket.readable() => {}
            () = tokio::time::sleep(pause.min(Duration::from_mins(1))) => {}
        }
    }
    member.leave(clock.now(), &mut |to, packet| send(socket, to, packet));
    member.counters()
}

fn obey(command: GossipCommand, socket: &UdpSocket, clock: &impl Clock, member: &mut GossipMember) {
    let now = clock.now();
    match command {
        GossipCommand::Keys(keys) => member.set_keys(keys),
        GossipCommand::Roster(roster) => {
            member.set_roster(now, &roster, &mut |to, packet| send(socket, to, packet));
        }
        GossipCommand::Server(Some(endpoint)) => member.set_server(Some(&endpoint)),
        GossipCommand::Server(None) => {
            member.set_server(None);
            member.find_servers(now);
        }
    }
}

/// Reads what has arrived. Errors of a socket are those of packets that were sent before: nobody listens there.
fn read_all(socket: &UdpSocket, clock: &impl Clock, member: &mut GossipMember, buffer: &mut [u8]) {
    for _ in 0..MOST_AT_ONCE {
        match socket.try_recv_from(buffer) {
            Ok((length, _)) => {
                let packet = buffer.get(..length).unwrap_or_default();
                member.handle_packet(clock.now(), packet, &mut |to, packet| {
                    send(socket, to, packet);
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(error) => tracing::debug!(%error, "a gossip packet was not received"),
        }
    }
}

/// A packet that cannot be sent is lost, like many others.
fn send(socket: &UdpSocket, to: SocketAddr, packet: &[u8]) {
    if let Err(error) = socket.try_send_to(packet, to) {
        tracing::debug!(%error, %to, "a gossip packet was not sent");
    }
}
