//! Runs over ten nodes while networks, processes, clocks and disks fail: three servers, three etcd members, ten agents.
//!
//! Whatever fails, a run ends: work that must not be done twice is done at most once, a node that is called changed has
//! everything, and where nobody can know what became of a step the run says so for exactly that node.
#![expect(clippy::print_stderr, reason = "counts are to be seen")]

mod fleet_net;
mod portolan;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use portolan_testbed::{Place, has_program};
use serde_json::Value;

use crate::fleet_net::{AGENTS, AgentStart, Network, SERVERS, node, until};
use crate::portolan::wait_for;

/// The node that faults of nodes happen to.
const VICTIM: usize = 4;

const BOOK: &str = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: faults}
spec:
  target: {group: all}
  maxFailures: 100%
  unreachable: {wait: 10m}
  steps:
  - {name: work, command: {shell: 'echo x >> once; while [ ! -e go ]; do sleep 0.1; done'}}
  - {name: config, file: {path: /srv/config, content: 'v1'}, notify: [handle]}
  handlers:
  - {name: handle, command: {shell: 'echo h >> handled'}}
";

/// What fails while all nodes are at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A node and the servers do not reach each other.
    CutNodeOff,
    /// What a node sends is lost.
    RequestsAreLost,
    /// What servers send to a node is lost.
    AnswersAreLost,
    /// The agent of a node is killed; its command goes on.
    KillAgent,
    /// A node loses its power, and comes back.
    KillNode,
    /// An agent stands still until its link counts as lost.
    PauseAgent,
    /// The clock of a node jumps by days, forth and back.
    ClockJumps,
    /// Every write of a node's journal takes long.
    DiskIsSlow,
    /// The disk with a node's journal is full.
    DiskIsFull,
    /// The server that looks after the run is killed.
    KillOwner,
    /// It stands still until another one has taken over.
    PauseOwner,
    /// It does not reach etcd.
    CutOwnerOff,
    KillAllServers,
    KillEtcdMember,
}

/// The first ones are tried in every test run.
const FAULTS: [Fault; 14] = [
    Fault::KillNode,
    Fault::KillOwner,
    Fault::AnswersAreLost,
    Fault::DiskIsFull,
    Fault::CutNodeOff,
    Fault::RequestsAreLost,
    Fault::KillAgent,
    Fault::PauseAgent,
    Fault::ClockJumps,
    Fault::DiskIsSlow,
    Fault::PauseOwner,
    Fault::CutOwnerOff,
    Fault::KillAllServers,
    Fault::KillEtcdMember,
];
const IN_EVERY_RUN: usize = 4;

#[test]
fn runs_end_and_say_what_is_unknown_whatever_fails() {
    let Some(mut network) = Network::start() else {
        return;
    };
    let count = match std::env::var_os("PORTOLAN_LONG") {
        Some(_) => FAULTS.len(),
        None => IN_EVERY_RUN,
    };
    let book = network.write("book.yaml", BOOK);
    for fault in FAULTS.into_iter().take(count) {
        if fault == Fault::ClockJumps && !has_program("faketime", "--version") {
            continue;
        }
        let began = Instant::now();
        try_fault(fault, &mut network, &book);
        eprintln!("{fault:?}: {:.1} s", began.elapsed().as_secs_f64());
    }
    eprintln!("faults of a fleet: {count} of {}", FAULTS.len());
}

fn try_fault(fault: Fault, network: &mut Network, book: &str) {
    for number in 0..AGENTS {
        for file in ["once", "go", "handled", "srv/config"] {
            let _ = fs::remove_file(network.root(number).join(file));
        }
    }
    let owner = network.owner(None);
    // Whoever asks is at a server that goes on, if there is one.
    let asked = (owner + 1) % SERVERS;
    let mut disturbance = before(fault, network);
    let running = network.spawn(asked, &["run", "-f", book, "-o", "json"]);
    for number in 0..AGENTS {
        until("work on all nodes", || {
            network.read(number, "once") == "x\n"
        });
    }
    happen(fault, network, owner, asked);
    for number in 0..AGENTS {
        fs::write(network.root(number).join("go"), "").expect("written");
    }
    if fault == Fault::DiskIsFull {
        // The step has ended, and nobody could write that down.
        std::thread::park_timeout(std::time::Duration::from_secs(2));
        network.free_disk(VICTIM);
    }
    let states = judge(fault, network, running);
    eprintln!("  {}", states.join(" "));
    if let Some(child) = disturbance.as_mut() {
        let _ = child.kill();
        let _ = child.wait();
    }
    if fault == Fault::ClockJumps {
        network.kill_agent(VICTIM);
    }
    network.start_agent(VICTIM, AgentStart::Plain);
    network.until_all_ready();
}

/// What has to be in place before the run.
fn before(fault: Fault, network: &mut Network) -> Option<Child> {
    match fault {
        Fault::ClockJumps => {
            network.kill_agent(VICTIM);
            network.set_clock(VICTIM, "+0");
            network.start_agent(VICTIM, AgentStart::FakeClock);
            until("the agent to be back", || {
                network.state(0, VICTIM) == "ready"
            });
            None
        }
        Fault::DiskIsSlow => {
            let agent = network.agent_id(VICTIM).to_string();
            let slow = "inject=fsync,fdatasync:delay_exit=300ms";
            let child = Command::new("strace")
                .args([
                    "-f",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "trace=fsync,fdatasync",
                    "-e",
                    slow,
                    "-p",
                    &agent,
                ])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            Some(child.expect("strace is installed"))
        }
        _ => None,
    }
}

