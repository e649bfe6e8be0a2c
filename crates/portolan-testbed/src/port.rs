//! Ports for programs that cannot choose their own.
//!
//! A port that the system chooses may be used for another connection before the program binds it, and then the
//! program does not start. These ports are below the range that the system uses for connections, and a process hands
//! out each port once.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;
/// Keeps processes that started one after the other apart.
const STRIDE: u32 = 97;

static HANDED_OUT: AtomicU32 = AtomicU32::new(0);

/// A port that nothing listens on.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let begin = std::process::id().wrapping_mul(STRIDE);
    let candidates = (0..COUNT).map(|_| {
        let number = HANDED_OUT.fetch_add(1, Ordering::Relaxed);
        (FIRST + begin.wrapping_add(number) % COUNT) as u16
    });
    let mut free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_handed_out_once_and_not_to_connections() {
        let ports: std::collections::HashSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| *port < 32_768));
    }
}
