//! A kind, and how it is found by name.

use portolan_object::NameRule;
use serde_json::Value;

use crate::fault::Faults;
use crate::kinds::KINDS;
use crate::rule::FieldRule;

/// Everything that is special to a kind.
pub struct KindDefinition {
    /// Its name, such as `NodeGroup`.
    pub name: &'static str,
    /// Its name in paths, such as `nodegroups`.
    pub plural: &'static str,
    /// Shorter names for the command line.
    pub short_names: &'static [&'static str],
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// The message of its spec.
    pub spec: &'static str,
    /// The message of its status, if it has one.
    pub status: Option<&'static str>,
    /// What names of its objects must be.
    pub names: NameRule,
    /// Defaults and validation of its spec.
    pub rules: &'static [FieldRule],
    /// What rules cannot say.
    pub(crate) check: fn(&Value, &mut Faults<'_>),
    /// The columns of its table, after the name.
    pub columns: &'static [Column],
    /// Fields that objects can be selected by, besides `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [&'static str],
}

impl std::fmt::Debug for KindDefinition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

impl PartialEq for KindDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A column of a table of objects.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its title, in capitals.
    pub title: &'static str,
    /// The field that it shows, as in `spec.ref`.
    pub path: &'static str,
    /// Whether only a wide table has it.
    pub is_wide: bool,
}

impl Column {
    /// A column of every table.
    pub(crate) const fn new(title: &'static str, path: &'static str) -> Self {
        Self {
            title,
            path,
            is_wide: false,
        }
    }

    /// A column of wide tables.
    pub(crate) const fn wide(title: &'static str, path: &'static str) -> Self {
        Self {
            title,
            path,
            is_wide: true,
        }
    }
}

impl KindDefinition {
    /// Whether objects can be selected by a field.
    pub fn is_selectable(&self, path: &str) -> bool {
        matches!(path, "metadata.name" | "metadata.namespace") || self.selectable.contains(&path)
    }
}

/// The kind of a name as users write it: `NodeGroup`, `nodegroup`, `nodegroups` or a short name, in any case.
pub fn find_kind(name: &str) -> Option<&'static KindDefinition> {
    let is_name = |kind: &&&KindDefinition| {
        let mut names = [kind.name, kind.plural]
            .into_iter()
            .chain(kind.short_names.iter().copied());
        names.any(|one| one.eq_ignore_ascii_case(name))
    };
    KINDS.iter().find(is_name).copied()
}

/// For kinds whose rules say everything.
pub(crate) fn nothing_more(_: &Value, _: &mut Faults<'_>) {}
