//! Where a run is in the store.
//!
//! ```text
//! /portolan/v1/run/<uuid>/book                    the text of the book and its files
//! /portolan/v1/run/<uuid>/plan                    what the run was made from
//! /portolan/v1/run/<uuid>/nodes/<segment>         64 nodes with their variables, as they were when the run was made
//! /portolan/v1/run/<uuid>/secrets                 secret inputs, encrypted; gone when the run ends
//! /portolan/v1/run/<uuid>/variables/<number>      secret variables of some nodes, encrypted; gone when the run ends
//! /portolan/v1/run/<uuid>/state                   how far the run is
//! /portolan/v1/run/<uuid>/segment/<segment>       how far 64 nodes are
//! /portolan/v1/run/<uuid>/log/<node>/<revision>-<number>   what a node reported
//! /portolan/v1/run/<uuid>/result/<step>/<node>    what a step gave to the other nodes
//! /portolan/v1/run/<uuid>/side/<id>               a step that a node takes by itself
//! /portolan/v1/runfile/<namespace>/<digest>/head  a file of books: how many parts it has
//! /portolan/v1/runfile/<namespace>/<digest>/part/<number>
//! ```

use portolan_digest::Digest;
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

/// The prefix of secret variables of a run.
pub(super) fn all_secret_variables(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/variables/")
}

pub(super) fn secret_variables(uuid: &str, number: usize) -> String {
    format!("{ROOT}run/{uuid}/variables/{number:06}")
}

pub(super) fn state(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/state")
}

pub(super) fn segment(uuid: &str, segment: usize) -> String {
    format!("{ROOT}run/{uuid}/segment/{segment:06}")
}

/// The prefix of what steps gave to other nodes.
pub(super) fn results(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/result/")
}

/// What a step gave on one node. The step is a digest: its name may be long.
pub(super) fn result(uuid: &str, step: &str, node: usize) -> String {
    let step = Digest::of(step.as_bytes()).hex();
    format!("{ROOT}run/{uuid}/result/{step}/{node:06}")
}

/// The prefix of steps that nodes take by themselves.
pub(super) fn sides(uuid: &str) -> String {
    format!("{ROOT}run/{uuid}/side/")
}

/// A step that a node takes by itself.
pub(super) fn side(uuid: &str, id: &str) -> String {
    let id = Digest::of(id.as_bytes()).hex();
    format!("{ROOT}run/{uuid}/side/{id}")
}

/// The prefix of all files of books.
pub(super) fn files() -> String {
    format!("{ROOT}runfile/")
}

/// The prefix of a file.
pub(super) fn file(namespace: &str, digest: &str) -> String {
    format!("{ROOT}runfile/{namespace}/{digest}/")
}

pub(super) fn file_head(namespace: &str, digest: &str) -> String {
    format!("{ROOT}runfile/{namespace}/{digest}/head")
}

pub(super) fn file_part(namespace: &str, digest: &str, part: u32) -> String {
    format!("{ROOT}runfile/{namespace}/{digest}/part/{part:06}")
}

/// The namespace and the digest of a file, by the key of its head.
pub(super) fn file_of(key: &[u8]) -> Option<(String, String)> {
    let key = std::str::from_utf8(key).ok()?.strip_prefix(&files())?;
    let (namespace, digest) = key.strip_suffix("/head")?.split_once('/')?;
    Some((namespace.to_owned(), digest.to_owned()))
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
