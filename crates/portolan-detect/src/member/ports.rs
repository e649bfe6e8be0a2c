//! What foca asks of the world around it, and what a member keeps beside foca.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use foca::{Notification, Runtime, Timer};
use rand::RngExt;
use rand::rngs::StdRng;

use super::GossipCounters;
use crate::inquiry::Inquiries;
use crate::packet::{self, Body, Envelope, mark_of, mark_of_node};
use crate::peer::PeerIdentity;
use crate::roster::Admission;
use crate::seal::CellKeys;
use crate::servers::ServerHints;
use crate::timers::Timers;
use crate::uid::NodeUid;
use crate::wire::{ANNOUNCE, PING, get_identity};

/// How many members look for themselves when they hear of a peer's end that they have not seen: enough for three accusers
/// with near certainty, and not all of a cell.
const LOOKING_AT_A_RUMOUR: usize = 12;

/// Everything of a member but foca.
pub(super) struct Side {
    pub(super) own: PeerIdentity,
    own_mark: u32,
    /// The mark of all its generations.
    node_mark: u32,
    pub(super) keys: CellKeys,
    pub(super) rng: StdRng,
    /// Counts the packets of this process.
    number: u32,
    pub(super) counters: GossipCounters,
    pub(super) timers: Timers,
    pub(super) admission: Admission,
    pub(super) inquiries: Inquiries,
    /// Until when peers are degraded, in the member's time. No more than there are admitted members.
    degraded_peers: HashMap<NodeUid, Duration>,
    pub(super) degraded_until: Option<Duration>,
    pub(super) server: Option<String>,
    pub(super) servers: ServerHints,
    pub(super) ask_servers_at: Option<Duration>,
    pub(super) join_at: Duration,
    /// Whom foca probes.
    probed: Option<NodeUid>,
    /// Whose probe did not fail.
    pub(super) answered: Option<NodeUid>,
    pub(super) has_changed: bool,
    plain: Vec<u8>,
    packet: Vec<u8>,
}

impl Side {
    pub(super) fn new(own: PeerIdentity, keys: CellKeys, rng: StdRng, now: Duration) -> Self {
        Self {
            own,
            own_mark: mark_of(&own),
            node_mark: mark_of_node(own.uid),
            keys,
            rng,
            number: 0,
            counters: GossipCounters::default(),
            timers: Timers::default(),
            admission: Admission::default(),
            inquiries: Inquiries::default(),
            degraded_peers: HashMap::new(),
            degraded_until: None,
            server: None,
            servers: ServerHints::default(),
            ask_servers_at: None,
            join_at: now,
            probed: None,
            answered: None,
            has_changed: true,
            plain: Vec::new(),
            packet: Vec::new(),
        }
    }

    pub(super) fn is_for_us(&self, mark: u32) -> bool {
        mark == self.own_mark || mark == self.node_mark
    }

    /// Follows foca when it takes another identity.
    pub(super) fn adopt(&mut self, identity: PeerIdentity) {
        if self.own != identity {
            self.own = identity;
            self.own_mark = mark_of(&identity);
            self.has_changed = true;
        }
    }

    pub(super) fn note_degraded(&mut self, peer: NodeUid, now: Duration, time: Duration) {
        let until = self.timers.local(now) + time;
        self.degraded_peers.insert(peer, until);
    }

    #[cfg(test)]
    pub(super) fn is_degraded_peer(&self, peer: NodeUid) -> bool {
        self.degraded_peers.contains_key(&peer)
    }

    /// Asks the peers that are inquired about and due.
    pub(super) fn ask_suspects(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let local = self.timers.local(now);
        loop {
            let is_degraded = self.degraded_until.is_some();
            let peers = &self.degraded_peers;
            let needs_patience =
                |node| is_degraded || peers.get(&node).is_some_and(|until| *until > local);
            let Some(asked) = self.inquiries.poll(local, needs_patience) else {
                break;
            };
            self.has_changed |= asked.is_newly_accused;
            if let Some(peer) = self.admission.find(asked.node) {
                self.send_to_node(&peer, &Body::Check(asked.number), send);
            }
        }
        if self.degraded_peers.len() > self.admission.most() {
            self.degraded_peers.retain(|_, until| *until > local);
        }
    }

