//! The entries of all copies as one tree.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::entry::{Entry, Node, ancestors};
use crate::notice::Notice;
use crate::scan::ScanError;

/// Sorts entries by path and leaves the last of each path; directories that nobody gave are added.
pub(super) fn merge(mut entries: Vec<Entry>) -> Result<Vec<Entry>, ScanError> {
    // The sort is stable: of equal paths, the one of the last copy is the last.
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut merged: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match merged.last_mut() {
            Some(last) if last.path == entry.path => {
                if is_directory(last) != is_directory(&entry) {
                    return Err(ScanError::Clash { path: entry.path });
                }
                *last = entry;
            }
            _ => merged.push(entry),
        }
    }
    with_parents(merged).map_err(|path| ScanError::Clash { path })
}

/// Adds directories that nobody gave to entries sorted by path; the error is a path that is both a directory and not.
pub(crate) fn with_parents(mut entries: Vec<Entry>) -> Result<Vec<Entry>, String> {
    let missing = missing_parents(&entries)?;
    if !missing.is_empty() {
        entries.extend(missing);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(entries)
}

fn is_directory(entry: &Entry) -> bool {
    entry.node == Node::Directory
}

fn missing_parents(entries: &[Entry]) -> Result<Vec<Entry>, String> {
    let mut known: HashMap<&str, bool> = entries
        .iter()
        .map(|entry| (entry.path.as_str(), is_directory(entry)))
        .collect();
    let mut missing = Vec::new();
    for entry in entries {
        for directory in ancestors(&entry.path) {
            match known.get(directory) {
                Some(true) => break,
                Some(false) => return Err(directory.to_owned()),
                None => {
                    known.insert(directory, true);
                    missing.push(Entry::parent(directory));
                }
            }
        }
    }
    Ok(missing)
}

/// Pairs of paths that differ in case only.
pub(super) fn equal_but_for_case(entries: &[Entry]) -> Vec<Notice> {
    let mut seen: HashMap<u64, usize> = HashMap::with_capacity(entries.len());
    let mut notices = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let folded = entry.path.to_lowercase();
        let mut hasher = DefaultHasher::new();
        folded.hash(&mut hasher);
        let Some(other) = seen.insert(hasher.finish(), at) else {
            continue;
        };
        let other = &entries[other];
        // Below directories that differ in case everything does; the directories alone are told.
        if other.path.to_lowercase() == folded && other.directory() == entry.directory() {
            notices.push(Notice::CaseEqual {
                first: other.path.clone(),
                second: entry.path.clone(),
            });
        }
    }
    notices
}
