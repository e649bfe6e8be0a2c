//! What Helm reads from an object before sorting: its kind, its name and its annotations.
//!
//! All of a document must be YAML, so all of it is read. Large documents are nearly always CRDs and are the same in
//! every render of a chart, so their heads are kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use portolan_yaml::Text;

use crate::package::decode::{Fields, read_yaml_text};

/// How deep what Helm reads of an object lies: `metadata.annotations`.
const HEAD_DEPTH: usize = 3;

/// Documents below this size are read faster than they are found again.
const LARGE: usize = 4096;

/// The most heads kept for a chart.
const MAX_KEPT: usize = 4096;

/// What Helm reads of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) annotations: Vec<(String, String)>,
}

/// Heads of large documents by length and hash of their text; the hash's key is random, so nobody can make two texts
/// meet.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    hasher: RandomState,
    kept: Mutex<HashMap<(usize, u64), Head>>,
}

impl Heads {
    /// Reads a document's head, or finds it from an earlier render.
    pub(crate) fn read(&self, text: &Text) -> Result<Head, String> {
        if text.len() < LARGE {
            return Head::read(text);
        }
        let key = (text.len(), self.hasher.hash_one(text.as_bytes()));
        // A thread that panicked can only have left fewer entries.
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = kept().get(&key) {
            return Ok(head.clone());
        }
        let head = Head::read(text)?;
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, head.clone());
        Ok(head)
    }
}

impl Head {
    fn read(text: &Text) -> Result<Self, String> {
        let node = match portolan_yaml::parse_head(text, HEAD_DEPTH) {
            Some(node) => node,
            None => read_yaml_text(text.clone())?,
        };
        let fields = Fields::of(&node, "releaseutil.SimpleHead")?;
        let mut head = Self {
            api_version: fields.text("apiVersion")?,
            kind: fields.text("kind")?,
            ..Self::default()
        };
        if let Some(metadata) = fields.structure("metadata", "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }")? {
            // Fields are read in the order of their names, and the first that is wrong is told of.
            head.annotations = metadata.text_map("annotations")?;
            head.name = metadata.text("name")?;
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_document_is_told_from_another_of_the_same_length() {
        let heads = Heads::default();
        let named = |name: &str| {
            let text = format!(
                "kind: A\nmetadata: {{name: {name}}}\n# {}",
                "x".repeat(LARGE)
            );
            heads.read(&Text::from(text)).unwrap().name
        };
        assert_eq!(named("a"), "a");
        assert_eq!(named("b"), "b");
        assert_eq!(named("a"), "a");
    }

    #[test]
    fn what_lies_deep_must_be_yaml_too() {
        let error = Head::read(&Text::from("spec: {a: {b: {c: {d: [}}}}}")).unwrap_err();
        assert!(error.contains("error converting YAML to JSON"), "{error}");
        let head = Head::read(&Text::from(
            "spec: {a: {b: {c: &x {d: 1}, e: *x}}}\nkind: K",
        ));
        assert_eq!(head.unwrap().kind, "K");
    }
}
