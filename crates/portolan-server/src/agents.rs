//! Agents that are connected to this server.
//!
//! ```text
//! stream of an agent ──▶ AgentStream ──join, heard, gossip, leave──▶ AgentHub ──news──▶ Liveness ──▶ status of Nodes, Events
//!                                                                                           └──▶ GossipCell ──▶ agents
//! ```
//!
//! The states are decided by portolan-detect from both witnesses: the streams, and what agents say of their peers.
//!
//! Who an agent is comes from its certificate, which is looked at again for every message. Only changes of a node's state
//! are written to the store, never that an agent is still there.

mod cell;
mod hub;
mod liveness;
mod owner;
mod stream;

pub(crate) use hub::AgentHub;
pub(crate) use liveness::Liveness;
pub(crate) use stream::{AGENT_STREAM, AgentStreams};
