//! Packets that members of a cell send to one another.

use std::time::Duration;

use portolan_detect::FuzzedCell;

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "gossip-opened",
        about: "what is inside a packet that was sealed with the key of the cell",
        run: |bytes| FuzzedCell::new().takes_opened(bytes),
        seeds: || FuzzedCell::new().opened_packets(Duration::from_mins(1)),
    },
    Target {
        name: "gossip-sealed",
        about: "a packet from anybody",
        run: |bytes| FuzzedCell::new().takes_sealed(bytes),
        seeds: || FuzzedCell::new().sealed_packets(Duration::from_mins(1)),
    },
];
