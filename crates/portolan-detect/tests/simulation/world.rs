//! A fleet in virtual time: agents with the real protocol, sealed packets on a network that loses and delays them, and a
//! server that gets their heartbeats and accusations. Everything follows from one seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use portolan_detect::{
    CellKey, CellKeys, CellName, FleetLiveness, GossipMember, LivenessChange, LivenessInput,
    LivenessState, NodeUid, PeerIdentity, Roster, step,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Microseconds since the beginning.
pub(crate) type Micros = u64;

pub(crate) const SECOND: Micros = 1_000_000;

/// Members of a cell.
pub(crate) const CELL: usize = 500;

/// How often the server looks at what has arrived.
const LOOK: Micros = SECOND / 4;

/// What a socket keeps for a process that does not read.
const SOCKET_BUFFER: usize = 256;

/// One end of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Server,
    Node(usize),
    /// Nodes from one number up to another one.
    Nodes(usize, usize),
}

/// Packets from one end to the other are lost for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
}

/// What befalls a node.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    /// Power is cut: nobody is told.
    PowerLoss,
    /// The process is killed: its connections are reset.
    Killed,
    /// It says goodbye.
    Leaves,
    /// It does not run for so long.
    Stalls(Micros),
    /// It stalls for so long, runs for up to five times as long, and so on.
    KeepsStalling(Micros),
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Wake(usize),
    Packet { to: usize, slot: usize },
    Beat(usize),
    Befalls(usize, Fate),
    ServerHears(usize),
    ServerLoses(usize),
    ServerIsLeft(usize),
    ServerLooks,
}

struct SimNode {
    member: GossipMember,
    is_running: bool,
    stalled_until: Micros,
    /// What has arrived while it was stalled.
    inbox: Vec<usize>,
    wake: Micros,
    /// Whether the server does not know the newest accusations.
    has_news: bool,
}

pub(crate) struct World {
    pub(crate) now: Micros,
    pub(crate) loss: f64,
    pub(crate) blocks: Vec<Block>,
    pub(crate) changes: Vec<(Micros, LivenessChange)>,
    pub(crate) fleet: FleetLiveness,
    nodes: Vec<SimNode>,
    rng: SmallRng,
    queue: BinaryHeap<Reverse<(Micros, u64, Slot)>>,
    events: u64,
    packets: Vec<Vec<u8>>,
    free: Vec<usize>,
    inputs: Vec<LivenessInput>,
    look_at: Micros,
    /// Packets on their way out of a member.
    outgoing: Vec<(SocketAddr, usize)>,
}

/// An event that compares as equal to all others: time and number decide.
struct Slot(Event);

impl PartialEq for Slot {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Slot {}
impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Slot {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

pub(crate) fn uid(node: usize) -> NodeUid {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&(node as u64).to_be_bytes());
    NodeUid(bytes)
}

fn address(node: usize) -> SocketAddr {
    let ip = Ipv4Addr::from_bits(0x0a00_0000 + node as u32);
    SocketAddr::new(IpAddr::V4(ip), 7946)
}

fn node_at(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(ip) => (ip.to_bits() - 0x0a00_0000) as usize,
        IpAddr::V6(_) => usize::MAX,
    }
}

fn time(micros: Micros) -> Duration {
    Duration::from_micros(micros)
}

impl World {
    /// A fleet in cells of at most `cell` that knows itself, and whose streams are opened within the first second.
    pub(crate) fn new(seed: u64, size: usize, cell: usize) -> Self {
        let mut world = Self {
            now: 0,
            loss: 0.0,
            blocks: Vec::new(),
            changes: Vec::new(),
            fleet: FleetLiveness::default(),
            nodes: Vec::with_capacity(size),
            rng: SmallRng::seed_from_u64(seed),
            queue: BinaryHeap::new(),
            events: 0,
            packets: Vec::new(),
            free: Vec::new(),
            inputs: Vec::new(),
            look_at: Micros::MAX,
            outgoing: Vec::new(),
        };
        for first in (0..size).step_by(cell) {
            world.add_cell(first, size.min(first + cell));
        }
        world
    }

    fn add_cell(&mut self, first: usize, end: usize) {
        let name = CellName::new(&format!("cell-{first}"));
        let key = CellKey::new(&self.rng.random::<[u8; 32]>().into());
        let identity = |node| PeerIdentity::new(uid(node), 1, address(node));
        let roster = Roster::new((first..end).map(identity).collect());
        for node in first..end {
            let keys = CellKeys::one(key.clone());
            let seed = self.rng.random();
            let member = GossipMember::new(identity(node), keys, seed, Duration::ZERO);
            self.nodes.push(SimNode {
                member,
                is_running: true,
                stalled_until: 0,
                inbox: Vec::new(),
                wake: Micros::MAX,
                has_news: false,
            });
            self.inputs.push(LivenessInput::Known {
                node: uid(node),
                cell: Some(name.clone()),
                state: LivenessState::Ready,
            });
            // Members start at different moments of a probe's time.
            self.now = self.rng.random_range(0..3 * SECOND / 2);
            self.act(node, |member, now, send| {
                member.set_roster(now, &roster, send);
            });
            self.now = 0;
            let opened = self.rng.random_range(0..SECOND);
            self.push(opened, Event::ServerHears(node));
            let beat = opened + self.rng.random_range(0..10 * SECOND);
            self.push(beat, Event::Beat(node));
        }
    }

