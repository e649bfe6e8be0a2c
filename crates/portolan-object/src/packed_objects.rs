//! A list of objects in little memory, for those that wait for their turn: about a tenth of their YAML.

use crate::body::{LastChunk, PackedBody};
use crate::object::Object;

/// The packed form of a list of objects, their ids included.
#[derive(Debug)]
pub struct PackedObjects(Box<[PackedBody]>);

impl PackedObjects {
    /// Packs objects as [`Object::pack_all`] does; those that are packed already stay as they are.
    pub fn pack(objects: &mut [Object]) -> Self {
        Object::pack_all(&mut *objects);
        let packed = objects.iter().filter_map(Object::packed);
        Self(packed.cloned().collect())
    }

    /// The objects.
    pub fn unpack(&self) -> Vec<Object> {
        let mut last = LastChunk::default();
        let bodies = self.0.iter().map(|packed| last.unpack(packed));
        bodies
            .filter_map(|(node, origin)| Object::new(node, origin).ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse};

    use super::*;
    use crate::{Act, Origin, Place, Step};

    fn text(number: usize) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{number}\n  labels: {{app.kubernetes.io/name: web, app.kubernetes.io/instance: \"{number}\"}}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1.2.3\n"
        )
    }

    fn objects(count: usize) -> Vec<Object> {
        let text: Vec<String> = (0..count).map(text).collect();
        let trees = parse(text.join("---\n").as_str(), Dialect::Kustomize).unwrap();
        let objects = (1..).zip(trees).map(|(line, tree)| {
            let read = Origin::read(Place::line("web.yaml", line));
            let origin = read.then(Step::new(Act::Build, "HelmRelease apps/web"));
            Object::new(tree, origin).unwrap()
        });
        objects.collect()
    }

    #[test]
    fn unpacked_objects_are_the_same_in_the_same_order() {
        // Enough for several chunks.
        let plain = objects(400);
        let mut packed = plain.clone();
        let is_even = |object: &&mut Object| object.name().ends_with(['0', '2', '4', '6', '8']);
        Object::pack_all(packed.iter_mut().filter(is_even));
        let unpacked = PackedObjects::pack(&mut packed).unpack();
        assert_eq!(format!("{unpacked:?}"), format!("{plain:?}"));
        let read: Vec<Object> = Object::read_all(&packed).collect();
        assert_eq!(read, plain);
        assert_eq!(packed, plain);
    }

    #[test]
    fn an_origin_is_read_without_the_tree() {
        let plain = objects(3);
        let mut packed = plain.clone();
        Object::pack_all(&mut packed);
        for (packed, plain) in packed.iter().zip(&plain) {
            assert_eq!(packed.origin(), plain.origin());
            assert_eq!(packed.id(), plain.id());
        }
    }
}
