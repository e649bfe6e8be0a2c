//! Which entries go into which layer.
//!
//! All files of one directory are in one layer. A rendezvous hash of the directory's path decides which one: a
//! changed file changes one layer, a new directory moves nothing else, and another number of layers moves as little
//! as possible.

use std::collections::{BTreeSet, HashMap};

use portolan_digest::{Digest, Hasher};

use crate::compression::Compression;
use crate::entry::{Entry, Node, ancestors};
use crate::key::Key;

/// The most layers that Docker takes.
pub const MAX_LAYERS: usize = 127;

/// The entries of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPlan {
    /// Names the layer by everything that decides its bytes.
    pub key: Digest,
    /// Positions in the list of entries, in its order; every directory above an entry is among them.
    pub entries: Vec<usize>,
}

/// What decides the bytes of a layer beside its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerOptions {
    /// How it is compressed.
    pub compression: Compression,
    /// The time of every file, in seconds since 1970.
    pub modified: u64,
}

/// Distributes entries, sorted by path, over at most `buckets` layers. Directories for which `is_there` says yes (those of
/// the base image) are left out.
pub fn plan_layers(
    entries: &[Entry],
    buckets: usize,
    options: &LayerOptions,
    is_there: impl Fn(&Entry) -> bool,
) -> Vec<LayerPlan> {
    let positions: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| (entry.path.as_str(), at))
        .collect();
    let mut chosen: HashMap<&str, usize> = HashMap::new();
    let mut layers = vec![BTreeSet::new(); buckets.clamp(1, MAX_LAYERS)];
    let skipped = |entry: &Entry| entry.node == Node::Directory && is_there(entry);
    for (at, entry) in entries.iter().enumerate() {
        if skipped(entry) {
            continue;
        }
        let directory = match entry.node {
            Node::Directory => &entry.path,
            _ => entry.directory(),
        };
        let count = layers.len();
        let bucket = *chosen
            .entry(directory)
            .or_insert_with(|| bucket(directory, count));
        layers[bucket].insert(at);
        for above in ancestors(&entry.path) {
            let Some(above) = positions.get(above) else {
                continue;
            };
            if !skipped(&entries[*above]) && !layers[bucket].insert(*above) {
                break;
            }
        }
    }
    let layers = layers.into_iter().filter(|layer| !layer.is_empty());
    layers
        .map(|layer| {
            let members: Vec<usize> = layer.into_iter().collect();
            LayerPlan {
                key: key(entries, &members, options),
                entries: members,
            }
        })
        .collect()
}

/// The bucket whose hash with the directory is the highest.
fn bucket(directory: &str, buckets: usize) -> usize {
    let weight = |bucket: usize| {
        let mut hasher = Hasher::default();
        hasher.update(&(bucket as u64).to_le_bytes());
        hasher.update(directory.as_bytes());
        hasher.finish_bytes()
    };
    (0..buckets)
        .max_by_key(|bucket| weight(*bucket))
        .unwrap_or(0)
}

fn key(entries: &[Entry], members: &[usize], options: &LayerOptions) -> Digest {
    let mut key = Key::new("layer");
    key.text(&options.compression.version());
    key.number(options.modified);
    key.number(members.len() as u64);
    for member in members {
        key.entry(&entries[*member]);
    }
    key.finish()
}
