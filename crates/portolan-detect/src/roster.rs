//! Who may speak in a cell: the members that the server has named, and a few that it has not named yet.

use std::collections::HashMap;
use std::sync::Arc;

use crate::peer::PeerIdentity;
use crate::uid::NodeUid;

/// Members that are heard before the server has named them: nodes that joined a moment ago.
const MAX_STRANGERS: usize = 64;

/// The most members that a roster names; more are not taken.
pub const MAX_ROSTER: usize = 4_096;

/// How far a generation may be ahead of the one that the server has named. A member takes the next one when its peers have
/// given it up, and reports it; one that is far ahead was invented.
const MAX_AHEAD: u32 = 10_000;

/// How many packets back a packet may arrive and still be taken.
const WINDOW: u32 = 64;

/// The members of a cell as the server names them: their uids, generations and addresses.
#[derive(Debug, Clone, Default)]
pub struct Roster(Arc<[PeerIdentity]>);

impl Roster {
    /// A roster of these members, at most [`MAX_ROSTER`] of them.
    pub fn new(mut peers: Vec<PeerIdentity>) -> Self {
        peers.sort_unstable();
        peers.dedup_by_key(|peer| peer.uid);
        peers.truncate(MAX_ROSTER);
        Self(peers.into())
    }

    /// What the server says of a node.
    pub fn get(&self, uid: NodeUid) -> Option<&PeerIdentity> {
        let at = self.0.binary_search_by_key(&uid, |peer| peer.uid).ok()?;
        self.0.get(at)
    }

    /// All members, in the order of their uids.
    pub fn peers(&self) -> &[PeerIdentity] {
        &self.0
    }
}

/// Decides which members are heard, and refuses packets that were heard before.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    pub(crate) roster: Roster,
    strangers: Vec<PeerIdentity>,
    /// Which packets of each member were heard. No more entries than admitted members.
    heard: HashMap<NodeUid, HeardPackets>,
}

#[derive(Debug, Clone, Copy)]
struct HeardPackets {
    generation: u32,
    newest: u32,
    /// Bit n: the packet n before the newest was heard.
    before: u64,
}

impl Admission {
    pub(crate) fn replace_roster(&mut self, roster: Roster) {
        self.roster = roster;
        self.strangers.clear();
        let roster = &self.roster;
        self.heard.retain(|uid, _| roster.get(*uid).is_some());
    }

    /// Whether a member may be heard of. The address of a member on the roster is the one that the server says: nobody can
    /// lead its peers astray.
    pub(crate) fn admits(&mut self, peer: &PeerIdentity) -> bool {
        if let Some(named) = self.roster.get(peer.uid) {
            return peer.address() == named.address()
                && peer.generation <= named.generation.saturating_add(MAX_AHEAD);
        }
        if let Some(known) = self.strangers.iter().find(|known| known.uid == peer.uid) {
            return known.address() == peer.address();
        }
        let has_room = self.strangers.len() < MAX_STRANGERS;
        if has_room {
            self.strangers.push(*peer);
        }
        has_room
    }

    /// Where a node is: as the server says, or as it said itself before the server named it.
    pub(crate) fn find(&self, node: NodeUid) -> Option<PeerIdentity> {
        let strangers = self.strangers.iter();
        let stranger = || strangers.clone().find(|peer| peer.uid == node);
        self.roster.get(node).or_else(stranger).copied()
    }

    /// The most members that can be admitted.
    pub(crate) fn most(&self) -> usize {
        self.roster.peers().len() + MAX_STRANGERS
    }

    /// Notes a packet of an admitted member; `false` if it was heard before, or is too old to tell. What an earlier
    /// generation says is for foca to judge: it ignores it, and tells a member that lives in the past.
    pub(crate) fn is_new(&mut self, sender: &PeerIdentity, number: u32) -> bool {
        let first = HeardPackets {
            generation: sender.generation,
            newest: number,
            before: 1,
        };
        let Some(heard) = self.heard.get_mut(&sender.uid) else {
            self.heard.insert(sender.uid, first);
            return true;
        };
        if sender.generation != heard.generation {
            if sender.generation > heard.generation {
                *heard = first;
            }
            return true;
        }
        if number > heard.newest {
            let ahead = number - heard.newest;
            heard.before = heard.before.checked_shl(ahead).unwrap_or(0) | 1;
            heard.newest = number;
            return true;
        }
        let back = heard.newest - number;
        let bit = 1_u64.checked_shl(back).unwrap_or(0);
        let is_new = back < WINDOW && heard.before & bit == 0;
        heard.before |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: u8, generation: u32, port: u16) -> PeerIdentity {
        let address = std::net::SocketAddr::from(([10, 0, 0, uid], port));
        PeerIdentity::new(NodeUid([uid; 16]), generation, address)
    }

    #[test]
    fn a_member_on_the_roster_has_the_address_that_the_server_says() {
        let mut admission = Admission::default();
        admission.replace_roster(Roster::new(vec![peer(1, 5, 7000)]));
        assert!(admission.admits(&peer(1, 5, 7000)));
        assert!(admission.admits(&peer(1, 6, 7000)), "it was renewed");
        assert!(!admission.admits(&peer(1, 6, 7001)), "somewhere else");
        assert!(!admission.admits(&peer(1, u32::MAX, 7000)), "invented");
    }

    #[test]
    fn invented_members_take_no_more_room_than_a_few() {
        let mut admission = Admission::default();
        admission.replace_roster(Roster::new(vec![peer(1, 5, 7000)]));
        let admitted = (2..=255).filter(|uid| admission.admits(&peer(*uid, 1, 7000)));
        assert_eq!(admitted.count(), MAX_STRANGERS);
        assert!(admission.admits(&peer(1, 5, 7000)), "those named have room");
    }

    #[test]
    fn a_packet_is_heard_once_in_any_order() {
        let mut admission = Admission::default();
        let sender = peer(1, 1, 7000);
        let numbers = [10, 12, 11, 12, 11, 10, 9, 80, 12, 17, 16, 80, 81];
        let heard = numbers.map(|number| admission.is_new(&sender, number));
        let expected = [
            true, true, true, false, false, false, true, true, false, true, false, false, true,
        ];
        assert_eq!(heard, expected);
        assert!(
            admission.is_new(&peer(1, 2, 7000), 1),
            "a new process counts anew"
        );
    }
}
