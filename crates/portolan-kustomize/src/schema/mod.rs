//! Which lists merge by which keys, and which types have no namespace.
//!
//! The built-in answers come from the Kubernetes 1.21.2 document in kustomize 5.8, compiled in. A build can set its
//! own document through `openapi.path`. The first such document is used. It replaces the built-in one, unless the
//! built-in one was needed before; then both are used, and which of them answers first depends on what the built-in
//! one was needed for.

mod builtin;
mod custom;
#[rustfmt::skip]
mod table;

use std::cell::{Cell, OnceCell};

use portolan_yaml::Node;

use custom::Custom;

/// The built-in schema's version, the only one that `openapi.version` may name.
pub(crate) const BUILTIN_VERSION: &str = "v1.21.2";

/// References that lead to references; more is a circle.
const MAX_REFERENCES: usize = 64;

/// What the built-in schema was needed for before a document was set; later needs are the document's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BuiltinUse {
    /// Nothing: it does not count beside a document.
    #[default]
    None,
    /// The scope of a type it does not know: kustomize reads it later, over the document.
    Scope,
    /// A merge: kustomize has read it, and reads the document over it.
    Merge,
}

/// The schema of one build.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    custom: OnceCell<Custom>,
    builtin_use: Cell<BuiltinUse>,
    /// Whether `openapi` said something already: later ones are ignored.
    is_decided: Cell<bool>,
}

/// A place in the schema.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A node of the built-in tables.
    Builtin(u16),
    /// A schema of the build's own document.
    Custom(Box<Node>),
}

/// How the items of a list find each other.
pub(crate) struct Merging {
    /// The keys; none for a list of plain values.
    pub(crate) keys: Vec<String>,
    pub(crate) element: Option<Place>,
}

impl Schema {
    /// Whether a document or version was set.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided.get()
    }

    /// Keeps to the built-in schema for the rest of the build.
    pub(crate) fn decide_builtin(&self) {
        self.is_decided.set(true);
    }

    /// Uses a document from now on; a second one is ignored.
    pub(crate) fn decide_custom(&self, document: &Node) {
        if !self.is_decided.replace(true) {
            self.custom.get_or_init(|| Custom::read(document));
        }
    }

    /// Whether the type is known to live outside of namespaces.
    pub(crate) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        if builtin::is_cluster_scoped(api_version, kind) {
            return true;
        }
        if let Some(custom) = self.custom.get() {
            return custom.is_cluster_scoped(api_version, kind);
        }
        if self.builtin_use.get() == BuiltinUse::None && builtin::root(api_version, kind).is_none()
        {
            self.builtin_use.set(BuiltinUse::Scope);
        }
        false
    }

    /// Where objects of a type start.
    pub(crate) fn root(&self, api_version: &str, kind: &str) -> Option<Place> {
        let builtin = || builtin::root(api_version, kind);
        let Some(custom) = self.custom.get() else {
            self.builtin_use.set(BuiltinUse::Merge);
            return builtin().map(Place::Builtin);
        };
        self.first(builtin, || custom.root(api_version, kind))
    }

    /// The answer that counts when both schemas may have one.
    fn first(
        &self,
        builtin: impl Fn() -> Option<u16>,
        custom: impl Fn() -> Option<Node>,
    ) -> Option<Place> {
        let builtin = || builtin().map(Place::Builtin);
        let custom = || custom().map(|schema| Place::Custom(Box::new(schema)));
        match self.builtin_use.get() {
            BuiltinUse::None => custom(),
            BuiltinUse::Scope => builtin().or_else(custom),
            BuiltinUse::Merge => custom().or_else(builtin),
        }
    }

    /// Where a field leads.
    pub(crate) fn field(&self, place: &Place, name: &str) -> Option<Place> {
        match place {
            Place::Builtin(node) => builtin::field(*node, name).map(Place::Builtin),
            Place::Custom(schema) => self.resolve(Custom::field(schema, name)?),
        }
    }

    /// The place that a comment describes; a reference that leads nowhere says nothing.
    pub(crate) fn remarked(&self, schema: &Node) -> Place {
        if self.custom.get().is_none() {
            self.builtin_use.set(BuiltinUse::Merge);
        }
        let place = self.resolve(schema);
        place.unwrap_or_else(|| Place::Custom(Box::new(schema.clone())))
    }

    /// Follows references until a schema says something itself.
    fn resolve(&self, schema: &Node) -> Option<Place> {
        let custom = |name: &str| self.custom.get()?.definition(name).cloned();
        let mut place = Place::Custom(Box::new(schema.clone()));
        for _ in 0..MAX_REFERENCES {
            let Place::Custom(schema) = &place else {
                return Some(place);
            };
            let Some(name) = Custom::reference(schema) else {
                return Some(place);
            };
            place = self.first(|| builtin::definition(name), || custom(name))?;
        }
        None
    }

    /// How a list merges; `None` when a patch replaces it.
    pub(crate) fn merging(&self, place: &Place) -> Option<Merging> {
        match place {
            Place::Builtin(node) => {
                let (keys, element) = builtin::list(*node)?;
                let keys = keys.iter().map(|key| (*key).to_owned()).collect();
                Some(Merging {
                    keys,
                    element: element.map(Place::Builtin),
                })
            }
            Place::Custom(schema) => {
                let keys = Custom::keys(schema)?;
                let element = Custom::element(schema).and_then(|items| self.resolve(items));
                Some(Merging { keys, element })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_merge_by_name_and_their_ports_by_two_keys() {
        let schema = Schema::default();
        let mut place = schema.root("apps/v1", "Deployment").unwrap();
        for name in ["spec", "template", "spec", "containers"] {
            place = schema.field(&place, name).unwrap();
        }
        let merging = schema.merging(&place).unwrap();
        assert_eq!(merging.keys, ["name"]);
        let ports = schema.field(&merging.element.unwrap(), "ports").unwrap();
        assert_eq!(
            schema.merging(&ports).unwrap().keys,
            ["containerPort", "protocol"]
        );
    }

    #[test]
    fn unknown_types_count_as_namespaced() {
        let schema = Schema::default();
        assert!(schema.is_cluster_scoped("v1", "Namespace"));
        assert!(!schema.is_cluster_scoped("example.com/v1", "Thing"));
    }
}
