//! A digest over fields that cannot be confused with each other.
//!
//! Every field is written as its tag, its length and its bytes, so no two lists of fields give the same bytes. When
//! this format or the set of fields changes, [`VERSION`] must change, and with it every key.

use portolan_digest::{Digest, Hasher};

use crate::entry::{Entry, Node};

/// The version of what keys are made of.
pub(crate) const VERSION: &str = "portolan-image/1";

/// Collects fields and gives their digest.
#[derive(Debug, Clone)]
pub struct Key {
    hasher: Hasher,
}

impl Key {
    /// Begins a key of some kind; kinds never give equal keys.
    pub fn new(kind: &str) -> Self {
        let mut key = Self {
            hasher: Hasher::default(),
        };
        key.text(VERSION);
        key.text(kind);
        key
    }

    /// Adds bytes.
    pub fn bytes(&mut self, tag: u8, bytes: &[u8]) -> &mut Self {
        self.hasher.update(&[tag]);
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
        self
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(b't', text.as_bytes())
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(b'n', &number.to_le_bytes())
    }

    /// Adds a list of texts, its length first.
    pub fn texts<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) -> &mut Self {
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
        self
    }

    /// Adds an entry: its path in the image and what is there, but not where it comes from.
    pub fn entry(&mut self, entry: &Entry) -> &mut Self {
        self.text(&entry.path);
        self.number(u64::from(entry.mode));
        self.number(u64::from(entry.owner.user));
        self.number(u64::from(entry.owner.group));
        match &entry.capability {
            Some(capability) => self.bytes(b'c', capability),
            None => self.bytes(b'-', &[]),
        };
        match &entry.node {
            Node::Directory => self.bytes(b'd', &[]),
            Node::File { size, content, .. } => self.number(*size).bytes(b'f', content),
            Node::Link(target) => self.bytes(b'l', target.as_bytes()),
        }
    }

    /// The digest of all fields.
    pub fn finish(self) -> Digest {
        self.hasher.finish()
    }
}
