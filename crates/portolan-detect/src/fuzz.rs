//! Two members for tests that send one of them any bytes.

use std::net::SocketAddr;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::member::GossipMember;
use crate::peer::PeerIdentity;
use crate::roster::Roster;
use crate::seal::{CellKey, CellKeys};
use crate::uid::NodeUid;

/// A cell of two members, always the same.
pub struct FuzzedCell {
    members: [GossipMember; 2],
    keys: CellKeys,
}

impl FuzzedCell {
    /// Two members that know one another, one of which has lost its server.
    #[expect(
        clippy::new_without_default,
        reason = "it has no default state, it is one of many possible cells"
    )]
    pub fn new() -> Self {
        let keys = CellKeys::one(CellKey::new(&Zeroizing::new([1; 32])));
        let identity = |node: u8| {
            let address = SocketAddr::from(([10, 0, 0, node], 7946));
            PeerIdentity::new(NodeUid([node; 16]), 1, address)
        };
        let roster = Roster::new(vec![identity(0), identity(1)]);
        let members = [0, 1].map(|node| {
            let mut member =
                GossipMember::new(identity(node), keys.clone(), [node; 32], Duration::ZERO);
            member.set_roster(Duration::ZERO, &roster, &mut |_, _| {});
            member
        });
        let mut cell = Self { members, keys };
        cell.members[0].find_servers(Duration::ZERO);
        cell.members[1].set_server(Some("fleet.example:8443"));
        cell
    }

    /// Gives the first member some bytes; returns whether it took them for a packet.
    pub fn takes_sealed(&mut self, bytes: &[u8]) -> bool {
        let [member, _] = &mut self.members;
        member.handle_packet(Duration::from_secs(1), bytes, &mut |_, _| {});
        member.poll(Duration::from_secs(2), &mut |_, _| {});
        let counters = member.counters();
        let dropped = counters.forged + counters.malformed + counters.misdirected;
        dropped + counters.other_cell + counters.strangers + counters.replayed == 0
    }

    /// The same with bytes that it finds in a packet which was sealed with the key of the cell.
    pub fn takes_opened(&mut self, bytes: &[u8]) -> bool {
        let mut packet = Vec::new();
        self.keys.seal(&mut rand::rng(), bytes, &mut packet);
        self.takes_sealed(&packet)
    }

    /// What the second member sends to the first one.
    pub fn sealed_packets(mut self, time: Duration) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        let mut now = Duration::ZERO;
        while now < time {
            now += Duration::from_millis(100);
            let [first, second] = &mut self.members;
            let mut questions = Vec::new();
            first.poll(now, &mut |_, packet| questions.push(packet.to_vec()));
            let mut send = |_: SocketAddr, packet: &[u8]| sent.push(packet.to_vec());
            for question in questions {
                second.handle_packet(now, &question, &mut send);
            }
            second.poll(now, &mut send);
        }
        sent.truncate(64);
        sent
    }

    /// What is inside of these packets.
    pub fn opened_packets(self, time: Duration) -> Vec<Vec<u8>> {
        let keys = self.keys.clone();
        let opened = self.sealed_packets(time).into_iter().filter_map(|packet| {
            let mut plain = Vec::new();
            keys.open(&packet, &mut plain).ok().map(|()| plain)
        });
        opened.collect()
    }
}
