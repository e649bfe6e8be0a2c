//! Where a value is in an object: `spec.template.spec.containers[0].image`.

use std::fmt;

/// The way from an object's root to one of its values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FieldPath {
    /// One step after another.
    pub segments: Vec<Segment>,
}

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// Into a map by its key.
    Key(String),
    /// Into a list by its index from 0.
    Index(usize),
}

/// A path while the tree is walked: each level points at the one above, so that nothing is copied until it is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trail<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl Trail<'_> {
    pub(crate) fn path(self) -> FieldPath {
        let mut segments = Vec::new();
        let mut trail = self;
        loop {
            trail = match trail {
                Self::Root => break,
                Self::Key(above, key) => {
                    segments.push(Segment::Key(key.to_owned()));
                    *above
                }
                Self::Index(above, index) => {
                    segments.push(Segment::Index(index));
                    *above
                }
            };
        }
        segments.reverse();
        FieldPath { segments }
    }
}

impl FieldPath {
    /// The path one key further down.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Segment::Key(key.to_owned()))
    }

    /// The path of an item.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Segment::Index(index))
    }

    fn then(&self, segment: Segment) -> Self {
        let mut segments = self.segments.clone();
        segments.push(segment);
        Self { segments }
    }

    /// Reads what [`fmt::Display`] prints, as far as keys without dots and brackets go.
    pub fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let mut rest = part.split('[');
            let key = rest.next().unwrap_or_default();
            if !key.is_empty() {
                segments.push(Segment::Key(key.to_owned()));
            }
            for inner in rest {
                let inner = inner.trim_end_matches(']');
                segments.push(match inner.parse() {
                    Ok(index) => Segment::Index(index),
                    Err(_) => Segment::Key(inner.trim_matches('"').to_owned()),
                });
            }
        }
        Self { segments }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if is_plain(key) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(f, "{dot}{key}")?;
                }
                Segment::Key(key) => write!(f, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    !key.is_empty() && key.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_becomes_the_path_people_write() {
        let root = Trail::Root;
        let metadata = Trail::Key(&root, "metadata");
        let annotations = Trail::Key(&metadata, "annotations");
        let key = Trail::Key(&annotations, "example.com/team");
        assert_eq!(
            key.path().to_string(),
            r#"metadata.annotations["example.com/team"]"#
        );
        let spec = Trail::Key(&root, "ports");
        assert_eq!(Trail::Index(&spec, 2).path().to_string(), "ports[2]");
    }

    #[test]
    fn a_printed_path_reads_back() {
        let path = FieldPath::parse("spec.containers[0].image");
        assert_eq!(path.to_string(), "spec.containers[0].image");
        assert_eq!(path.segments.len(), 4);
    }
}
