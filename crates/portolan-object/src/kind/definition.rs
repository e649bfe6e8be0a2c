//! The kinds that a `CustomResourceDefinition` adds to a cluster.

use portolan_yaml::{Node, Text, Value};

use crate::gvk::Gvk;
use crate::kind::served::Scope;

/// A custom kind in one of its served versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedKind {
    /// What it is.
    pub gvk: Gvk,
    /// The plural name in the API's paths.
    pub resource: Text,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
}

/// The kinds of a definition, one for each version it serves; none when it is no definition or lacks a name.
///
/// Reads the form of today (`spec.versions`) and that of `v1beta1` (`spec.version`).
///
/// ```
/// use portolan_object::{Scope, defined_kinds};
/// use portolan_yaml::{Dialect, parse_one};
///
/// let definition = parse_one("
/// apiVersion: apiextensions.k8s.io/v1
/// kind: CustomResourceDefinition
/// spec:
///   group: example.com
///   scope: Cluster
///   names: {kind: Widget, plural: widgets}
///   versions: [{name: v1, served: true}, {name: v1beta1, served: false}]
/// ", Dialect::Helm)?;
/// let kinds = defined_kinds(&definition);
/// assert_eq!(kinds.len(), 1);
/// assert_eq!(kinds[0].gvk.to_string(), "example.com/v1/Widget");
/// assert_eq!(kinds[0].scope, Scope::Cluster);
/// # Ok::<(), portolan_yaml::Errors>(())
/// ```
pub fn defined_kinds(definition: &Node) -> Vec<DefinedKind> {
    let is_definition =
        definition.get("kind").and_then(Node::as_str) == Some("CustomResourceDefinition");
    let spec = definition.get("spec").filter(|_| is_definition);
    spec.and_then(read).unwrap_or_default()
}

fn read(spec: &Node) -> Option<Vec<DefinedKind>> {
    let group = text(spec.get("group")?)?;
    let kind = text(spec.at_path(&["names", "kind"])?)?;
    let resource = text(spec.at_path(&["names", "plural"])?)?;
    let cluster = spec.get("scope").and_then(Node::as_str) == Some("Cluster");
    let scope = if cluster {
        Scope::Cluster
    } else {
        Scope::Namespaced
    };
    let define = |version| DefinedKind {
        gvk: Gvk::new(group.clone(), version, kind.clone()),
        resource: resource.clone(),
        scope,
    };
    Some(versions(spec).into_iter().map(define).collect())
}

fn versions(spec: &Node) -> Vec<Text> {
    let served = |version: &&Node| version.get("served").and_then(Node::as_bool) != Some(false);
    match spec.get("versions").and_then(Node::as_list) {
        Some(list) => list
            .iter()
            .filter(served)
            .filter_map(|version| text(version.get("name")?))
            .collect(),
        None => spec.get("version").and_then(text).into_iter().collect(),
    }
}

fn text(node: &Node) -> Option<Text> {
    match &node.value {
        Value::Scalar(scalar) if node.as_str().is_some() => Some(scalar.text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn kinds(yaml: &str) -> Vec<String> {
        let node = parse_one(yaml, Dialect::Helm).expect("YAML");
        defined_kinds(&node)
            .iter()
            .map(|kind| format!("{} {:?}", kind.gvk, kind.scope))
            .collect()
    }

    #[test]
    fn an_old_definition_has_one_version() {
        let old = "{kind: CustomResourceDefinition, spec: {group: a.b, version: v1, names: {kind: X, plural: xs}}}";
        assert_eq!(kinds(old), ["a.b/v1/X Namespaced"]);
    }

    #[test]
    fn anything_else_defines_nothing() {
        assert_eq!(kinds("{kind: Pod, spec: {group: a.b}}"), [""; 0]);
        assert_eq!(
            kinds("{kind: CustomResourceDefinition, spec: {group: a.b}}"),
            [""; 0]
        );
        assert_eq!(kinds("- a"), [""; 0]);
    }
}
