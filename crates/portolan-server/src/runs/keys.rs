//! Where a run is in the store.
//!
//! ```text
//! /portolan/v1/run/<uuid>/book                    the text of the book and its files
//! /portolan/v1/run/<uuid>/plan                    what the run was made from
//! /portolan/v1/run/<uuid>/nodes/<segment>         64 nodes with their variables, as they were when the run was made
//! /portolan/v1/run/<uuid>/secrets                 secret inputs, encrypted; gone when the run ends
//! /portolan/v1/run/<uuid>/state                   how far the run is
//! /portolan/v1/run/<uuid>/segment/<segment>       how far 64 nodes are
//! /portolan/v1/run/<uuid>/log/<node>/<revision>-<number>   what a node reported
//! ```

use portolan_store::keys::ROOT;

/// How many nodes are in a segment.
pub(super) const SEGMENT_NODES: usize = 64;

/// The prefix of all runs.
pub(super) fn all() -> String {
    format!("{ROOT}run/")
}

/// The prefix of a run.
pub(super) fn run(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/")
}

/// The run that a key belongs to.
pub(super) fn uuid_of(key: &[u8]) -> Option<&str> {
    let key = std::str::from_utf8(key).ok()?;
    key.strip_prefix(ROOT)?
        .strip_prefix("run/")?
        .split('/')
        .next()
}

pub(super) fn book(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/book")
}

pub(super) fn plan(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/plan")
}

pub(super) fn nodes(uuid: &str, segment: usize) -> String {
    format!("{ROOT}run/{uuid}/nodes/{segment:06}")
}

pub(super) fn secrets(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/secrets")
}

pub(super) fn state(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/state")
}

pub(super) fn segment(uuid: &str, segment: usize) -> String {
    format!("{ROOT}run/{uuid}/segment/{segment:06}")
}

/// The prefix of what nodes reported: all of them, or one.
pub(super) fn logs(uuid: &str, node: Option<usize>) -> String {
    match node {
        None => format!("{ROOT}run/{uuid}/log/"),
        Some(node) => format!("{ROOT}run/{uuid}/log/{node:06}/"),
    }
}

/// An entry of a log: the revision at which its writer began, and how many it wrote before. No two writers share a key.
pub(super) fn log(uuid: &str, node: usize, revision: u64, number: u64) -> String {
    format!("{ROOT}run/{uuid}/log/{node:06}/{revision:016}-{number:08}")
}

/// The node of a key of a log.
pub(super) fn node_of_log(key: &[u8]) -> Option<usize> {
    let key = std::str::from_utf8(key).ok()?;
    let mut parts = key.rsplit('/');
    parts.next()?;
    parts.next()?.parse().ok()
}
