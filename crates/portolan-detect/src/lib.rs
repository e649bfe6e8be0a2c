//! Which nodes of a fleet are alive, by two witnesses.
//!
//! ```text
//!            witness 1: its stream                        witness 2: its peers
//!
//!   agent ── heartbeats over mTLS ──▶ server     agent ◀── sealed UDP, SWIM (foca) ──▶ other agents of its cell
//!                                       │          │
//!                                       │          └─ a probe failed: ask it yourself, three times
//!                                       │             no answer: "I cannot reach X", over the own stream ──▶ server
//!                                       ▼                                                                      │
//!                        heard, closed, left          accusers of X whose own stream is open ◀─────────────────┘
//!                                       └──────────────┬──────────────┘
//!                                                    step(state, observations, now)
//!
//!                         peers see it             enough peers do not reach it
//!   stream open           Ready                    Suspect: a note
//!   stream lost           LinkLost: wait           Down, after ttl + grace
//!   said goodbye          Left                     Left
//! ```
//!
//! [`step`] is the decision, a pure function: Down needs a stream that has been silent for longer than a heartbeat's time and
//! the grace, **and** min(3, living members − 1) accusers; in a cell of fewer than three there is nobody to ask, and the
//! stream alone decides. Living members are those whose streams are open, and the node itself: of two nodes that die at once
//! neither is needed to accuse the other. If at least three nodes and more than 30 % of a cell are lost at once, that is one
//! event and nobody is called down, until enough are back or five minutes have passed; links are shown as lost meanwhile, and
//! [`FleetLiveness::unreachable_for`] goes on counting, so no run waits longer than its own policy says.
//!
//! [`GossipMember`] is a member of a cell without a socket and without a clock; [`run_gossip`] runs one on a UDP socket. The
//! server hands out the key and the roster of a cell over the streams, and the agent reports its member's accusations and
//! identity there. An agent whose server is gone asks its peers where servers are.
//!
//! # What a lying or taken-over member can and cannot do
//!
//! Whoever has the key of a cell can say anything in it, in anybody's name. So nothing that is said there counts by itself:
//!
//! - It **cannot change a state alone**. The server hears accusations only on authenticated streams, one voice for each
//!   certificate; Suspect and Down both need at least two, and a cell that is too small for two listens to none.
//! - It **cannot make honest members accuse**. They accuse after their own questions were not answered, never because of a
//!   rumour, and ask at the address that the server named: a rumour that a node has moved leads nobody astray.
//! - It **cannot keep a dead node from being accused**: an answer must repeat a random number that went to the node's own
//!   address. Only whoever also receives the node's packets can answer for it, as long as it does.
//! - It **cannot send others to a false server**: an address from a peer is a hint, and the server's certificate decides.
//! - It **can** make peers gossip about a node as gone, so that the node takes the next generation and joins again; invent up
//!   to 64 members that are on no roster; accuse anybody, as one voice; learn who is in the cell; and cost its peers time.
//! - Three members that were taken over **can** make a node Suspect, and Down if its stream is lost too. They cannot make a
//!   node whose stream is open anything worse than Suspect, and Suspect has no effect.
//!
//! Without the key nothing can be said. Packets of another cell, forged, cut or too long ones are dropped and counted. A
//! packet that is sent again is refused: each carries a number, and is for one generation of one member; an answer that is
//! sent again has the number of a question that nobody asks any more.

#![warn(missing_docs)]

mod liveness;
mod uid;

mod packet;
mod peer;
mod roster;
mod seal;
mod wire;

mod inquiry;
mod member;
mod servers;
mod timers;
mod udp;

mod fuzz;

pub use fuzz::FuzzedCell;
pub use liveness::{
    CellName, DOWN_GRACE, FREEZE_LIMIT, FleetLiveness, LivenessChange, LivenessInput,
    LivenessState, MassLossEnd, heartbeat_ttl, step, take_over_grace,
};
pub use member::{GossipCounters, GossipMember, GossipReport};
pub use peer::PeerIdentity;
pub use roster::{MAX_ROSTER, Roster};
pub use seal::{CellKey, CellKeys, MAX_PACKET_BYTES};
pub use udp::{GossipCommand, GossipPorts, GossipStatus, run_gossip};
pub use uid::{NodeUid, NodeUidError};
