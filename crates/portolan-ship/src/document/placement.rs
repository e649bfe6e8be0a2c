//! Where the command line sends things, whatever the document says: images to another registry, objects to another namespace.

use portolan_yaml::{Entry, Key, List, Map, Node, Value};

use super::artifact::is_repository;
use super::{Adjustments, Faults, Ship, fault};

/// Puts the namespace of the command line into each deploy step, each verification and each forwarded port.
pub(super) fn put_namespace(spec: &Node, namespace: &str) -> Node {
    let mut changed = spec.clone();
    for list in ["deploy", "verify"] {
        change(&mut changed, list, |items| in_each(items, namespace));
    }
    change(&mut changed, "dev", |dev| {
        change(dev, "forward", |items| in_each(items, namespace));
    });
    changed
}

fn change(node: &mut Node, key: &str, change: impl FnOnce(&mut Node)) {
    if let Value::Map(map) = &mut node.value
        && let Some(place) = map.get_mut(key)
    {
        change(place);
    }
}

fn in_each(items: &mut Node, namespace: &str) {
    let Value::List(list) = &items.value else {
        return;
    };
    let items_with = list.iter().map(|item| with_namespace(item, namespace));
    items.value = Value::List(List::from_items(items_with.collect()));
}

fn with_namespace(item: &Node, namespace: &str) -> Node {
    let Value::Map(map) = &item.value else {
        return item.clone();
    };
    let others = map.iter().filter(|entry| entry.key.as_str() != "namespace");
    let mut entries: Vec<Entry> = others.cloned().collect();
    let mut key = Key::from("namespace");
    key.at = item.at;
    let mut value = Node::string(namespace);
    value.at = item.at;
    entries.push(Entry { key, value });
    Node {
        value: Value::Map(Map::from_entries(entries)),
        at: item.at,
    }
}

/// Sends all images to the registry of the command line. What objects call them stays.
pub(super) fn put_registry(ship: &mut Ship, asked: &Adjustments, faults: &mut Faults) {
    let Some(prefix) = &asked.registry else {
        return;
    };
    let prefix = prefix.trim_end_matches('/');
    for artifact in &mut ship.artifacts {
        let image = in_registry(prefix, &artifact.image);
        if !is_repository(&image) {
            let message = format!(
                "`--registry {prefix}`: `{image}` is no repository; write it as `registry.example` or `registry.example/team`"
            );
            faults.push(fault(artifact.at, message));
            return;
        }
        artifact.image = image;
    }
}

/// `localhost:5000/me/shop/web` of `localhost:5000/me` and `registry.example/shop/web`.
pub(super) fn in_registry(prefix: &str, image: &str) -> String {
    let path = match image.split_once('/') {
        // As Docker has it: a registry has a dot or a port, or is this machine.
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => image,
    };
    format!("{prefix}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_of_an_image_is_replaced_and_its_path_stays() {
        for (prefix, image, expected) in [
            (
                "localhost:5000",
                "registry.example/shop/web",
                "localhost:5000/shop/web",
            ),
            (
                "localhost:5000/me",
                "registry.example/shop/web",
                "localhost:5000/me/shop/web",
            ),
            ("other.example", "localhost/web", "other.example/web"),
            ("other.example", "team/web", "other.example/team/web"),
            ("other.example", "web", "other.example/web"),
            ("other.example", "registry:5000/web", "other.example/web"),
        ] {
            assert_eq!(in_registry(prefix, image), expected, "{prefix} {image}");
        }
    }
}
