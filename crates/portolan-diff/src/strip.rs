//! Labels and annotations that change with every release of a chart and mean nothing.

use portolan_object::{FieldPath, FieldSegment};
use portolan_yaml::Text;

/// The labels and annotations that charts usually change without a meaning.
pub const COMMON_ATTRIBUTES: &[&str] = &[
    "app.kubernetes.io/version",
    "chart",
    "checksum/*",
    "helm.sh/chart",
];

/// Labels and annotations whose changes are left out, wherever in an object they stand.
#[derive(Debug, Clone, Default)]
pub struct StripAttributes(Vec<Text>);

impl StripAttributes {
    /// Leaves out [`COMMON_ATTRIBUTES`].
    pub fn common() -> Self {
        Self::new(["common"])
    }

    /// Leaves out these keys; one that ends in `*` stands for all that begin so, the word `common` for
    /// [`COMMON_ATTRIBUTES`].
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let expand = |key: &'a str| match key.trim() {
            "common" => COMMON_ATTRIBUTES.to_vec(),
            key => vec![key],
        };
        Self(keys.into_iter().flat_map(expand).map(Text::from).collect())
    }

    /// Whether a path is that of a label or annotation to be left out.
    pub(crate) fn covers(&self, path: &FieldPath) -> bool {
        let steps = path.segments().windows(3);
        steps.into_iter().any(|steps| match steps {
            [
                FieldSegment::Key(metadata),
                FieldSegment::Key(map),
                FieldSegment::Key(key),
            ] => {
                metadata == "metadata"
                    && (map == "labels" || map == "annotations")
                    && self.0.iter().any(|pattern| is_like(pattern, key))
            }
            _ => false,
        })
    }
}

fn is_like(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => key == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_annotations_are_covered_and_nothing_else() {
        let strip = StripAttributes::new(["common", "note"]);
        let path = |keys: &[&str]| {
            let keys = keys.iter().map(|key| FieldSegment::Key(Text::from(*key)));
            keys.fold(FieldPath::root(), |path, key| path.then(key))
        };
        assert!(strip.covers(&path(&["metadata", "labels", "helm.sh/chart"])));
        assert!(strip.covers(&path(&[
            "spec",
            "template",
            "metadata",
            "annotations",
            "note"
        ])));
        assert!(strip.covers(&path(&["metadata", "annotations", "checksum/secrets"])));
        assert!(!strip.covers(&path(&["spec", "selector", "matchLabels", "chart"])));
        assert!(!strip.covers(&path(&["metadata", "labels"])));
    }
}
