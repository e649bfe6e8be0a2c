//! A schema given by the `openapi` field: the same interface, with answers from a document.

use std::collections::HashMap;

use portolan_yaml::Node;

/// Types and scopes read from an `OpenAPI` v2 document.
#[derive(Debug, Default)]
pub(super) struct Custom {
    definitions: HashMap<String, Node>,
    kinds: HashMap<(String, String), Node>,
    /// Whether a type lives in namespaces.
    scopes: HashMap<(String, String), bool>,
}

const REFERENCE: &str = "#/definitions/";

impl Custom {
    pub(super) fn read(document: &Node) -> Self {
        let mut custom = Self::default();
        for entry in document
            .get("definitions")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
        {
            let definition = &entry.value;
            for gvk in definition
                .get("x-kubernetes-group-version-kind")
                .and_then(Node::as_list)
                .into_iter()
                .flatten()
            {
                if let Some(key) = type_meta(gvk) {
                    custom.kinds.insert(key, definition.clone());
                }
            }
            custom
                .definitions
                .insert(entry.key.as_str().to_owned(), definition.clone());
        }
        for entry in document
            .get("paths")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
        {
            let gvk = entry
                .value
                .at_path(&["get", "x-kubernetes-group-version-kind"]);
            let Some(key) = gvk.and_then(type_meta) else {
                continue;
            };
            let is_namespaced = entry.key.as_str().contains("namespaces/{namespace}");
            *custom.scopes.entry(key).or_default() |= is_namespaced;
        }
        custom
    }

    pub(super) fn root(&self, api_version: &str, kind: &str) -> Option<Node> {
        self.kinds
            .get(&(api_version.to_owned(), kind.to_owned()))
            .cloned()
    }

    pub(super) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        self.scopes.get(&(api_version.to_owned(), kind.to_owned())) == Some(&false)
    }

    /// What a name stands for.
    pub(super) fn definition(&self, name: &str) -> Option<&Node> {
        self.definitions.get(name)
    }

    /// Where a field leads, references left alone.
    pub(super) fn field<'a>(schema: &'a Node, name: &str) -> Option<&'a Node> {
        schema.at_path(&["properties", name]).or_else(|| {
            schema
                .get("additionalProperties")
                .filter(|value| value.as_map().is_some())
        })
    }

    /// The keys by which a list merges; `None` when a patch replaces it.
    pub(super) fn keys(schema: &Node) -> Option<Vec<String>> {
        let text = |key: &str| schema.get(key).and_then(Node::as_str).map(str::to_owned);
        let strategy = text("x-kubernetes-patch-strategy")?;
        if !strategy.split(',').any(|word| word == "merge") {
            return None;
        }
        if let Some(keys) = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Node::as_list)
        {
            return Some(
                keys.iter()
                    .filter_map(Node::as_str)
                    .map(str::to_owned)
                    .collect(),
            );
        }
        Some(text("x-kubernetes-patch-merge-key").into_iter().collect())
    }

    /// What the items of a list are, references left alone.
    pub(super) fn element(schema: &Node) -> Option<&Node> {
        if schema.get("type").and_then(Node::as_str) != Some("array") {
            return None;
        }
        schema.get("items")
    }

    /// The name of the definition that a schema stands for.
    pub(super) fn reference(schema: &Node) -> Option<&str> {
        let reference = schema.get("$ref").and_then(Node::as_str)?;
        Some(reference.strip_prefix(REFERENCE).unwrap_or(reference))
    }
}

fn type_meta(gvk: &Node) -> Option<(String, String)> {
    let text = |key| gvk.get(key).and_then(Node::as_str);
    let version = match text("group") {
        Some(group) if !group.is_empty() => format!("{group}/{}", text("version")?),
        _ => text("version")?.to_owned(),
    };
    Some((version, text("kind")?.to_owned()))
}
