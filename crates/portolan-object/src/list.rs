//! Lists of objects in one document: `kind: List`, `ConfigMapList` and similar kinds.

use portolan_yaml::{Node, Value};

/// How deep lists may lie inside lists; deeper ones stay as they are.
const MAX_DEPTH: usize = 16;

/// The objects of a document: its items when it is a list, else itself.
///
/// A document is a list when it has `items` that are a list, whatever its kind: so the API machinery decides. Items
/// that name neither kind nor version have those of their list (`ConfigMapList` → `ConfigMap`). Lists inside lists are
/// opened too.
pub fn expand_lists(document: Node) -> Vec<Node> {
    let mut objects = Vec::new();
    expand(document, MAX_DEPTH, &mut objects);
    objects
}

fn expand(document: Node, depth: usize, objects: &mut Vec<Node>) {
    let items = document
        .get("items")
        .and_then(Node::as_list)
        .filter(|_| depth > 0);
    let Some(items) = items else {
        objects.push(document);
        return;
    };
    for item in items {
        expand(with_kind_of(item, &document), depth - 1, objects);
    }
}

fn with_kind_of(item: &Node, list: &Node) -> Node {
    let mut item = item.clone();
    let Value::Map(map) = &mut item.value else {
        return item;
    };
    let named = map.contains_key("kind") || map.contains_key("apiVersion");
    let kind = list.get("kind").and_then(Node::as_str);
    let Some(kind) = kind
        .and_then(|kind| kind.strip_suffix("List"))
        .filter(|kind| !kind.is_empty())
    else {
        return item;
    };
    if let Some(api_version) = list.get("apiVersion").filter(|_| !named) {
        map.insert("apiVersion", api_version.clone());
        map.insert("kind", Node::string(kind));
    }
    item
}

#[cfg(test)]
mod tests {
    use portolan_yaml::List;

    use super::*;

    fn object(kind: Option<&str>, items: Option<Vec<Node>>) -> Node {
        let mut node = Node::map();
        let map = node.as_map_mut().expect("a map");
        if let Some(kind) = kind {
            map.insert("apiVersion", Node::string("v1"));
            map.insert("kind", Node::string(kind.to_owned()));
        }
        if let Some(items) = items {
            map.insert("items", Node::new(Value::List(List::from_items(items))));
        }
        node
    }

    fn kinds(document: Node) -> Vec<String> {
        let kind = |node: &Node| {
            node.get("kind")
                .and_then(Node::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        expand_lists(document).iter().map(kind).collect()
    }

    #[test]
    fn a_list_gives_its_items_and_anything_else_itself() {
        let list = object(
            Some("List"),
            Some(vec![
                object(Some("Pod"), None),
                object(Some("Secret"), None),
            ]),
        );
        assert_eq!(kinds(list), ["Pod", "Secret"]);
        assert_eq!(kinds(object(Some("Pod"), None)), ["Pod"]);
        assert_eq!(kinds(object(Some("List"), Some(vec![]))), [""; 0]);
    }

    #[test]
    fn items_of_a_typed_list_have_its_kind() {
        let list = object(Some("ConfigMapList"), Some(vec![object(None, None)]));
        assert_eq!(kinds(list), ["ConfigMap"]);
    }

    #[test]
    fn lists_in_lists_are_opened_as_far_as_the_limit() {
        let nest = |depth: usize| {
            (0..depth).fold(object(Some("Pod"), None), |node, _| {
                object(Some("List"), Some(vec![node]))
            })
        };
        assert_eq!(kinds(nest(MAX_DEPTH)), ["Pod"]);
        assert_eq!(kinds(nest(MAX_DEPTH + 1)), ["List"]);
    }
}
