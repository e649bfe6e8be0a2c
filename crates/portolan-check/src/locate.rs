//! The line of a repository that a value of a rendered object comes from.
//!
//! An object remembers the files it was read from and patched by. The value is looked up in them, newest first, by
//! walking the file's tree and the object's side by side: items of lists are matched by name, since patches move
//! them. A value that no file has (a template made it) gets the place of the object itself.

use camino::Utf8Path;
use portolan_object::{Object, Place, Step, holds_placeholder};
use portolan_schema::{FieldPath, Segment};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, List, Node, Position, parse_bytes};

use crate::embedded::find_embedded;
use crate::finding::Subject;

/// Where the value of a path was written, or the nearest thing above it that was.
pub(crate) fn locate(files: &dyn Vfs, object: &Object, path: &FieldPath) -> Option<Place> {
    let mut nearest: Option<(usize, Place)> = None;
    for step in object.origin.newest_first() {
        let Some((depth, place)) = find(files, step, object, path) else {
            continue;
        };
        if nearest.as_ref().is_none_or(|(deepest, _)| depth > *deepest) {
            nearest = Some((depth, place));
        }
    }
    let found = nearest.map(|(_, place)| place);
    found.or_else(|| object.origin.place().cloned())
}

/// Whether a value stands for one that only the cluster knows: nothing can be said against it here.
pub(crate) fn is_unknown(subject: &Subject<'_>, path: &FieldPath) -> bool {
    let scalar = value_at(subject.object.node(), path).and_then(Node::as_scalar);
    scalar.is_some_and(|scalar| {
        holds_placeholder(&scalar.text) || (subject.lacks_variables && scalar.text.contains("${"))
    })
}

/// The value at a path.
pub(crate) fn value_at<'n>(node: &'n Node, path: &FieldPath) -> Option<&'n Node> {
    let mut segments = path.segments.iter();
    segments.try_fold(node, |node, segment| match segment {
        Segment::Key(key) => node.get(key),
        Segment::Index(index) => node.as_list()?.get(*index),
    })
}

/// How far one step's file goes along the path, and where that is.
fn find(files: &dyn Vfs, step: &Step, object: &Object, path: &FieldPath) -> Option<(usize, Place)> {
    let place = step.place.as_ref()?;
    let file = Utf8Path::new(place.file.as_str());
    let bytes = files.read(file).ok()?;
    let documents = parse_bytes(&bytes, Dialect::Kustomize).ok()?;
    let Some(document) = document_at(&documents, place.at, object) else {
        let text = String::from_utf8_lossy(&bytes);
        return find_embedded(files, file, &text, object, path);
    };
    let (depth, at) = follow(document, object.node(), path);
    (at.line > 0).then(|| (depth, Place::new(place.file.clone(), at)))
}

/// The document that begins at a line, or the one that holds it; it must be of the object's kind.
fn document_at<'a>(documents: &'a [Node], at: Position, object: &Object) -> Option<&'a Node> {
    let of_kind = |node: &&Node| node.get("kind").and_then(Node::as_str) == Some(object.kind());
    let candidates = documents.iter().filter(of_kind);
    let mut before = candidates.filter(|node| at.line == 0 || node.at.line <= at.line.max(1));
    before.next_back()
}

/// Walks both trees as far as the path and the source go.
pub(crate) fn follow(source: &Node, rendered: &Node, path: &FieldPath) -> (usize, Position) {
    let (mut source, mut rendered) = (source, Some(rendered));
    let mut at = source.at;
    for (depth, segment) in path.segments.iter().enumerate() {
        let below = match segment {
            Segment::Key(key) => source.as_map().and_then(|map| {
                let entry = map.iter().find(|entry| entry.key.as_str() == key)?;
                Some((&entry.value, entry.key.at))
            }),
            Segment::Index(index) => {
                let wanted = rendered
                    .and_then(Node::as_list)
                    .and_then(|list| list.get(*index));
                source
                    .as_list()
                    .and_then(|list| item(list, *index, wanted))
                    .map(|item| (item, item.at))
            }
        };
        let Some((node, place)) = below else {
            return (depth, at);
        };
        rendered = rendered.and_then(|node| match segment {
            Segment::Key(key) => node.get(key),
            Segment::Index(index) => node.as_list()?.get(*index),
        });
        (source, at) = (node, place);
    }
    (path.segments.len(), at)
}

/// The item of the same name, nearest to the same place; or else the one in the same place.
fn item<'a>(list: &'a List, index: usize, wanted: Option<&Node>) -> Option<&'a Node> {
    let name_of = |node: &'a Node| node.get("name").and_then(Node::as_str);
    let wanted = wanted.and_then(|node| node.get("name")?.as_str());
    let here = list.get(index);
    match wanted {
        Some(_) if here.and_then(name_of) == wanted => here,
        Some(_) => list.iter().find(|item| name_of(item) == wanted),
        None => here,
    }
}
