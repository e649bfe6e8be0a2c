//! The order in which variables are computed, or the circle that keeps them from having one.

use std::collections::{BTreeMap, BTreeSet};

/// What each variable reads.
type Reads<'g> = BTreeMap<&'g String, &'g BTreeSet<String>>;

/// The order in which every variable comes after those that it reads, or the names of a circle.
pub(super) fn order_of(reads: &Reads<'_>) -> Result<Vec<String>, Vec<String>> {
    let mut left: BTreeMap<&String, usize> = reads
        .iter()
        .map(|(name, reads)| (*name, reads.len()))
        .collect();
    let mut readers: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (name, reads) in reads {
        for read in *reads {
            readers.entry(read).or_default().push(name);
        }
    }
    let mut ready: BTreeSet<&String> = left
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    let mut order = Vec::new();
    while let Some(name) = ready.pop_first() {
        left.remove(name);
        order.push(name.clone());
        for reader in readers.get(name).into_iter().flatten() {
            if let Some(count) = left.get_mut(reader) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(reader);
                }
            }
        }
    }
    match left.keys().next() {
        None => Ok(order),
        Some(first) => Err(circle(reads, &left, first)),
    }
}

/// A circle among variables that are left: each of them reads another one that is left.
fn circle(reads: &Reads<'_>, left: &BTreeMap<&String, usize>, start: &str) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut at = start.to_owned();
    loop {
        if let Some(begin) = path.iter().position(|known| *known == at) {
            let mut circle = path.split_off(begin);
            circle.push(at);
            return circle;
        }
        let mut read = reads.get(&at).into_iter().flat_map(|reads| reads.iter());
        let next = read.find(|read| left.contains_key(*read)).cloned();
        path.push(at);
        match next {
            Some(next) => at = next,
            None => return path,
        }
    }
}