    /// Some members of the roster, chosen at random.
    pub(super) fn some_of_roster(&mut self, count: usize) -> Vec<PeerIdentity> {
        let peers = self.admission.roster.peers();
        let others = peers.iter().filter(|peer| peer.uid != self.own.uid);
        let others: Vec<PeerIdentity> = others.copied().collect();
        let count = count.min(others.len());
        let chosen = (0..count).map(|_| others[self.rng.random_range(0..others.len())]);
        chosen.collect()
    }

    /// Sends something to a node, whatever its generation.
    pub(super) fn send_to_node(
        &mut self,
        peer: &PeerIdentity,
        body: &Body<'_>,
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        let receiver = mark_of_node(peer.uid);
        self.send(self.own, receiver, peer.address(), body, send);
    }

    fn send(
        &mut self,
        sender: PeerIdentity,
        receiver: u32,
        to: SocketAddr,
        body: &Body<'_>,
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        self.number = self.number.saturating_add(1);
        let envelope = Envelope {
            is_degraded: self.degraded_until.is_some(),
            number: self.number,
            receiver,
            sender,
        };
        packet::write(&envelope, body, &mut self.plain);
        self.keys.seal(&mut self.rng, &self.plain, &mut self.packet);
        self.counters.sent += 1;
        self.counters.sent_bytes += self.packet.len() as u64;
        send(to, &self.packet);
    }
}

/// A member's side as foca's runtime.
pub(super) struct Ports<'a> {
    pub(super) side: &'a mut Side,
    send: &'a mut dyn FnMut(SocketAddr, &[u8]),
    /// The member's time.
    local: Duration,
}

impl<'a> Ports<'a> {
    pub(super) fn new(
        side: &'a mut Side,
        send: &'a mut dyn FnMut(SocketAddr, &[u8]),
        now: Duration,
    ) -> Self {
        let local = side.timers.local(now);
        Self { side, send, local }
    }

    fn inquire(&mut self, node: NodeUid) {
        let question = self.side.rng.random();
        self.side.inquiries.begin(node, question, self.local);
    }
}

impl Runtime<PeerIdentity> for Ports<'_> {
    fn notify(&mut self, notification: Notification<'_, PeerIdentity>) {
        match notification {
            Notification::MemberUp(peer) | Notification::Rename(_, peer) => {
                self.side.inquiries.hasten(peer.uid, self.local);
            }
            Notification::MemberDown(peer) => {
                let size = self.side.admission.roster.peers().len().max(1);
                if self.side.rng.random_range(0..size) < LOOKING_AT_A_RUMOUR {
                    self.inquire(peer.uid);
                }
            }
            _ => {}
        }
    }

    fn send_to(&mut self, to: PeerIdentity, data: &[u8]) {
        let mut rest = data;
        // What foca writes begins with both members, as our codec wrote them.
        let (Ok(_), Ok(sender)) = (get_identity(&mut rest), get_identity(&mut rest)) else {
            return;
        };
        let kind = rest.get(2).copied();
        if kind == Some(PING) {
            self.side.answered = self.side.probed.replace(to.uid);
        }
        let receiver = match kind {
            Some(ANNOUNCE) => mark_of_node(to.uid),
            _ => mark_of(&to),
        };
        let body = Body::Swim(rest);
        self.side
            .send(sender, receiver, to.address(), &body, self.send);
    }

    fn submit_after(&mut self, timer: Timer<PeerIdentity>, after: Duration) {
        // Foca sets this timer when a probe of its own has failed, and only then.
        if let Timer::ChangeSuspectToDown { member_id, .. } = &timer {
            if self.side.probed == Some(member_id.uid) {
                self.side.probed = None;
            }
            self.inquire(member_id.uid);
        }
        self.side.timers.add(timer, self.local + after);
    }
}
