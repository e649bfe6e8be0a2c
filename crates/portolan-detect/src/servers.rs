//! Where servers are, as peers say: for an agent whose server is gone.
//!
//! An address from a peer is a hint. The agent connects to it as to any other, and the server's certificate decides.

use crate::uid::NodeUid;

/// The most addresses that are remembered.
const MAX_SERVERS: usize = 16;

/// The most peers that are remembered for an address.
const MAX_INFORMANTS: usize = 16;

/// Addresses of servers, and who said them.
#[derive(Debug, Default)]
pub(crate) struct ServerHints(Vec<ServerHint>);

#[derive(Debug)]
struct ServerHint {
    endpoint: String,
    informants: Vec<NodeUid>,
}

impl ServerHints {
    /// Notes what a peer says; returns whether an address is new.
    pub(crate) fn note(&mut self, informant: NodeUid, endpoint: &str) -> bool {
        if let Some(hint) = self.0.iter_mut().find(|hint| hint.endpoint == endpoint) {
            if !hint.informants.contains(&informant) && hint.informants.len() < MAX_INFORMANTS {
                hint.informants.push(informant);
            }
            return false;
        }
        if self.0.len() >= MAX_SERVERS {
            // One that a single peer has said, if there is such a one: what many say is kept.
            let Some(weakest) = self.0.iter().position(|hint| hint.informants.len() < 2) else {
                return false;
            };
            self.0.remove(weakest);
        }
        self.0.push(ServerHint {
            endpoint: endpoint.to_owned(),
            informants: vec![informant],
        });
        true
    }

    /// The addresses, those that most peers have said first.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        let mut hints: Vec<&ServerHint> = self.0.iter().collect();
        hints.sort_by_key(|hint| (std::cmp::Reverse(hint.informants.len()), &hint.endpoint));
        hints.iter().map(|hint| hint.endpoint.clone()).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_peers_say_comes_first_and_one_peer_cannot_push_it_out() {
        let mut hints = ServerHints::default();
        for informant in 1..4 {
            hints.note(NodeUid([informant; 16]), "good:1");
        }
        for number in 0..100 {
            hints.note(NodeUid([9; 16]), &format!("bad:{number}"));
        }
        let endpoints = hints.endpoints();
        assert_eq!(endpoints.len(), MAX_SERVERS);
        assert_eq!(endpoints[0], "good:1");
    }
}
