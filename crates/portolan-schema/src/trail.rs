//! The path of a value while the tree is walked: each level points at the one above, so that nothing is copied until a
//! violation needs the path.

use portolan_object::{FieldPath, FieldSegment};

/// A path as a chain of stack frames.
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
                    segments.push(FieldSegment::Key(key.into()));
                    *above
                }
                Self::Index(above, index) => {
                    segments.push(FieldSegment::Index(index));
                    *above
                }
            };
        }
        segments.into_iter().rev().collect()
    }
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
}
