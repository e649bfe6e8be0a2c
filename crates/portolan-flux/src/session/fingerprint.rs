//! A digest over everything that a unit's result depends on. Equal fingerprints mean the same unit.

mod fields;

use portolan_engine::FieldHasher;
use portolan_helm::values::Tree;
use portolan_object::Digest;
use portolan_yaml::{Node, Text, Value};

use crate::api::CommonMetadata;

/// Inputs hashed one after the other, field by field; with what a repository is made of besides.
#[derive(Clone)]
pub(crate) struct Fingerprint(FieldHasher);

impl Fingerprint {
    /// Begins a fingerprint of one kind of unit.
    pub(crate) fn of(kind: &str) -> Self {
        Self(FieldHasher::of(kind))
    }

    /// The digest of all that was added.
    pub(crate) fn finish(self) -> Digest {
        Digest(*self.0.finish().as_bytes())
    }

    /// Adds a value by its fields.
    pub(crate) fn add<T: portolan_engine::Fingerprint + ?Sized>(&mut self, value: &T) {
        self.0.add(value);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.0.add(text);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.add(&number);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.add(&flag);
    }

    pub(crate) fn digest(&mut self, digest: &Digest) {
        self.0.bytes(&digest.0);
    }

    /// A text that may be absent.
    pub(crate) fn optional(&mut self, text: Option<&Text>) {
        self.flag(text.is_some());
        self.text(text.map_or("", Text::as_str));
    }

    pub(crate) fn texts(&mut self, texts: &[Text]) {
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
    }

    pub(crate) fn metadata(&mut self, metadata: &CommonMetadata) {
        for pairs in [&metadata.labels, &metadata.annotations] {
            self.number(pairs.len() as u64);
            for (key, value) in pairs {
                self.text(key);
                self.text(value);
            }
        }
    }

    /// A tree that may be absent; where it stood in its file does not matter.
    pub(crate) fn node(&mut self, node: Option<&Node>) {
        let Some(node) = node else {
            return self.flag(false);
        };
        self.flag(true);
        match &node.value {
            Value::Scalar(scalar) => {
                self.text("scalar");
                self.number(scalar.tag as u64);
                self.number(scalar.style as u64);
                self.text(&scalar.text);
            }
            Value::List(list) => {
                self.text("list");
                self.number(list.len() as u64);
                list.iter().for_each(|item| self.node(Some(item)));
            }
            Value::Map(map) => {
                self.text("map");
                self.number(map.len() as u64);
                for entry in map {
                    self.text(entry.key.as_str());
                    self.node(Some(&entry.value));
                }
            }
        }
    }

    /// The values of a chart.
    pub(crate) fn tree(&mut self, tree: &Tree) {
        match tree {
            Tree::Null => self.text("null"),
            Tree::Bool(value) => {
                self.text("bool");
                self.flag(*value);
            }
            Tree::Int(value) => {
                self.text("int");
                self.bytes(&value.to_le_bytes());
            }
            Tree::Float(value) => {
                self.text("float");
                self.bytes(&value.to_le_bytes());
            }
            Tree::Text(text) => {
                self.text("text");
                self.text(text);
            }
            Tree::List(items) => {
                self.text("list");
                self.number(items.len() as u64);
                items.iter().for_each(|item| self.tree(item));
            }
            Tree::Table(table) => {
                self.text("table");
                self.number(table.len() as u64);
                for (key, value) in table.iter() {
                    self.text(key);
                    self.tree(value);
                }
            }
        }
    }
}
