//! The rows of the built-in field specs.

use portolan_yaml::Text;

use super::FieldSpec;
use crate::resource::id::Gvk;

/// A field spec known when the program is built.
pub(super) struct Spec {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) path: &'static str,
    pub(super) create: bool,
}

/// A kind that can be referred to, and the fields that do.
pub(super) struct Reference {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) referrers: &'static [Spec],
}

impl Spec {
    pub(super) const fn field_spec(&self) -> FieldSpec {
        FieldSpec {
            gvk: Gvk {
                group: Text::from_static(self.group),
                version: Text::from_static(self.version),
                kind: Text::from_static(self.kind),
            },
            path: Text::from_static(self.path),
            create: self.create,
        }
    }
}

impl Reference {
    pub(super) const fn gvk(&self) -> Gvk {
        Gvk {
            group: Text::from_static(self.group),
            version: Text::from_static(self.version),
            kind: Text::from_static(self.kind),
        }
    }
}
