//! A member of a cell: foca behind sealed packets, without a socket and without a clock.
//!
//! ```text
//! packet ──open──▶ admitted? new? ──┬─▶ foca ──────────▶ packets, timers, rumours
//!                                   └─▶ questions ─────▶ accusations by own evidence ──▶ GossipReport
//! ```
//!
//! Whoever drives a member gives it every packet that has arrived before it calls [`GossipMember::poll`]: an answer that
//! waits in the socket must not be taken for missing.

mod ports;
mod settings;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use foca::{Foca, NoCustomBroadcast};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::packet::{self, Body};
use crate::peer::PeerIdentity;
use crate::roster::Roster;
use crate::seal::{CellKeys, OpenError};
use crate::uid::NodeUid;
use crate::wire::PeerCodec;
use ports::{Ports, Side};

/// How long a member that was held up says so, and is more patient.
const DEGRADED_FOR: Duration = Duration::from_secs(30);

/// How often a member that knows nobody tries to join, and one that looks for a server asks.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// How many peers it asks at once.
const ASKED_AT_ONCE: usize = 3;

/// What a member has to say to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GossipReport {
    /// Who it is: its generation changes when its peers had given it up. The server is to be told.
    pub identity: PeerIdentity,
    /// The nodes that it cannot reach by its own evidence, for the server.
    pub accused: Vec<NodeUid>,
    /// Where servers are, as peers say; only after it was asked to find out.
    pub servers: Vec<String>,
    /// Whether it was held up lately.
    pub is_degraded: bool,
    /// How many peers it takes for alive.
    pub peers: usize,
}

/// What a member has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GossipCounters {
    /// Packets that were sent.
    pub sent: u64,
    /// Their bytes, sealed, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Packets that arrived, those dropped included.
    pub received: u64,
    /// Dropped: sealed with a key that is not known here.
    pub other_cell: u64,
    /// Dropped: not sealed with the key that they name.
    pub forged: u64,
    /// Dropped: too short, too long, of another version, or not written as they should be.
    pub malformed: u64,
    /// Dropped: for another member, or for another generation of this one.
    pub misdirected: u64,
    /// Dropped: heard before.
    pub replayed: u64,
    /// Dropped: from a member that may not be heard.
    pub strangers: u64,
    /// How often the member was held up.
    pub stalls: u64,
}

/// A member of a cell.
pub struct GossipMember {
    foca: Foca<PeerIdentity, PeerCodec, StdRng, NoCustomBroadcast>,
    side: Side,
    /// Room for packets, kept so that none is allocated for each.
    plain: Vec<u8>,
    swim: Vec<u8>,
}

impl GossipMember {
    /// A member that knows nobody yet. Random choices and nonces come from `seed`, which must be as random as a key
    /// outside of simulations.
    pub fn new(identity: PeerIdentity, keys: CellKeys, seed: [u8; 32], now: Duration) -> Self {
        let mut rng = StdRng::from_seed(seed);
        let foca_rng = StdRng::from_seed(rng.random());
        let config = settings::config(0, false);
        Self {
            foca: Foca::new(identity, config, foca_rng, PeerCodec),
            side: Side::new(identity, keys, rng, now),
            plain: Vec::new(),
            swim: Vec::new(),
        }
    }

    /// Takes the keys that packets are sealed and opened with from now on.
    pub fn set_keys(&mut self, keys: CellKeys) {
        self.side.keys = keys;
    }

    /// Takes the members that the server names. Those that it no longer names are forgotten.
    pub fn set_roster(
        &mut self,
        now: Duration,
        roster: &Roster,
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        self.side.admission.replace_roster(roster.clone());
        self.configure();
        let own = self.side.own.uid;
        let known = self.foca.iter_members();
        let gone = known.filter(|member| roster.get(member.id().uid).is_none());
        let gone = gone
            .map(|member| foca::Member::new(*member.id(), member.incarnation(), foca::State::Down));
        let gone: Vec<_> = gone.collect();
        let named = roster.peers().iter().filter(|peer| peer.uid != own);
        let named = named.map(|peer| foca::Member::alive(*peer));
        let mut ports = Ports::new(&mut self.side, send, now);
        let updates = gone.into_iter().chain(named);
        // Only packets can be malformed: what the server names is applied.
        let _ = self.foca.apply_many(updates, false, &mut ports);
        let withdrawn = self
            .side
            .inquiries
            .retain(|node| roster.get(node).is_some());
        self.side.has_changed |= withdrawn;
        self.settle(now, send);
    }

