//! The line of a repository that a value of a rendered object comes from.
//!
//! An object remembers the files it was read from and patched by. The value is looked up in them, newest first, with
//! [`FieldPath::written_for`]. A value that no file has (a template made it) gets the place of the object itself.

use camino::Utf8Path;
use portolan_object::{FieldPath, Object, Place, Step, holds_placeholder};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node, Position, parse_bytes};

use crate::embedded::find_embedded;
use crate::finding::Subject;

/// Where the value of a path was written, or the nearest thing above it that was.
pub(crate) fn locate(files: &dyn Vfs, object: &Object, path: &FieldPath) -> Option<Place> {
    let mut nearest: Option<(usize, Place)> = None;
    let origin = object.origin();
    for step in origin.newest_first() {
        let Some((depth, place)) = find(files, step, object, path) else {
            continue;
        };
        if nearest.as_ref().is_none_or(|(deepest, _)| depth > *deepest) {
            nearest = Some((depth, place));
        }
    }
    let found = nearest.map(|(_, place)| place);
    found.or_else(|| object.place())
}

/// Whether a value stands for one that only the cluster knows: nothing can be said against it here.
pub(crate) fn is_unknown(subject: &Subject<'_>, path: &FieldPath) -> bool {
    let scalar = path.find(subject.object.node()).and_then(Node::as_scalar);
    scalar.is_some_and(|scalar| {
        holds_placeholder(&scalar.text) || (subject.lacks_variables && scalar.text.contains("${"))
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
    let written = path.written_for(document, object.node());
    (written.at.line > 0).then(|| (written.depth, Place::new(place.file.clone(), written.at)))
}

/// The document that begins at a line, or the one that holds it; it must be of the object's kind.
fn document_at<'a>(documents: &'a [Node], at: Position, object: &Object) -> Option<&'a Node> {
    let of_kind = |node: &&Node| node.get("kind").and_then(Node::as_str) == Some(object.kind());
    let candidates = documents.iter().filter(of_kind);
    let mut before = candidates.filter(|node| at.line == 0 || node.at.line <= at.line.max(1));
    before.next_back()
}
