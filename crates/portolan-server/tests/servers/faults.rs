//! The faults: what is broken, for how long, and how it is mended.

use std::time::{Duration, Instant};

use portolan_server::FleetMethod;
use portolan_testbed::Place;
use serde_json::{Value, json};

use crate::clients::Clients;
use crate::processes::{COUNT, SOON, Servers};

/// A fault. The owner is the server that does the work of the controllers when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillOwner,
    KillOther,
    KillAll,
    /// The owner stands still until another server has taken over, then it goes on.
    PauseOwner,
    /// The owner and etcd do not reach each other.
    CutServerOff,
    /// What the owner sends to etcd is lost.
    RequestsAreLost,
    /// What etcd sends to the owner is lost.
    AnswersAreLost,
    KillEtcdMember,
    PauseEtcdMember,
    /// The disks of all etcd members are full.
    DiskIsFull,
}

/// All kinds.
pub(crate) const FAULTS: [Fault; 10] = [
    Fault::KillOwner,
    Fault::KillOther,
    Fault::KillAll,
    Fault::PauseOwner,
    Fault::CutServerOff,
    Fault::RequestsAreLost,
    Fault::AnswersAreLost,
    Fault::KillEtcdMember,
    Fault::PauseEtcdMember,
    Fault::DiskIsFull,
];

/// How long a fault lasts at least: longer than a call.
const LASTS: Duration = Duration::from_millis(3_500);
/// Objects of the namespace that the next owner has to empty.
const CONTENT: usize = 20;

impl Fault {
    /// Breaks something, waits until that was noticed, and mends it.
    pub(crate) fn happen(self, servers: &mut Servers, clients: &Clients) {
        let owner = until_owned(clients, None);
        let other = (owner + 1) % COUNT;
        match self {
            Self::KillOwner => {
                servers.kill(owner);
                taken_over(clients, owner, Instant::now());
                servers.restart(owner);
            }
            Self::KillOther => {
                servers.kill(other);
                std::thread::park_timeout(LASTS);
                servers.restart(other);
            }
            Self::KillAll => {
                (0..COUNT).for_each(|number| servers.kill(number));
                (0..COUNT).for_each(|number| servers.restart(number));
                until_owned(clients, None);
            }
            Self::PauseOwner => pause_owner(servers, clients, owner),
            Self::CutServerOff | Self::RequestsAreLost | Self::AnswersAreLost => {
                let guest = Place::Guest(owner);
                for number in 0..servers.cluster.len() {
                    let member = Place::Member(number);
                    if self != Self::AnswersAreLost {
                        servers.cluster.block(guest, member);
                    }
                    if self != Self::RequestsAreLost {
                        servers.cluster.block(member, guest);
                    }
                }
                taken_over(clients, owner, Instant::now());
                for number in 0..servers.cluster.len() {
                    servers.cluster.unblock(guest, Place::Member(number));
                }
            }
            Self::KillEtcdMember => {
                servers.cluster.kill(0);
                std::thread::park_timeout(LASTS);
                servers.cluster.restart(0);
            }
            Self::PauseEtcdMember => {
                servers.cluster.pause(0);
                std::thread::park_timeout(LASTS);
                servers.cluster.resume(0);
            }
            Self::DiskIsFull => fill_disks(servers, clients),
        }
    }
}

/// Waits until a server other than `but` does the work of the controllers.
fn until_owned(clients: &Clients, but: Option<usize>) -> usize {
    let start = Instant::now();
    loop {
        if let Some(owner) = clients.owner(but).filter(|owner| Some(*owner) != but) {
            return owner;
        }
        assert!(start.elapsed() < SOON, "nobody owns the shard");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn taken_over(clients: &Clients, owner: usize, since: Instant) {
    let next = until_owned(clients, Some(owner));
    eprintln!(
        "  server {next} took over from {owner} after {:.1} s",
        since.elapsed().as_secs_f64()
    );
}

/// The owner stands still in the middle of its work. Another one does that work; the first one goes on and must not notice
/// too late that it lost the shard: what the others created since stays as it is.
fn pause_owner(servers: &Servers, clients: &Clients, owner: usize) {
    let name = "paused";
    let object = |kind: &str, metadata: Value| json!({"apiVersion": "v1alpha", "kind": kind, "metadata": metadata, "spec": {}});
    let namespace = object("Namespace", json!({"name": name}));
    let path = format!("/api/v1alpha/namespaces/{name}");
    let collection = format!("{path}/variables");
    clients.insist(
        FleetMethod::Post,
        "/api/v1alpha/namespaces",
        Some(&namespace),
    );
    for number in 0..CONTENT {
        let variable = json!({
            "apiVersion": "v1alpha", "kind": "Variable",
            "metadata": {"name": format!("v{number}"), "namespace": name}, "spec": {"values": {"a": "b"}},
        });
        clients.insist(FleetMethod::Post, &collection, Some(&variable));
    }
    clients.insist(FleetMethod::Delete, &path, None);
    servers.signal(owner, "STOP");
    taken_over(clients, owner, Instant::now());
    let start = Instant::now();
    while clients.insist(FleetMethod::Get, &path, None)["status"] != 404 {
        assert!(start.elapsed() < SOON, "the namespace stays");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    servers.signal(owner, "CONT");
    let start = Instant::now();
    loop {
        let told = clients.request(owner, FleetMethod::Get, "/api/v1alpha/status", None);
        if told.is_ok_and(|told| told["controllers"]["hasLease"] == true) {
            break;
        }
        assert!(
            start.elapsed() < SOON,
            "the paused server does not come back"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Fills the disks, and writes until etcd cannot; then gives the room back.
fn fill_disks(servers: &mut Servers, clients: &Clients) {
    for number in 0..servers.cluster.len() {
        servers.cluster.fill_disk(number);
    }
    let text = "x".repeat(200 << 10);
    let start = Instant::now();
    for number in 0_u64.. {
        let variable = json!({
            "apiVersion": "v1alpha", "kind": "Variable",
            "metadata": {"name": format!("large-{number}"), "namespace": "system"}, "spec": {"values": {"a": text}},
        });
        let path = "/api/v1alpha/namespaces/system/variables";
        let answer = clients.request(0, FleetMethod::Post, path, Some(variable.to_string()));
        if let Err(error) = answer {
            eprintln!("  after {number} large objects: {error}");
            break;
        }
        assert!(start.elapsed() < SOON, "the disks do not fill");
    }
    for number in 0..servers.cluster.len() {
        servers.cluster.free_disk(number);
    }
    servers.cluster.restart_ended();
}
