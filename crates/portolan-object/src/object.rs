//! An object: a YAML tree with its id and its origin.

use portolan_yaml::{Map, Node, Position, Text, Value};
use thiserror::Error;

use crate::body::{Body, LastChunk, PackedBody};
use crate::gvk::Gvk;
use crate::id::ObjectId;
use crate::origin::{Origin, Place};
use crate::pack_dictionary::PackDictionary;

/// A tree with `apiVersion`, `kind` and `metadata.name`.
///
/// The id always agrees with the tree: the tree is only changed through methods that keep it so.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    body: Body,
    id: ObjectId,
}

/// Why a tree is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The document is a list or a scalar.
    #[error("a Kubernetes object must be a map")]
    NotAMap {
        /// Where the document begins.
        at: Position,
    },
    /// A field is not there, or empty.
    #[error("`{field}` is missing")]
    Missing {
        /// The field's path.
        field: &'static str,
        /// Where the object begins.
        at: Position,
    },
    /// A field holds something else than it should.
    #[error("`{field}` must be {expected}")]
    WrongType {
        /// The field's path.
        field: &'static str,
        /// What belongs there.
        expected: &'static str,
        /// Where the value begins.
        at: Position,
    },
}

/// The two maps of text in an object's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetadataMap {
    Labels,
    Annotations,
}

// === impl Object ===

impl Object {
    /// Takes a tree as an object.
    ///
    /// An object that leaves its name to the server has its `generateName` as the name in its id: that ends in `-` by
    /// custom, as no name can.
    pub fn new(node: Node, origin: Origin) -> Result<Self, ObjectError> {
        let id = identify(&node)?;
        Ok(Self {
            body: Body::new(node, origin),
            id,
        })
    }

