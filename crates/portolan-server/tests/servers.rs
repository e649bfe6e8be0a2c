//! Three servers on three etcd members, under faults: histories of API writes are linearizable, nothing that was
//! acknowledged is lost, a watch that moves from server to server tells every change once, and exactly one server does
//! the work of the controllers.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests, and counts are to be seen"
)]

#[path = "servers/clients.rs"]
mod clients;
#[path = "servers/faults.rs"]
mod faults;
#[path = "servers/processes.rs"]
mod processes;

use clients::Clients;
use faults::{FAULTS, Fault};
use processes::Servers;

/// How often each kind of fault comes in `./test --long`.
const LONG_ROUNDS: usize = 10;
/// Which kinds come in `./test`; all of them come in `./test --long`.
const SHORT: [Fault; 5] = [
    Fault::KillOwner,
    Fault::PauseOwner,
    Fault::CutServerOff,
    Fault::AnswersAreLost,
    Fault::DiskIsFull,
];

fn is_long() -> bool {
    std::env::var_os("PORTOLAN_LONG").is_some()
}

#[test]
fn histories_are_linearizable_and_nothing_acknowledged_is_lost() {
    let (rounds, kinds) = if is_long() {
        (LONG_ROUNDS, FAULTS.to_vec())
    } else {
        (1, SHORT.to_vec())
    };
    let (count, all) = (rounds * kinds.len(), LONG_ROUNDS * FAULTS.len());
    eprintln!("faults with three servers: {count} of {all}");
    for _ in 0..rounds {
        // Each round has new disks: what a full one was filled with stays on it.
        let Some(mut servers) = Servers::start() else {
            return;
        };
        let clients = Clients::start(&servers);
        for fault in &kinds {
            let before = clients.acknowledged();
            fault.happen(&mut servers, &clients);
            clients.until_writable();
            let told = clients.acknowledged() - before;
            eprintln!("  {fault:?}: {told} writes acknowledged");
        }
        eprintln!(
            "  {}",
            clients.stop().check().expect("a history that can be")
        );
    }
}

/// The process of a server: this program, started again.
#[test]
fn server_process() {
    if let Ok(words) = std::env::var(processes::WORDS) {
        processes::serve(&words);
    }
}
