//! Keeps secrets out of a report: the values of Secrets, and the same values wherever they were copied.

use portolan_object::{FieldPath, FieldSegment, Gvk};
use portolan_secret::{SecretTexts, hide_values, holds_values, is_secret};
use portolan_yaml::{Node, Text};

use crate::field::{Difference, Field, Shown};
use crate::side::Batch;

/// Finds the secrets of both sides.
pub(crate) struct Mask(portolan_secret::Mask);

impl Mask {
    /// Collects the secrets of both sides.
    pub(crate) fn new<'a>(batches: impl Iterator<Item = &'a Batch>) -> Self {
        let mut texts = SecretTexts::default();
        for batch in batches {
            for object in batch.objects.iter() {
                texts.add_secret(object, batch.owner.kind);
            }
        }
        Self(portolan_secret::Mask::new(&texts))
    }

    /// Hides what is secret in a field of an object.
    pub(crate) fn hide(&self, gvk: &Gvk, field: &mut Field) {
        let is_secret = is_secret(gvk);
        let is_value = is_secret && leads_to_values(&field.path);
        let show = |shown: &Shown| match shown {
            Shown::Value(_) if is_value => Shown::Hidden,
            Shown::Value(node) if is_secret && field.path.is_root() => {
                let without_values = hide_values(node);
                Shown::Value(self.node(without_values.as_ref().unwrap_or(node)))
            }
            Shown::Value(node) => Shown::Value(self.node(node)),
            Shown::Hidden => Shown::Hidden,
        };
        field.difference = match &field.difference {
            Difference::Added(new) => Difference::Added(show(new)),
            Difference::Removed(old) => Difference::Removed(show(old)),
            Difference::Changed(old, new) => self.changed(show(old), show(new)),
            Difference::Reordered(old, new) => {
                let clean = |keys: &[Text]| keys.iter().map(|key| self.text(key)).collect();
                Difference::Reordered(clean(old), clean(new))
            }
        };
        field.path = self.path(&field.path);
    }

    /// Two values that look the same once cleaned differ in a secret alone.
    fn changed(&self, old: Shown, new: Shown) -> Difference {
        match (&old, &new) {
            (Shown::Value(a), Shown::Value(b)) if a == b && !self.0.is_empty() => {
                Difference::Changed(Shown::Hidden, Shown::Hidden)
            }
            _ => Difference::Changed(old, new),
        }
    }

    fn path(&self, path: &FieldPath) -> FieldPath {
        let steps = path.segments().iter().map(|segment| match segment {
            FieldSegment::Key(key) => FieldSegment::Key(self.text(key)),
            FieldSegment::Item(name) => FieldSegment::Item(self.text(name)),
            FieldSegment::Index(place) => FieldSegment::Index(*place),
        });
        steps.fold(FieldPath::root(), |path, segment| path.then(segment))
    }

    /// A text with the secrets in it hidden.
    pub(crate) fn text(&self, text: &Text) -> Text {
        Text::from(self.0.text(text).into_owned())
    }

    fn node(&self, node: &Node) -> Node {
        self.0.node(node).unwrap_or_else(|| node.clone())
    }
}

/// Whether a field of a Secret holds values.
fn leads_to_values(path: &FieldPath) -> bool {
    let keys = path.segments().iter().map(|segment| match segment {
        FieldSegment::Key(key) | FieldSegment::Item(key) => key.as_str(),
        FieldSegment::Index(_) => "",
    });
    holds_values(&keys.collect::<Vec<_>>())
}
