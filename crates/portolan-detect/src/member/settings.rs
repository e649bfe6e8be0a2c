//! How foca is set up, and why.

use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use foca::{Config, PeriodicParams};

use crate::seal::{MAX_PACKET_BYTES, SEAL_BYTES};

/// How often a member probes another one. With 75 bytes for a ping and as many for its answer this is 100 bytes a second
/// and member, and 137 with the headers of IP and UDP. Three members have found out about a crash after some 10 s, well
/// before the stream has been silent for long enough.
const PROBE_EVERY: Duration = Duration::from_millis(1_500);

/// How long foca keeps a suspect. Decisions do not wait for it: accusations are our own. Meanwhile the suspect is probed by
/// ever more members, and each of them is an independent accuser.
const SUSPICION: Duration = Duration::from_secs(30);

/// What a packet has around what foca writes: number and kind, and a mark in place of the receiver.
const HEAD_BYTES: usize = 9;

const fn at_least_one(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

const fn periodic(frequency: Duration, members: usize) -> PeriodicParams {
    PeriodicParams {
        frequency,
        num_members: at_least_one(members),
    }
}

/// The set-up for a cell of that size. A member that is degraded keeps suspects for twice as long.
pub(super) fn config(cell_size: usize, is_degraded: bool) -> Config {
    let patience = if is_degraded { 2 } else { 1 };
    Config {
        probe_period: PROBE_EVERY,
        probe_rtt: Duration::from_millis(500),
        num_indirect_probes: at_least_one(3),
        max_transmissions: transmissions(cell_size),
        suspect_to_down_after: SUSPICION * patience,
        // Long enough that nobody still talks about a member when it is forgotten.
        remove_down_after: Some(Duration::from_hours(6)),
        max_packet_size: at_least_one(MAX_PACKET_BYTES - SEAL_BYTES - HEAD_BYTES),
        notify_down_members: true,
        periodic_announce: Some(periodic(Duration::from_mins(5), 1)),
        periodic_announce_to_down_members: Some(periodic(Duration::from_mins(1), 1)),
        // Sent only while there is news.
        periodic_gossip: Some(periodic(Duration::from_millis(500), 3)),
    }
}

/// How often news is passed on: four times the number of digits of the cell's size, as memberlist does.
fn transmissions(cell_size: usize) -> NonZeroU8 {
    let digits = cell_size.max(1).ilog10() + 1;
    NonZeroU8::new((digits * 4) as u8).unwrap_or(NonZeroU8::MIN)
}
