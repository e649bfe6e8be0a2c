//! Who a member of a cell is: the uid of its node, the generation of its process, and where its packets go.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use foca::Identity;

use crate::uid::NodeUid;

/// A member of a cell.
///
/// A process has one generation at a time. It starts with one that is greater than all that its node had before, and takes
/// the next one when its peers have given it up: what they say about an older generation does not concern it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIdentity {
    /// The node.
    pub uid: NodeUid,
    /// The generation of its process.
    pub generation: u32,
    /// Its address as one of version 6: half of what [`SocketAddr`] takes, and a cell has many.
    ip: [u8; 16],
    port: u16,
}

impl PeerIdentity {
    /// The identity of a member whose packets go to `address`.
    pub fn new(uid: NodeUid, generation: u32, address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self {
            uid,
            generation,
            ip: ip.octets(),
            port: address.port(),
        }
    }

    /// Gives the bytes of all its parts.
    pub(crate) fn hash_parts(&self, mut hash: impl FnMut(&[u8])) {
        hash(&self.uid.0);
        hash(&self.generation.to_be_bytes());
        hash(&self.ip);
        hash(&self.port.to_be_bytes());
    }

    /// Where its packets go.
    pub fn address(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.ip);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        SocketAddr::new(ip, self.port)
    }
}

impl Identity for PeerIdentity {
    /// A node is one member, wherever it is: a restart with another address replaces it.
    type Addr = NodeUid;

    fn renew(&self) -> Option<Self> {
        let generation = self.generation.checked_add(1)?;
        Some(Self {
            generation,
            ..*self
        })
    }

    fn addr(&self) -> NodeUid {
        self.uid
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        (self.generation, self.ip, self.port) > (adversary.generation, adversary.ip, adversary.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_versions_come_out_as_they_went_in() {
        for text in ["10.1.2.3:7000", "[2001:db8::1]:7000", "127.0.0.1:1"] {
            let address: SocketAddr = text.parse().expect("an address");
            let peer = PeerIdentity::new(NodeUid([1; 16]), 1, address);
            assert_eq!(peer.address(), address);
        }
    }

    #[test]
    fn the_next_generation_replaces_the_last_one() {
        let address = "10.1.2.3:7000".parse().expect("an address");
        let old = PeerIdentity::new(NodeUid([1; 16]), 7, address);
        let new = old.renew().expect("there are more");
        assert!(new.win_addr_conflict(&old) && !old.win_addr_conflict(&new));
        let last = PeerIdentity::new(NodeUid([1; 16]), u32::MAX, address);
        assert_eq!(last.renew(), None);
    }
}
