//! Which nodes are there, with a real server and agents that gossip over UDP.

mod fleet_bed;
mod portolan;

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::wait_until;

/// One of four agents is stopped for a while, and another one is killed: the first is never called down, the second is, and
/// nothing is said of the others.
#[test]
fn a_killed_agent_is_down_and_a_stalled_one_is_not() {
    let mut fleet = Fleet::start();
    fleet.enrol("node-4");
    wait_until(|| fleet.state("node-4") == "ready");

    // Its peers miss it before its stream is silent for too long.
    fleet.signal_agent("node-3", "STOP");
    wait_until(|| matches!(fleet.state("node-3").as_str(), "suspect" | "link-lost"));
    fleet.signal_agent("node-3", "CONT");
    wait_until(|| fleet.state("node-3") == "ready");
    let tells = |node: &str, kind: &str| fleet.node_events(node).iter().any(|told| told == kind);
    wait_until(|| tells("node-3", "node.suspect"));
    assert!(!tells("node-3", "node.down"));

    fleet.kill_agent("node-4");
    wait_until(|| fleet.state("node-4") == "link-lost");
    wait_until(|| fleet.state("node-4") == "down");
    let lost = ["node.joined", "node.ready", "node.link-lost", "node.down"];
    wait_until(|| fleet.node_events("node-4") == lost);
    fleet.start_agent("node-4", None);
    wait_until(|| fleet.state("node-4") == "ready");
    for node in &NODES[..2] {
        assert_eq!(
            fleet.node_events(node),
            ["node.joined", "node.ready"],
            "{node}"
        );
    }

    // One that ends in good order has left; a server that starts anew has nothing to correct.
    fleet.signal_agent("node-4", "TERM");
    wait_until(|| fleet.state("node-4") == "left");
    fleet.restart_server();
    wait_until(|| fleet.state("node-1") == "ready");
    assert_eq!(fleet.state("node-4"), "left");
}
