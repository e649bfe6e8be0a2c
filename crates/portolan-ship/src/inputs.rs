//! What an artifact is made of, line by line, and what of that changed since it was built last.
//!
//! A line is a name and a digest. Values never stand in it: some are secret, and all are long.

use std::collections::BTreeMap;

use portolan_digest::Digest;
use portolan_image::{Entry, Key, Scan};

/// How many changes are told by name.
const TOLD: usize = 5;

/// The inputs of an artifact, by name.
#[derive(Debug, Default)]
pub(crate) struct Inputs(BTreeMap<String, String>);

impl Inputs {
    /// Takes a setting in.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: &str) {
        self.0
            .insert(name.into(), short(&Digest::of(value.as_bytes())));
    }

    /// Takes a list in; none is not the same as an empty one.
    pub(crate) fn add_list(&mut self, name: impl Into<String>, list: Option<&[String]>) {
        let mut key = Key::new("list");
        key.number(u64::from(list.is_some()));
        let words = list.unwrap_or_default();
        key.texts(words.iter().map(String::as_str));
        self.0.insert(name.into(), short(&key.finish()));
    }

    /// Takes the files of an image in.
    pub(crate) fn add_entries(&mut self, entries: &[Entry]) {
        for entry in entries {
            let mut key = Key::new("entry");
            key.entry(entry);
            self.0
                .insert(format!("/{}", entry.path), short(&key.finish()));
        }
    }

    /// The key of what is made of these settings and of files with these digests.
    pub(crate) fn key<'a>(&self, files: impl Iterator<Item = &'a Scan>) -> Digest {
        let mut key = Key::new("artifact");
        key.text(&self.lines());
        for scan in files {
            key.text(&scan.digest().to_string());
        }
        key.finish()
    }

    /// One line for each.
    pub(crate) fn lines(&self) -> String {
        let mut lines = String::new();
        for (name, digest) in &self.0 {
            lines.push_str(digest);
            lines.push(' ');
            // A line break in a name must not look like the next line.
            lines.extend(name.escape_debug());
            lines.push('\n');
        }
        lines
    }

    /// The lines as they are kept for the next time, below the key that they were built under.
    pub(crate) fn kept(&self, key: &Digest) -> String {
        format!("{}\n{}", key.hex(), self.lines())
    }

    /// How many files and how many other inputs there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let files = self.0.keys().filter(|name| name.starts_with('/')).count();
        (files, self.0.len() - files)
    }

    /// What is different from the lines of the last time; the first few by name.
    pub(crate) fn changes_since(&self, last: Option<&str>) -> Vec<String> {
        self.first_changes_since(last, TOLD)
    }

    /// What is different from the lines of the last time; so many by name.
    pub(crate) fn first_changes_since(&self, last: Option<&str>, told: usize) -> Vec<String> {
        let Some(last) = last else {
            return vec!["it was never built here".to_owned()];
        };
        let lines = self.lines();
        let (old, new) = (read(last), read(&lines));
        let changed = new.iter().filter_map(|(name, digest)| match old.get(name) {
            None => Some(format!("{name} is new")),
            Some(before) if before != digest => Some(format!("{name} changed")),
            Some(_) => None,
        });
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        let mut changes: Vec<String> = changed
            .chain(gone.map(|name| format!("{name} is gone")))
            .collect();
        if changes.is_empty() {
            return vec!["what was built is no longer in the store".to_owned()];
        }
        let more = changes.len().saturating_sub(told);
        if more > 0 {
            changes.truncate(told);
            changes.push(format!("and {more} more"));
        }
        changes
    }
}

/// Whether the lines of the last time are those of a key.
pub(crate) fn is_of(last: Option<&str>, key: &Digest) -> bool {
    last.and_then(|last| last.lines().next()) == Some(&key.hex())
}

fn read(lines: &str) -> BTreeMap<&str, &str> {
    let lines = lines.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(digest, name)| (name, digest)).collect()
}

fn short(digest: &Digest) -> String {
    digest.hex().get(..32).unwrap_or_default().to_owned()
}