    /// Keeps trees and origins in packed form, for objects that will not be read for a while or not at all.
    ///
    /// Reading an object unpacks its tree again and keeps it. Whoever reads one of many objects once reads a clone of
    /// it, and the object stays packed.
    pub fn pack_all<'a>(objects: impl IntoIterator<Item = &'a mut Self>) {
        Self::pack(objects, None);
    }

    /// The same for objects that are like others which were packed with the same dictionary.
    pub fn pack_all_with<'a>(
        objects: impl IntoIterator<Item = &'a mut Self>,
        dictionary: &PackDictionary,
    ) {
        Self::pack(objects, Some(dictionary));
    }

    fn pack<'a>(
        objects: impl IntoIterator<Item = &'a mut Self>,
        dictionary: Option<&PackDictionary>,
    ) {
        let (bodies, ids): (Vec<&mut Body>, Vec<&mut ObjectId>) = objects
            .into_iter()
            .map(|object| (&mut object.body, &mut object.id))
            .unzip();
        Body::pack_all(bodies.into_iter(), dictionary);
        ObjectId::detach_all(ids);
    }

    /// Clones of objects whose trees are read. Many packed objects are read in less time so than one by one.
    pub fn read_all<'a>(objects: impl IntoIterator<Item = &'a Self>) -> impl Iterator<Item = Self> {
        let mut last = LastChunk::default();
        objects.into_iter().map(move |object| Self {
            body: object.body.read(&mut last),
            id: object.id.clone(),
        })
    }

    pub(crate) fn packed(&self) -> Option<&PackedBody> {
        self.body.packed()
    }

    /// Where it came from.
    pub fn origin(&self) -> Origin {
        self.body.origin()
    }

    /// Where it was first written, if that is known.
    pub fn place(&self) -> Option<Place> {
        self.origin().place().cloned()
    }

    /// Says where it came from.
    pub fn set_origin(&mut self, origin: Origin) {
        *self.body.get_mut().1 = origin;
    }

    /// What names it.
    pub fn id(&self) -> &ObjectId {
        &self.id
    }

    /// What it is.
    pub fn gvk(&self) -> &Gvk {
        &self.id.gvk
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.id.gvk.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.id.name
    }

    /// Its namespace; empty when it has none.
    pub fn namespace(&self) -> &str {
        &self.id.namespace
    }

    /// The whole tree.
    pub fn node(&self) -> &Node {
        self.body.node()
    }

    /// Gives up the tree.
    pub fn into_node(self) -> Node {
        self.body.into_node()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.text_of(MetadataMap::Labels, key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.text_of(MetadataMap::Annotations, key)
    }

    /// Every label, in order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts_of(MetadataMap::Labels)
    }

    /// Every annotation, in order.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts_of(MetadataMap::Annotations)
    }

    /// Sets a label; a new one goes to the end.
    pub fn set_label(&mut self, key: &str, value: impl Into<Text>) {
        self.map_mut(MetadataMap::Labels)
            .insert(key, Node::string(value));
    }

    /// Sets an annotation; a new one goes to the end.
    pub fn set_annotation(&mut self, key: &str, value: impl Into<Text>) {
        self.map_mut(MetadataMap::Annotations)
            .insert(key, Node::string(value));
    }

    /// Takes a label out, and the map when it was the last.
    pub fn remove_label(&mut self, key: &str) {
        self.remove(MetadataMap::Labels, key);
    }

    /// Takes an annotation out, and the map when it was the last.
    pub fn remove_annotation(&mut self, key: &str) {
        self.remove(MetadataMap::Annotations, key);
    }

    /// Moves it to a namespace; an empty one takes the field out.
    pub fn set_namespace(&mut self, namespace: impl Into<Text>) {
        let namespace = namespace.into();
        let metadata = self.metadata_mut();
        if namespace.is_empty() {
            metadata.remove("namespace");
        } else {
            metadata.insert("namespace", Node::string(namespace.clone()));
        }
        self.id.namespace = namespace;
    }

    /// Changes the tree freely; when it is no object afterwards, the change is undone and refused.
    pub fn edit(&mut self, change: impl FnOnce(&mut Node)) -> Result<(), ObjectError> {
        // A clone shares everything; only what `change` touches is copied.
        let mut node = self.node().clone();
        change(&mut node);
        self.id = identify(&node)?;
        *self.body.get_mut().0 = node;
        Ok(())
    }

    fn text_of(&self, which: MetadataMap, key: &str) -> Option<&str> {
        self.node()
            .at_path(&["metadata", which.name(), key])?
            .as_str()
    }

    fn texts_of(&self, which: MetadataMap) -> impl Iterator<Item = (&str, &str)> {
        let map = self
            .node()
            .at_path(&["metadata", which.name()])
            .and_then(Node::as_map);
        let entries = map.into_iter().flat_map(Map::iter);
        entries.filter_map(|entry| Some((entry.key.as_str(), entry.value.as_str()?)))
    }

    fn remove(&mut self, which: MetadataMap, key: &str) {
        let (node, _) = self.body.get_mut();
        let Some(map) = node
            .get_mut("metadata")
            .and_then(|node| node.get_mut(which.name()))
        else {
            return;
        };
        let Some(map) = map.as_map_mut() else {
            return;
        };
        map.remove(key);
        if map.is_empty() {
            self.metadata_mut().remove(which.name());
        }
    }

    fn map_mut(&mut self, which: MetadataMap) -> &mut Map {
        map_at(self.metadata_mut(), which.name())
    }

    fn metadata_mut(&mut self) -> &mut Map {
        map_at(as_map(self.body.get_mut().0), "metadata")
    }
}

impl MetadataMap {
    fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }
}

fn identify(node: &Node) -> Result<ObjectId, ObjectError> {
    let at = node.at;
    if node.as_map().is_none() {
        return Err(ObjectError::NotAMap { at });
    }
    let api_version = required(node, &["apiVersion"], "apiVersion")?;
    let kind = required(node, &["kind"], "kind")?;
    if let Some(metadata) = node
        .get("metadata")
        .filter(|metadata| metadata.as_map().is_none())
    {
        return Err(ObjectError::WrongType {
            field: "metadata",
            expected: "a map",
            at: metadata.at,
        });
    }
    let name = match text(node, &["metadata", "name"], "metadata.name")? {
        Some(name) => name,
        None => text(node, &["metadata", "generateName"], "metadata.generateName")?.ok_or(
            ObjectError::Missing {
                field: "metadata.name",
                at,
            },
        )?,
    };
    let namespace = text(node, &["metadata", "namespace"], "metadata.namespace")?;
    Ok(ObjectId::new(
        Gvk::from_api_version(&api_version, kind),
        namespace.unwrap_or_default(),
        name,
    ))
}