    /// Says which server the agent is connected to, for peers that look for one.
    pub fn set_server(&mut self, endpoint: Option<&str>) {
        let endpoint = endpoint.filter(|endpoint| packet::is_endpoint(endpoint.as_bytes()));
        self.side.server = endpoint.map(str::to_owned);
        if self.side.server.is_some() {
            self.side.ask_servers_at = None;
            self.side.servers.clear();
        }
    }

    /// Asks peers where servers are, until [`GossipMember::set_server`] says that one was found.
    pub fn find_servers(&mut self, now: Duration) {
        let local = self.side.timers.local(now);
        self.side.ask_servers_at.get_or_insert(local);
    }

    /// Says goodbye, so that nobody takes the silence for an end. Nothing is to be asked of the member after that.
    pub fn leave(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let mut ports = Ports::new(&mut self.side, send, now);
        // It is about to end in any case.
        let _ = self.foca.leave_cluster(&mut ports);
    }

    /// Takes a packet. Whatever is in it, it costs a bounded amount of work.
    pub fn handle_packet(
        &mut self,
        now: Duration,
        packet: &[u8],
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        self.side.counters.received += 1;
        let mut plain = std::mem::take(&mut self.plain);
        match self.side.keys.open(packet, &mut plain) {
            Ok(()) => self.handle_plain(now, &plain, send),
            Err(OpenError::Malformed) => self.side.counters.malformed += 1,
            Err(OpenError::OtherCell) => self.side.counters.other_cell += 1,
            Err(OpenError::Forged) => self.side.counters.forged += 1,
        }
        self.plain = plain;
    }

    fn handle_plain(
        &mut self,
        now: Duration,
        plain: &[u8],
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        let Ok((envelope, body)) = packet::read(plain) else {
            self.side.counters.malformed += 1;
            return;
        };
        let sender = envelope.sender;
        if !self.side.is_for_us(envelope.receiver) || sender.uid == self.side.own.uid {
            self.side.counters.misdirected += 1;
            return;
        }
        if !self.side.admission.admits(&sender) {
            self.side.counters.strangers += 1;
            return;
        }
        if envelope.is_degraded {
            self.side.note_degraded(sender.uid, now, DEGRADED_FOR);
        }
        match body {
            Body::Swim(rest) => {
                if self.side.admission.is_new(&sender, envelope.number) {
                    self.handle_swim(now, &sender, rest, send);
                } else {
                    self.side.counters.replayed += 1;
                }
            }
            // Questions and answers have random numbers of their own. Somebody with the key could use up the numbers of
            // another member's packets; it can be asked all the same.
            Body::Check(question) => {
                let answer = Body::CheckAnswer(question);
                self.side.send_to_node(&sender, &answer, send);
            }
            Body::CheckAnswer(question) => {
                let is_withdrawn = self.side.inquiries.answered(sender.uid, question);
                self.side.has_changed |= is_withdrawn;
            }
            Body::AskServers => {
                if let Some(endpoint) = self.side.server.take() {
                    let answer = Body::Servers(&endpoint);
                    self.side.send_to_node(&sender, &answer, send);
                    self.side.server = Some(endpoint);
                }
            }
            Body::Servers(endpoint) => {
                // What nobody asked for is not remembered.
                if self.side.ask_servers_at.is_some() {
                    self.side.has_changed |= self.side.servers.note(sender.uid, endpoint);
                }
            }
        }
    }

    fn handle_swim(
        &mut self,
        now: Duration,
        sender: &PeerIdentity,
        rest: &[u8],
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        let own = self.side.own;
        let admission = &mut self.side.admission;
        let Ok(swim) = packet::write_swim(&own, sender, rest, admission, &mut self.swim) else {
            self.side.counters.malformed += 1;
            return;
        };
        let mut ports = Ports::new(&mut self.side, send, now);
        if self.foca.handle_data(&self.swim, &mut ports).is_err() {
            ports.side.counters.malformed += 1;
        }
        if let Some(claimed) = swim.claimed {
            self.outdo(now, claimed, send);
        }
        self.settle(now, send);
    }

    /// Somebody says that this node has a greater generation: an earlier process whose clock was ahead, or a lie. Peers
    /// believe it, so the next one is taken.
    fn outdo(&mut self, now: Duration, claimed: u32, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let own = self.side.own;
        let renewed = PeerIdentity::new(own.uid, claimed.saturating_add(1), own.address());
        if self.side.admission.admits(&renewed) {
            let mut ports = Ports::new(&mut self.side, send, now);
            // The identity differs, so that it is taken.
            let _ = self.foca.change_identity(renewed, &mut ports);
        }
    }