/// Breaks something, waits until that was noticed, and mends it.
fn happen(fault: Fault, network: &mut Network, owner: usize, asked: usize) {
    let is_lost = |network: &Network| {
        let state = network.state(asked, VICTIM);
        state == "link-lost" || state == "down"
    };
    match fault {
        Fault::CutNodeOff | Fault::RequestsAreLost | Fault::AnswersAreLost => {
            network.cut(
                VICTIM,
                fault != Fault::AnswersAreLost,
                fault != Fault::RequestsAreLost,
            );
            until("a lost link", || is_lost(network));
            network.mend(VICTIM);
        }
        Fault::KillAgent => {
            network.kill_agent(VICTIM);
            until("a lost link", || is_lost(network));
            network.start_agent(VICTIM, AgentStart::Plain);
        }
        Fault::KillNode => {
            network.kill_node(VICTIM);
            until("a lost link", || is_lost(network));
            network.start_agent(VICTIM, AgentStart::Plain);
        }
        Fault::PauseAgent => {
            network.signal_agent(VICTIM, "STOP");
            until("a lost link", || is_lost(network));
            network.signal_agent(VICTIM, "CONT");
        }
        Fault::ClockJumps => {
            for offset in ["+2d", "-1d", "+0"] {
                network.set_clock(VICTIM, offset);
                std::thread::park_timeout(std::time::Duration::from_secs(2));
            }
        }
        Fault::DiskIsSlow => {}
        Fault::DiskIsFull => network.fill_disk(VICTIM),
        Fault::KillOwner => {
            network.kill_server(owner);
            network.owner(Some(owner));
            network.start_server(owner);
        }
        Fault::PauseOwner => {
            network.signal_server(owner, "STOP");
            network.owner(Some(owner));
            network.signal_server(owner, "CONT");
        }
        Fault::CutOwnerOff => {
            let (server, members) = (Place::Guest(owner), network.cluster.len());
            for member in (0..members).map(Place::Member) {
                network.cluster.block(server, member);
                network.cluster.block(member, server);
            }
            network.owner(Some(owner));
            for member in (0..members).map(Place::Member) {
                network.cluster.unblock(server, member);
            }
            network.start_server(owner);
        }
        Fault::KillAllServers => {
            (0..SERVERS).for_each(|number| network.kill_server(number));
            (0..SERVERS).for_each(|number| network.start_server(number));
            network.owner(None);
        }
        Fault::KillEtcdMember => {
            network.cluster.kill(0);
            network.owner(None);
            network.cluster.restart(0);
        }
    }
}

/// Waits for the end of the run, and compares what it says with what happened on the nodes.
fn judge(fault: Fault, network: &Network, running: Child) -> Vec<String> {
    let answer = wait_for(running);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let nodes = report["nodes"].as_array();
    let nodes = nodes.unwrap_or_else(|| unreachable!("{fault:?}: no report: {answer}"));
    assert_eq!(nodes.len(), AGENTS, "{fault:?}: {report:#}");
    let mut states = Vec::new();
    for number in 0..AGENTS {
        let told = nodes
            .iter()
            .find(|told| told["name"] == node(number).as_str());
        let told = told.unwrap_or_else(|| unreachable!("{fault:?}: nothing of node {number}"));
        let state = told["state"].as_str().unwrap_or_default();
        states.push(state.to_owned());
        assert_eq!(
            network.read(number, "once"),
            "x\n",
            "{fault:?}: node {number} did it twice"
        );
        if state == "changed" {
            assert_eq!(
                network.read(number, "srv/config"),
                "v1",
                "{fault:?}: node {number}"
            );
            assert_eq!(
                network.read(number, "handled"),
                "h\n",
                "{fault:?}: node {number}"
            );
            continue;
        }
        // Only the node that something happened to may have another end, and it says which step and why.
        let may_differ = [Fault::KillNode, Fault::DiskIsFull].contains(&fault);
        assert!(
            may_differ && number == VICTIM,
            "{fault:?}: node {number} is {state}: {told:#}"
        );
        assert!(["unknown", "failed"].contains(&state), "{fault:?}: {state}");
        let steps = told["steps"].as_array().into_iter().flatten();
        let said = steps.filter(|step| {
            ["unknown", "failed"].contains(&step["state"].as_str().unwrap_or_default())
        });
        let said: Vec<&str> = said
            .filter_map(|step| step["error"]["message"].as_str())
            .collect();
        assert!(
            !said.is_empty() && !said[0].is_empty(),
            "{fault:?}: {told:#}"
        );
    }
    // The command was lost with the power: nobody knows how far it came.
    if fault == Fault::KillNode {
        assert_eq!(states[VICTIM], "unknown", "{report:#}");
    }
    let is_well = states.iter().all(|state| state == "changed");
    assert_eq!(answer.code, i32::from(!is_well), "{fault:?}: {answer}");
    states
}
