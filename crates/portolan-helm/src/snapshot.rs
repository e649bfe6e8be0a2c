//! Objects exported from a cluster, for `lookup`.
//!
//! ```text
//! files of a directory ──documents, items of lists──▶ Snapshot ◀──lookup── a template
//! ```
//!
//! A lookup with a name gives the object or nothing; without a name it gives a list, as the API server does. An
//! object without a namespace is cluster-scoped and is found with any namespace.

use std::collections::BTreeMap;

use camino::Utf8Path;
use portolan_gotmpl::LookupQuery;
use portolan_vfs::{Vfs, VfsError};
use portolan_yaml::{Dialect, Node, Text};

use crate::engine::Lookup;
use crate::values::{Table, Tree};

/// How deep directories of a snapshot may lie in each other.
const MAX_DEPTH: usize = 32;

/// Objects by API version and kind, then by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    kinds: BTreeMap<(String, String), BTreeMap<(String, String), Tree>>,
}

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file or directory cannot be read.
    #[error("cannot read the snapshot")]
    File(#[from] VfsError),
    /// A file is no YAML.
    #[error("cannot read `{file}`: {reason}")]
    Yaml {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Directories lie in each other without end.
    #[error("`{0}` lies too deep")]
    TooDeep(String),
}

impl Snapshot {
    /// Reads every `.yaml`, `.yml` and `.json` file of a directory and the directories below it.
    pub fn load(vfs: &dyn Vfs, directory: &Utf8Path) -> Result<Self, SnapshotError> {
        let mut snapshot = Self::default();
        snapshot.read_directory(vfs, directory, 0)?;
        Ok(snapshot)
    }

    fn read_directory(
        &mut self,
        vfs: &dyn Vfs,
        directory: &Utf8Path,
        depth: usize,
    ) -> Result<(), SnapshotError> {
        if depth > MAX_DEPTH {
            return Err(SnapshotError::TooDeep(directory.to_string()));
        }
        for entry in vfs.list(directory)? {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                self.read_directory(vfs, &path, depth + 1)?;
            } else if matches!(path.extension(), Some("yaml" | "yml" | "json")) {
                self.read_file(path.as_str(), &vfs.read(&path)?)?;
            }
        }
        Ok(())
    }

    /// Adds the objects of a file's documents.
    pub fn read_file(&mut self, file: &str, content: &[u8]) -> Result<(), SnapshotError> {
        let documents = portolan_yaml::parse_bytes(content, Dialect::Helm);
        let documents = documents.map_err(|errors| SnapshotError::Yaml {
            file: file.to_owned(),
            reason: errors.first().to_string(),
        })?;
        for document in &documents {
            self.add(document);
        }
        Ok(())
    }

    /// Adds an object, or the items of a list; what is neither is left out.
    fn add(&mut self, node: &Node) {
        let text = |node: &Node, key: &str| {
            let found = node.get(key).and_then(Node::as_str);
            found.unwrap_or_default().to_owned()
        };
        let kind = text(node, "kind");
        if let Some(items) = node.get("items").and_then(Node::as_list)
            && kind.ends_with("List")
        {
            // Lists hold objects, never lists: one level is enough.
            for item in items.iter().filter(|item| item.get("items").is_none()) {
                self.add(item);
            }
            return;
        }
        let Some(metadata) = node.get("metadata") else {
            return;
        };
        let objects = self
            .kinds
            .entry((text(node, "apiVersion"), kind))
            .or_default();
        let key = (text(metadata, "namespace"), text(metadata, "name"));
        objects.insert(key, Tree::from_node(node));
    }
}

impl Lookup for Snapshot {
    fn lookup(&self, query: &LookupQuery<'_>) -> Option<Tree> {
        let kind = (query.api_version.to_owned(), query.kind.to_owned());
        let objects = self.kinds.get(&kind)?;
        let in_namespace = |namespace: &str| namespace.is_empty() || namespace == query.namespace;
        if !query.name.is_empty() {
            let mut named = objects
                .iter()
                .filter(|((namespace, name), _)| name == query.name && in_namespace(namespace));
            return named.next().map(|(_, object)| object.clone());
        }
        let everywhere = query.namespace.is_empty();
        let items = objects
            .iter()
            .filter(|((namespace, _), _)| everywhere || in_namespace(namespace))
            .map(|(_, object)| object.clone());
        Some(lookup_list(query, items.collect()))
    }
}

/// A list of objects as the API server answers it.
pub fn lookup_list(query: &LookupQuery<'_>, items: Vec<Tree>) -> Tree {
    let entries = [
        ("apiVersion", Tree::text(query.api_version)),
        ("kind", Tree::text(format!("{}List", query.kind))),
        ("metadata", Tree::empty_table()),
        ("items", Tree::List(items.into())),
    ];
    let table: Table = entries
        .into_iter()
        .map(|(key, value)| (Text::from_static(key), value))
        .collect();
    Tree::Table(table.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::default();
        let text = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: apps}, data: {k: dg==}}
- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: other}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: apps}}
";
        snapshot.read_file("all.yaml", text.as_bytes()).unwrap();
        snapshot
    }

    fn ask(kind: &str, namespace: &str, name: &str) -> Option<Tree> {
        snapshot().lookup(&LookupQuery {
            api_version: "v1",
            kind,
            namespace,
            name,
        })
    }

    #[test]
    fn an_object_is_found_in_its_namespace_only() {
        let secret = ask("Secret", "apps", "a").unwrap();
        assert_eq!(secret.at_path(&["data", "k"]), Some(&Tree::text("dg==")));
        assert_eq!(ask("Secret", "other", "a"), None);
        assert_eq!(ask("Secret", "", "a"), None);
        assert!(ask("Namespace", "", "apps").is_some());
    }

    #[test]
    fn no_name_gives_a_list() {
        let names =
            |namespace: &str| match ask("Secret", namespace, "").unwrap().at_path(&["items"]) {
                Some(Tree::List(items)) => items.len(),
                _ => 0,
            };
        assert_eq!(names("apps"), 1);
        assert_eq!(names(""), 2);
        assert_eq!(ask("Pod", "", ""), None);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_named() {
        let error = Snapshot::default().read_file("x.yaml", b"a: b: c");
        assert!(error.unwrap_err().to_string().contains("x.yaml"));
    }
}