    /// Does what is due. Packets that have arrived are to be given to the member before.
    pub fn poll(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        self.notice_stall(now, send);
        let local = self.side.timers.local(now);
        while let Some(timer) = self.side.timers.take(local) {
            let mut ports = Ports::new(&mut self.side, send, now);
            // An error of foca's here says that timers came in a wrong order; it goes on by itself.
            let _ = self.foca.handle_timer(timer, &mut ports);
            self.settle(now, send);
        }
        self.side.ask_suspects(now, send);
        self.join(now, send);
        self.ask_servers(now, send);
    }

    /// When [`GossipMember::poll`] is to be called at the latest.
    pub fn next_poll(&self) -> Duration {
        let due = self.next_due_local();
        self.side.timers.outside(due)
    }

    fn next_due_local(&self) -> Duration {
        let side = &self.side;
        let others = [
            side.timers.next(),
            side.inquiries.next(),
            side.ask_servers_at,
        ];
        let others = others.into_iter().flatten().min();
        others.map_or(side.join_at, |due| due.min(side.join_at))
    }

    /// What the agent should know, if it has changed since it was last taken.
    pub fn take_report(&mut self) -> Option<GossipReport> {
        std::mem::take(&mut self.side.has_changed).then(|| self.report())
    }

    /// What the agent should know.
    pub fn report(&self) -> GossipReport {
        GossipReport {
            identity: self.side.own,
            accused: self.side.inquiries.accused().collect(),
            servers: self.side.servers.endpoints(),
            is_degraded: self.side.degraded_until.is_some(),
            peers: self.foca.num_members(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> GossipCounters {
        self.side.counters
    }

    /// Whether it takes a node for alive.
    pub fn sees(&self, node: NodeUid) -> bool {
        let mut members = self.foca.iter_members();
        members.any(|member| member.id().uid == node)
    }

    fn notice_stall(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let due = self.next_due_local();
        if self.side.timers.leave_out(due, now) {
            self.side.counters.stalls += 1;
            let was_degraded = self
                .side
                .degraded_until
                .replace(now + DEGRADED_FOR)
                .is_some();
            if !was_degraded {
                self.side.has_changed = true;
                self.configure();
                let mut ports = Ports::new(&mut self.side, send, now);
                // Every packet says it; these say it now.
                let _ = self.foca.gossip(&mut ports);
            }
        } else if self.side.degraded_until.is_some_and(|until| until <= now) {
            self.side.degraded_until = None;
            self.side.has_changed = true;
            self.configure();
        }
    }

    fn configure(&mut self) {
        let size = self.side.admission.roster.peers().len();
        let config = settings::config(size, self.side.degraded_until.is_some());
        // Only probe periods cannot be changed, and they do not differ.
        let _ = self.foca.set_config(config);
    }

    /// Takes note of what foca has found out.
    fn settle(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        self.side.adopt(*self.foca.identity());
        if let Some(answered) = self.side.answered.take()
            && self.side.inquiries.has(answered)
            && self.sees(answered)
        {
            self.side.has_changed |= self.side.inquiries.drop(answered);
        }
        self.side.ask_suspects(now, send);
    }

    fn join(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let local = self.side.timers.local(now);
        if self.side.join_at > local {
            return;
        }
        self.side.join_at = local + TRY_EVERY;
        if self.foca.num_members() > 0 {
            return;
        }
        for peer in self.side.some_of_roster(ASKED_AT_ONCE) {
            let mut ports = Ports::new(&mut self.side, send, now);
            // An announcement fits into every packet.
            let _ = self.foca.announce(peer, &mut ports);
        }
    }

    fn ask_servers(&mut self, now: Duration, send: &mut dyn FnMut(SocketAddr, &[u8])) {
        let local = self.side.timers.local(now);
        if self.side.ask_servers_at.is_none_or(|at| at > local) {
            return;
        }
        self.side.ask_servers_at = Some(local + TRY_EVERY);
        let known: Vec<PeerIdentity> = self.foca.iter_members().map(|peer| *peer.id()).collect();
        for _ in 0..ASKED_AT_ONCE.min(known.len()) {
            let at = self.side.rng.random_range(0..known.len());
            self.side.send_to_node(&known[at], &Body::AskServers, send);
        }
    }
}