fn required(node: &Node, path: &[&str], field: &'static str) -> Result<Text, ObjectError> {
    text(node, path, field)?.ok_or(ObjectError::Missing { field, at: node.at })
}

/// The text of a field; null and empty are as good as absent.
fn text(node: &Node, path: &[&str], field: &'static str) -> Result<Option<Text>, ObjectError> {
    let Some(value) = node.at_path(path).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    match (&value.value, value.as_str()) {
        (Value::Scalar(scalar), Some(text)) => Ok((!text.is_empty()).then(|| scalar.text.clone())),
        _ => Err(ObjectError::WrongType {
            field,
            expected: "a string",
            at: value.at,
        }),
    }
}

/// The node's map; anything else becomes an empty one first.
fn as_map(node: &mut Node) -> &mut Map {
    if node.as_map().is_none() {
        node.value = Value::Map(Map::new());
    }
    node.as_map_mut().expect("made a map above")
}

fn map_at<'a>(map: &'a mut Map, key: &str) -> &'a mut Map {
    as_map(map.get_or_insert_with(key, Node::map))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &[(&str, &str)]) -> Result<Object, ObjectError> {
        let mut node = Node::map();
        for (path, value) in entries {
            let mut map = as_map(&mut node);
            let mut keys = path.split('.').peekable();
            while let Some(key) = keys.next() {
                if keys.peek().is_none() {
                    map.insert(key, Node::string(*value));
                } else {
                    map = map_at(map, key);
                }
            }
        }
        Object::new(node, Origin::default())
    }

    fn web() -> Object {
        object(&[
            ("apiVersion", "apps/v1"),
            ("kind", "Deployment"),
            ("metadata.name", "web"),
        ])
        .expect("an object")
    }

    #[test]
    fn the_id_comes_from_the_tree() {
        assert_eq!(web().id().to_string(), "apps/v1/Deployment/web");
    }

    #[test]
    fn a_packed_object_reads_and_changes_as_before() {
        let mut packed = web();
        packed.set_label("app", "web");
        let plain = packed.clone();
        Object::pack_all([&mut packed]);
        assert_eq!(packed.clone().label("app"), Some("web"));
        assert_eq!(packed.id(), plain.id());
        assert_eq!(packed, plain);
        Object::pack_all([&mut packed]);
        packed.set_label("app", "other");
        assert_eq!(packed.label("app"), Some("other"));
        Object::pack_all([&mut packed]);
        assert_eq!(
            packed.into_node().at_path(&["metadata", "labels", "app"]),
            Some(&Node::string("other"))
        );
    }

    #[test]
    fn a_generated_name_stands_for_the_name() {
        let job = [
            ("apiVersion", "batch/v1"),
            ("kind", "Job"),
            ("metadata.generateName", "run-"),
        ];
        assert_eq!(object(&job).expect("an object").name(), "run-");
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing =
            |entries: &[(&str, &str)]| object(entries).expect_err("no object").to_string();
        assert_eq!(missing(&[]), "`apiVersion` is missing");
        assert_eq!(missing(&[("apiVersion", "v1")]), "`kind` is missing");
        assert_eq!(
            missing(&[("apiVersion", "v1"), ("kind", "Pod")]),
            "`metadata.name` is missing"
        );
    }

    #[test]
    fn labels_and_annotations_are_set_and_taken_out() {
        let mut web = web();
        web.set_label("app", "web");
        web.set_annotation("note", "x");
        assert_eq!(web.label("app"), Some("web"));
        assert_eq!(web.annotations().collect::<Vec<_>>(), [("note", "x")]);
        web.remove_annotation("note");
        assert!(web.node().at_path(&["metadata", "annotations"]).is_none());
    }

    #[test]
    fn the_id_follows_a_change_and_a_bad_change_is_undone() {
        let mut web = web();
        web.set_namespace("shop");
        assert_eq!(web.id().to_string(), "apps/v1/Deployment/shop/web");
        let refused = web.edit(|node| {
            as_map(node).remove("kind");
        });
        assert!(refused.is_err());
        assert_eq!(
            web.node().get("kind").and_then(Node::as_str),
            Some("Deployment")
        );
    }
}
