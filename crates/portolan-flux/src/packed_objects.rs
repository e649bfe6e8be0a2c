//! Objects in little memory, for those that wait for their turn to be handed out: about a tenth of their YAML.
//!
//! Objects that were rendered from one chart repeat the same words, so their packed trees are compressed together.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use portolan_object::{Act, Object, Origin, Place, Step};
use portolan_yaml::{List, Node, PackedNode, Text, Value};

/// The packed form of a list of objects.
#[derive(Debug)]
pub(crate) struct PackedObjects(Box<[u8]>);

/// Every act, by the number that stands for it.
const ACTS: [Act; 8] = [
    Act::Read,
    Act::Template,
    Act::Generate,
    Act::Patch,
    Act::Transform,
    Act::Substitute,
    Act::Decrypt,
    Act::Build,
];

impl PackedObjects {
    /// Packs objects.
    pub(crate) fn pack(objects: &[Object]) -> Self {
        let list = list(objects.iter().map(with_origin).collect());
        // The fastest level has most of the gain; more would take time from rendering.
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(PackedNode::pack(&list).as_bytes());
        let compressed = written.and_then(|()| encoder.finish());
        Self(compressed.expect("a vector takes every byte").into())
    }

    /// The objects.
    pub(crate) fn unpack(&self) -> Vec<Object> {
        let mut bytes = Vec::new();
        let read = DeflateDecoder::new(self.0.as_ref()).read_to_end(&mut bytes);
        read.expect("only `pack` writes these bytes, and nobody changes them");
        let list = PackedNode::from_bytes(bytes).unpack();
        items(&list).iter().filter_map(object).collect()
    }
}

/// The tree of an object, followed by the steps of its origin.
fn with_origin(object: &Object) -> Node {
    let steps = object.origin.steps().into_iter().map(packed_step);
    let tree = std::iter::once(object.node().clone());
    list(tree.chain(steps).collect())
}

fn object(packed: &Node) -> Option<Object> {
    let (tree, steps) = items(packed).split_first()?;
    let steps = steps.iter().filter_map(step);
    let origin = steps.fold(Origin::default(), |origin, step| origin.then(step));
    Object::new(tree.clone(), origin).ok()
}

/// The number of the act, what did it, and the file at its position if there is one.
fn packed_step(step: &Step) -> Node {
    let act = ACTS.iter().position(|act| *act == step.act);
    let act = Node::int(act.unwrap_or_default() as i64);
    let mut parts = vec![act, Node::string(step.by.clone())];
    parts.extend(step.place.as_ref().map(|place| Node {
        at: place.at,
        ..Node::string(place.file.clone())
    }));
    list(parts)
}

fn step(packed: &Node) -> Option<Step> {
    let [act, by, place @ ..] = items(packed) else {
        return None;
    };
    let text = |node: &Node| Some(node.as_scalar()?.text.clone());
    let act = *ACTS.get(usize::try_from(act.as_i64()?).ok()?)?;
    let place = place.first().map(|file| {
        let name: Option<Text> = text(file);
        Place::new(name.unwrap_or_default(), file.at)
    });
    Some(Step {
        act,
        by: text(by)?,
        place,
    })
}

fn list(items: Vec<Node>) -> Node {
    Node::new(Value::List(List::from_items(items)))
}

fn items(node: &Node) -> &[Node] {
    node.as_list().map_or(&[], |list| list.iter().as_slice())
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse};

    use super::*;

    #[test]
    fn unpacked_objects_are_the_same_and_packed_ones_small() {
        let one = |number: usize| {
            format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{number}\n  labels: {{app.kubernetes.io/name: web, app.kubernetes.io/instance: \"{number}\"}}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1.2.3\n"
            )
        };
        let text = (0..20).map(one).collect::<Vec<_>>().join("---\n");
        let trees = parse(text.as_str(), Dialect::Kustomize).unwrap();
        let objects: Vec<Object> = (1..)
            .zip(trees)
            .map(|(line, tree)| {
                let read = Origin::read(Place::line("web.yaml", line));
                let origin = read.then(Step::new(Act::Build, "HelmRelease apps/web"));
                Object::new(tree, origin).unwrap()
            })
            .collect();
        let packed = PackedObjects::pack(&objects);
        assert_eq!(format!("{:?}", packed.unpack()), format!("{objects:?}"));
        assert!(packed.0.len() * 6 < text.len(), "{}", packed.0.len());
    }
}