    pub(crate) fn befalls(&mut self, node: usize, at: Micros, fate: Fate) {
        self.push(at, Event::Befalls(node, fate));
    }

    /// Random numbers of this history.
    pub(crate) fn pick(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.rng.random_range(range)
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    pub(crate) fn state(&self, node: usize) -> LivenessState {
        self.fleet.state(uid(node)).expect("it is known")
    }

    pub(crate) fn member(&self, node: usize) -> &GossipMember {
        &self.nodes[node].member
    }

    pub(crate) fn size(&self) -> usize {
        self.nodes.len()
    }

    /// When a node first came to a state after some moment.
    pub(crate) fn became(
        &self,
        node: usize,
        state: LivenessState,
        after: Micros,
    ) -> Option<Micros> {
        let became = self.changes.iter().find(|(at, change)| {
            let is_it = matches!(change, LivenessChange::Node { node: changed, to, .. }
                if *changed == uid(node) && *to == state);
            *at >= after && is_it
        });
        became.map(|(at, _)| *at)
    }

    /// How often nodes came to a state.
    pub(crate) fn count(&self, state: LivenessState) -> usize {
        let is_it = |change: &LivenessChange| matches!(change, LivenessChange::Node { to, .. } if *to == state);
        self.changes
            .iter()
            .filter(|(_, change)| is_it(change))
            .count()
    }

    /// Runs until a moment, or until `is_done` says so when the server has looked.
    pub(crate) fn run(&mut self, until: Micros, is_done: impl Fn(&Self) -> bool) {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at <= until
        {
            let Some(Reverse((at, _, Slot(event)))) = self.queue.pop() else {
                return;
            };
            self.now = at;
            self.happen(event);
            if matches!(event, Event::ServerLooks) && is_done(self) {
                return;
            }
        }
        self.now = until;
    }

    fn push(&mut self, at: Micros, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((at, self.events, Slot(event))));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(node) => self.wake(node),
            Event::Packet { to, slot } => self.arrive(to, slot),
            Event::Beat(node) => self.beat(node),
            Event::Befalls(node, fate) => self.suffer(node, fate),
            Event::ServerHears(node) => {
                self.observe(LivenessInput::Heard(uid(node)));
                if self.nodes[node].has_news {
                    self.nodes[node].has_news = false;
                    let accused = self.nodes[node].member.report().accused;
                    let accuser = uid(node);
                    self.observe(LivenessInput::Accuses { accuser, accused });
                }
            }
            Event::ServerLoses(node) => self.observe(LivenessInput::Closed(uid(node))),
            Event::ServerIsLeft(node) => self.observe(LivenessInput::Left(uid(node))),
            Event::ServerLooks => self.look(),
        }
    }

    fn observe(&mut self, input: LivenessInput) {
        self.inputs.push(input);
        self.look_by(self.now + LOOK);
    }

    fn look_by(&mut self, at: Micros) {
        if at < self.look_at {
            self.look_at = at;
            self.push(at, Event::ServerLooks);
        }
    }

    fn look(&mut self) {
        if self.now < self.look_at {
            return;
        }
        self.look_at = Micros::MAX;
        let fleet = std::mem::take(&mut self.fleet);
        let (fleet, changes) = step(fleet, &self.inputs, time(self.now));
        self.inputs.clear();
        self.fleet = fleet;
        let now = self.now;
        self.changes
            .extend(changes.into_iter().map(|change| (now, change)));
        if let Some(due) = self.fleet.next_due(time(now)) {
            self.look_by((due.as_micros() as Micros).max(now + 1));
        }
    }

    /// What was due at that time is due later if the node was stalled since.
    fn wake(&mut self, node: usize) {
        let now = self.now;
        let state = &mut self.nodes[node];
        if !state.is_running || now != state.wake.max(state.stalled_until) {
            return;
        }
        let inbox = std::mem::take(&mut state.inbox);
        for slot in inbox {
            self.read(node, slot);
        }
        self.act(node, |member, now, send| member.poll(now, send));
    }

    fn arrive(&mut self, to: usize, slot: usize) {
        let now = self.now;
        let state = &mut self.nodes[to];
        if state.is_running && now >= state.stalled_until {
            self.read(to, slot);
        } else if state.is_running && state.inbox.len() < SOCKET_BUFFER {
            state.inbox.push(slot);
        } else {
            self.free.push(slot);
        }
    }

    fn read(&mut self, node: usize, slot: usize) {
        let packet = std::mem::take(&mut self.packets[slot]);
        self.act(node, |member, now, send| {
            member.handle_packet(now, &packet, send);
        });
        self.packets[slot] = packet;
        self.free.push(slot);
    }

    /// Lets a member do something, and takes what it sends and says.
    fn act(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut GossipMember, Duration, &mut dyn FnMut(SocketAddr, &[u8])),
    ) {
        let now = time(self.now);
        let (packets, free, outgoing) = (&mut self.packets, &mut self.free, &mut self.outgoing);
        let mut send = |to: SocketAddr, packet: &[u8]| {
            let slot = free.pop().unwrap_or_else(|| {
                packets.push(Vec::new());
                packets.len() - 1
            });
            packets[slot].clear();
            packets[slot].extend_from_slice(packet);
            outgoing.push((to, slot));
        };
        let state = &mut self.nodes[node];
        work(&mut state.member, now, &mut send);
        if state.member.take_report().is_some() {
            state.has_news = true;
        }
        let wake = (state.member.next_poll().as_micros() as Micros).max(self.now);
        if wake != state.wake {
            state.wake = wake;
            let at = wake.max(state.stalled_until);
            self.push(at, Event::Wake(node));
        }
        if self.nodes[node].has_news && self.is_open(node) {
            let delay = self.delay();
            self.push(self.now + delay, Event::ServerHears(node));
        }
        let mut outgoing = std::mem::take(&mut self.outgoing);
        for (to, slot) in outgoing.drain(..) {
            let to = node_at(to);
            let is_lost = self.loss > 0.0 && self.rng.random_bool(self.loss);
            if to >= self.nodes.len() || is_lost || self.is_blocked(End::Node(node), End::Node(to))
            {
                self.free.push(slot);
            } else {
                let delay = self.delay();
                self.push(self.now + delay, Event::Packet { to, slot });
            }
        }
        self.outgoing = outgoing;
    }

    /// A millisecond or two, and now and then a tenth of a second.
    fn delay(&mut self) -> Micros {
        match self.rng.random_range(0..200) {
            0 => self.rng.random_range(10_000..100_000),
            _ => self.rng.random_range(200..3_000),
        }
    }

    fn is_open(&self, node: usize) -> bool {
        let (node, server) = (End::Node(node), End::Server);
        !self.is_blocked(node, server) && !self.is_blocked(server, node)
    }

    fn is_blocked(&self, from: End, to: End) -> bool {
        let now = self.now;
        let mut active = self
            .blocks
            .iter()
            .filter(|block| block.start <= now && now < block.end);
        active.any(|block| is_within(from, block.from) && is_within(to, block.to))
    }

    /// A heartbeat on a connection: what is lost is sent again, after ever longer pauses.
    fn beat(&mut self, node: usize) {
        if !self.nodes[node].is_running {
            return;
        }
        let stalled = self.nodes[node].stalled_until;
        if stalled > self.now {
            self.push(stalled, Event::Beat(node));
        } else if !self.is_open(node) {
            self.push(self.now + SECOND, Event::Beat(node));
        } else {
            let mut delay = self.delay();
            let mut pause = SECOND / 5;
            while self.loss > 0.0 && self.rng.random_bool(self.loss) {
                delay += pause;
                pause *= 2;
            }
            self.push(self.now + delay, Event::ServerHears(node));
            let ttl = self.fleet.ttl().as_micros() as Micros;
            self.push(self.now + ttl, Event::Beat(node));
        }
    }

    fn suffer(&mut self, node: usize, fate: Fate) {
        let now = self.now;
        match fate {
            Fate::PowerLoss => self.nodes[node].is_running = false,
            Fate::Killed => {
                self.nodes[node].is_running = false;
                let delay = self.delay();
                self.push(now + delay, Event::ServerLoses(node));
            }
            Fate::Leaves => {
                self.act(node, |member, now, send| member.leave(now, send));
                self.nodes[node].is_running = false;
                let delay = self.delay();
                self.push(now + delay, Event::ServerIsLeft(node));
            }
            Fate::Stalls(length) => self.stall(node, length),
            Fate::KeepsStalling(length) => {
                self.stall(node, length);
                let runs = self.rng.random_range(SECOND..5 * length);
                self.befalls(node, now + length + runs, fate);
            }
        }
    }

    fn stall(&mut self, node: usize, length: Micros) {
        let state = &mut self.nodes[node];
        state.stalled_until = self.now + length;
        let at = state.wake.max(state.stalled_until);
        self.push(at, Event::Wake(node));
    }
}

fn is_within(end: End, within: End) -> bool {
    match (end, within) {
        (End::Server, End::Server) => true,
        (End::Node(node), End::Node(other)) => node == other,
        (End::Node(node), End::Nodes(first, end)) => (first..end).contains(&node),
        _ => false,
    }
}
