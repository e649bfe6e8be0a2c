//! Three real etcd members under faults: every history is linearizable, nothing that was acknowledged is lost, a watch
//! tells every change once, and a paused owner cannot write after it resumes.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "helpers of tests; the owner tells its parent on stdout, and counts are to be seen"
)]

#[path = "etcd_faults/clients.rs"]
mod clients;
#[path = "etcd_faults/faults.rs"]
mod fault_kinds;
#[path = "etcd_faults/owner.rs"]
mod owner;

use std::sync::Arc;
use std::time::Duration;

use clients::Clients;
use fault_kinds::{FAULTS, Fault};
use portolan_store::Engine;
use portolan_store::etcd::{Etcd, EtcdOptions};
use portolan_testbed::EtcdCluster;
use tokio::runtime::Runtime;

/// How often each kind of fault comes in `./test --long`.
const LONG_ROUNDS: usize = 10;
/// Which kinds come in `./test`, by their number; all of them come in `./test --long`.
const SHORT: [usize; 6] = [0, 2, 4, 5, 7, 9];
/// Pauses of an owner.
const PAUSES: u32 = 2;
const LONG_PAUSES: u32 = 25;

fn is_long() -> bool {
    std::env::var_os("PORTOLAN_LONG").is_some()
}

/// A call is given up early, so that a test sees many of them during a fault.
fn options(urls: &[String]) -> EtcdOptions {
    EtcdOptions {
        call_timeout: Duration::from_millis(1_500),
        read_deadline: Duration::from_secs(6),
        ..EtcdOptions::new(urls)
    }
}

fn engine(urls: &[String]) -> Arc<Etcd> {
    Arc::new(Etcd::new(options(urls)).expect("usable options"))
}

/// Runs something in a thread that is among the clients of a cluster.
fn among_clients<T: Send>(cluster: &EtcdCluster, run: impl FnOnce(Runtime) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            cluster.enter();
            run(Runtime::new().expect("a runtime"))
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn histories_are_linearizable_and_nothing_acknowledged_is_lost() {
    let long = FAULTS.to_vec();
    let short = SHORT.map(|number| FAULTS[number]).to_vec();
    let (releases, rounds, faults): (&[&str], _, _) = if is_long() {
        (&["3.7", "3.6"], LONG_ROUNDS, long)
    } else {
        (&["3.7"], 1, short)
    };
    for release in releases {
        let (count, all) = (rounds * faults.len(), LONG_ROUNDS * FAULTS.len());
        eprintln!("faults on etcd {release}: {count} of {all}");
        for _ in 0..rounds {
            // Each round has new disks: what a full one was filled with stays on it.
            let Some(mut cluster) = EtcdCluster::start(release) else {
                return;
            };
            break_and_check(&mut cluster, &faults);
        }
    }
}

/// Clients write and read while one fault comes after the other.
fn break_and_check(cluster: &mut EtcdCluster, faults: &[Fault]) {
    let urls = cluster.urls();
    // The nemesis needs the cluster for itself, so the clients run in a thread that has entered it before.
    let (clients, runtime) = among_clients(cluster, |runtime| {
        let inside = runtime.enter();
        let clients = Clients::start(&urls);
        drop(inside);
        (clients, runtime)
    });
    for fault in faults {
        let before = clients.acknowledged();
        let leader = runtime.block_on(fault_kinds::leader(clients.admin()));
        fault.inject(cluster, leader);
        runtime.block_on(fault.last(&clients));
        fault.heal(cluster);
        runtime.block_on(clients.until_writable());
        let told = clients.acknowledged() - before;
        eprintln!("  {fault:?}, leader {leader}: {told} writes acknowledged");
    }
    let history = runtime.block_on(clients.stop());
    eprintln!("  {}", history.check().expect("a history that can be"));
}

#[test]
fn a_paused_owner_cannot_write_after_it_resumes() {
    let Some(cluster) = EtcdCluster::start("3.7") else {
        return;
    };
    let pauses = if is_long() { LONG_PAUSES } else { PAUSES };
    eprintln!("pauses of an owner: {pauses} of {LONG_PAUSES}");
    let urls = cluster.urls();
    among_clients(&cluster, |runtime| {
        let inside = runtime.enter();
        let engine: Arc<dyn Engine> = engine(&urls);
        drop(inside);
        for round in 0..pauses {
            owner::pause_one(&runtime, &engine, &urls, round);
        }
    });
}

/// The owner's process of the test above: this program, started again.
#[test]
fn owner_process() {
    if let Ok(urls) = std::env::var(owner::URLS) {
        let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
        owner::act(&urls);
    }
}
