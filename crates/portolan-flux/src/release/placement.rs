//! The namespace of a release's objects: Helm's client puts objects without a namespace into the release's namespace.

use std::collections::HashMap;

use portolan_object::{Gvk, Object, Scope, defined_kinds, scope};
use portolan_yaml::Text;

/// Gives objects without a namespace that of their release, where their kind has namespaces.
///
/// The kinds of Kubernetes are known, and custom ones whose definition is among the objects. A custom object whose
/// definition comes from elsewhere is left as the chart wrote it: it may be one without a namespace.
pub(crate) fn place(objects: &mut [Object], namespace: &Text) {
    let defined: HashMap<(String, String), Scope> = objects
        .iter()
        .flat_map(|object| defined_kinds(object.node()))
        .map(|kind| (key(&kind.gvk), kind.scope))
        .collect();
    for object in objects {
        let scope = scope(object.gvk()).or_else(|| defined.get(&key(object.gvk())).copied());
        if object.namespace().is_empty() && scope == Some(Scope::Namespaced) {
            object.set_namespace(namespace.clone());
        }
    }
}

fn key(gvk: &Gvk) -> (String, String) {
    (gvk.group.to_string(), gvk.kind.to_string())
}

#[cfg(test)]
mod tests {
    use portolan_object::Origin;
    use portolan_yaml::{Dialect, parse};

    use super::*;

    fn placed(text: &str) -> Vec<String> {
        let documents = parse(text.to_owned(), Dialect::Kustomize).unwrap();
        let mut objects: Vec<Object> = documents
            .into_iter()
            .map(|node| Object::new(node, Origin::default()).unwrap())
            .collect();
        place(&mut objects, &Text::from_static("own"));
        objects
            .iter()
            .map(|object| format!("{} {}", object.kind(), object.namespace()))
            .collect()
    }

    #[test]
    fn only_kinds_with_namespaces_get_one_and_only_where_none_is_written() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n\
                    {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}}\n---\n\
                    {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: null}}\n---\n\
                    {apiVersion: v1, kind: Namespace, metadata: {name: d}}\n---\n\
                    {apiVersion: example.com/v1, kind: Unknown, metadata: {name: e}}\n";
        assert_eq!(
            placed(text),
            [
                "ConfigMap own",
                "ConfigMap other",
                "ConfigMap own",
                "Namespace ",
                "Unknown "
            ]
        );
    }

    #[test]
    fn a_definition_among_the_objects_says_whether_its_kind_has_namespaces() {
        let definition = |kind: &str, scope: &str| {
            format!(
                "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {kind}}}, \
                 spec: {{group: example.com, scope: {scope}, names: {{kind: {kind}, plural: x}}, versions: [{{name: v1, served: true}}]}}}}\n---\n"
            )
        };
        let text = format!(
            "{}{}{{apiVersion: example.com/v1, kind: Pier, metadata: {{name: a}}}}\n---\n{{apiVersion: example.com/v1, kind: Sea, metadata: {{name: b}}}}\n",
            definition("Pier", "Namespaced"),
            definition("Sea", "Cluster")
        );
        assert_eq!(placed(&text)[2..], ["Pier own", "Sea "]);
    }
}
