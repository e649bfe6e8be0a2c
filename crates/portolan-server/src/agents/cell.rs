//! The cell in which agents gossip: who is in it and where, and what its members have to know.
//!
//! There is one cell. It has room for so many that each packet stays small; further nodes have no peers, and their streams
//! alone decide.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use portolan_agent::wire;
use portolan_detect::{CellName, NodeUid};
use zeroize::Zeroizing;

/// The most members.
const MAX_MEMBERS: usize = 500;

/// What the key of the cell is derived for.
pub(super) const KEY_PURPOSE: &str = "portolan gossip cell 1";

/// The members of the cell.
pub(super) struct GossipCell {
    key: Zeroizing<[u8; 32]>,
    members: BTreeMap<NodeUid, (SocketAddr, u32)>,
    /// Whether the members have to be told.
    is_changed: bool,
}

impl GossipCell {
    pub(super) fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self {
            key,
            members: BTreeMap::new(),
            is_changed: false,
        }
    }

    /// Takes a node in, or notes where it is now; whether it is in.
    pub(super) fn take(&mut self, node: NodeUid, place: (SocketAddr, u32)) -> bool {
        if self.members.len() >= MAX_MEMBERS && !self.members.contains_key(&node) {
            return false;
        }
        self.is_changed |= self.members.insert(node, place) != Some(place);
        true
    }

    /// A node that has connected has to be told again.
    pub(super) fn connected(&mut self, node: NodeUid) {
        self.is_changed |= self.members.contains_key(&node);
    }

    pub(super) fn remove(&mut self, node: NodeUid) {
        self.is_changed |= self.members.remove(&node).is_some();
    }

    /// The name of the node's cell.
    pub(super) fn of(&self, node: NodeUid) -> Option<CellName> {
        self.members
            .contains_key(&node)
            .then(|| CellName::new("all"))
    }

    /// What all members have to be told, if that has changed since the last time.
    pub(super) fn take_change(&mut self) -> Option<(Vec<NodeUid>, wire::GossipCell)> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let peers = self.members.iter();
        let peers = peers.map(|(node, (address, generation))| wire::GossipPeer {
            node: node.to_string(),
            generation: *generation,
            address: address.to_string(),
        });
        let cell = wire::GossipCell {
            key: self.key.to_vec().into(),
            peers: peers.collect(),
        };
        Some((self.members.keys().copied().collect(), cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_of_changes_only_and_there_is_a_limit() {
        let mut cell = GossipCell::new(Zeroizing::new([1; 32]));
        let place = |port: u16| (SocketAddr::from(([10, 0, 0, 1], port)), 1);
        let node = |number: u16| {
            let mut uid = [0; 16];
            uid[..2].copy_from_slice(&number.to_be_bytes());
            NodeUid(uid)
        };
        assert!(cell.take_change().is_none());
        assert!(cell.take(node(1), place(1)));
        assert!(cell.take_change().is_some());
        assert!(cell.take(node(1), place(1)));
        assert!(cell.take_change().is_none(), "it is where it was");
        for number in 2..=500 {
            assert!(cell.take(node(number), place(number)));
        }
        assert!(!cell.take(node(501), place(501)));
        assert_eq!(
            (cell.of(node(501)), cell.of(node(1)).is_some()),
            (None, true)
        );
        let (told, wire) = cell.take_change().expect("a change");
        assert_eq!((told.len(), wire.peers.len()), (500, 500));
        cell.remove(node(7));
        assert!(cell.take(node(501), place(501)));
    }
}
