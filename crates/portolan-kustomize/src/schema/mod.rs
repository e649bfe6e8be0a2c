//! Which lists merge by which keys, and which types have no namespace.
//!
//! The built-in answers are those of the Kubernetes 1.21.2 document that kustomize 5.8 carries, compiled in. A build can
//! set a document of its own through `openapi.path`; the first one counts, and it replaces the built-in one unless that
//! was needed before.

mod builtin;
mod custom;
#[rustfmt::skip]
mod table;

use std::cell::{Cell, OnceCell};

use portolan_yaml::Node;

use custom::Custom;

/// The built-in schema's version, the only one that `openapi.version` may name.
pub(crate) const BUILTIN_VERSION: &str = "v1.21.2";

/// The schema of one build.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    custom: OnceCell<Custom>,
    /// Whether the built-in schema was asked before a custom one was set.
    is_builtin_used: Cell<bool>,
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
        match self.custom.get() {
            Some(custom) => custom.is_cluster_scoped(api_version, kind),
            None => false,
        }
    }

    /// Where objects of a type start.
    pub(crate) fn root(&self, api_version: &str, kind: &str) -> Option<Place> {
        let Some(custom) = self.custom.get() else {
            self.is_builtin_used.set(true);
            return builtin::root(api_version, kind).map(Place::Builtin);
        };
        if let Some(schema) = custom.root(api_version, kind) {
            return Some(Place::Custom(Box::new(schema)));
        }
        let builtin = self
            .is_builtin_used
            .get()
            .then(|| builtin::root(api_version, kind));
        builtin.flatten().map(Place::Builtin)
    }

    /// Where a field leads.
    pub(crate) fn field(&self, place: &Place, name: &str) -> Option<Place> {
        match place {
            Place::Builtin(node) => builtin::field(*node, name).map(Place::Builtin),
            Place::Custom(schema) => {
                let found = self.custom.get()?.field(schema, name)?;
                Some(Place::Custom(Box::new(found)))
            }
        }
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
                let element = self.custom.get()?.element(schema);
                Some(Merging {
                    keys,
                    element: element.map(|node| Place::Custom(Box::new(node))),
                })
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
