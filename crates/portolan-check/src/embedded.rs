//! Documents inside other documents: patches of a kustomization file, and the objects of a ResourceSet.
//!
//! ```text
//! kustomization file ──▶ patches in it, and the files of patches that it names
//! ResourceSet ──▶ `spec.resources`, and the documents of `spec.resourcesTemplate`
//! ```

use camino::Utf8Path;
use portolan_object::{FieldPath, FieldSegment, Object, Place, canonical_json};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Dialect, Node, Position, parse_bytes};

/// The names of kustomization files.
const KUSTOMIZATION_FILES: &[&str] = &["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A text that documents are written in: a whole file, or a block of one.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a Utf8Path,
    pub(crate) text: &'a str,
    /// Where the block begins in the file, and the file's text; none for a whole file.
    pub(crate) block: Option<(Position, &'a str)>,
}

/// How far a path is written in what a file holds for an object besides its own documents, and where that is.
pub(crate) fn find_embedded(
    files: &dyn Vfs,
    file: &Utf8Path,
    text: &str,
    object: &Object,
    path: &FieldPath,
) -> Option<(usize, Place)> {
    let documents = parse_bytes(text.as_bytes(), Dialect::Kustomize).ok()?;
    let mut found = Vec::new();
    if KUSTOMIZATION_FILES.contains(&file.file_name()?) {
        for document in &documents {
            found.extend(find_patched(files, file, text, document, object, path));
        }
    } else {
        for document in &documents {
            found.extend(find_made(file, text, document, object, path));
        }
    }
    // Of several patches the last one wins.
    found.into_iter().max_by_key(|(depth, _)| *depth)
}

/// Where patches of a kustomization file write a value; only the value itself counts, for it may be patched elsewhere.
fn find_patched(
    files: &dyn Vfs,
    file: &Utf8Path,
    text: &str,
    kustomization: &Node,
    object: &Object,
    path: &FieldPath,
) -> Vec<(usize, Place)> {
    let lists = ["patches", "patchesStrategicMerge", "patchesJson6902"];
    let entries = lists
        .iter()
        .filter_map(|list| kustomization.get(list)?.as_list());
    let mut found = Vec::new();
    for entry in entries.flat_map(|list| list.iter()) {
        // An older patch is the text itself, or the name of its file.
        let own =
            Some(entry).filter(|entry| entry.as_str().is_some_and(|text| text.contains('\n')));
        let inline = own.or_else(|| entry.get("patch"));
        if let Some((node, block)) = inline.and_then(|node| Some((node, node.as_str()?))) {
            let source = Source {
                file,
                text: block,
                block: Some((node.at, text)),
            };
            found.extend(source.patch(object, path));
            continue;
        }
        let named = entry.as_str().or_else(|| entry.get("path")?.as_str());
        let Some(file) = named.and_then(|name| Some(resolve(file.parent()?, name))) else {
            continue;
        };
        let bytes = files.read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let source = Source {
            file: &file,
            text: &text,
            block: None,
        };
        found.extend(source.patch(object, path));
    }
    found
}

/// Where a ResourceSet writes what it makes an object of.
fn find_made(
    file: &Utf8Path,
    text: &str,
    set: &Node,
    object: &Object,
    path: &FieldPath,
) -> Vec<(usize, Place)> {
    if set.get("kind").and_then(Node::as_str) != Some("ResourceSet") {
        return Vec::new();
    }
    let whole = Source {
        file,
        text,
        block: None,
    };
    let mut found = Vec::new();
    let resources = set.at_path(&["spec", "resources"]).and_then(Node::as_list);
    for resource in resources.into_iter().flat_map(|list| list.iter()) {
        found.extend(whole.object(resource, object, path));
    }
    let template = set.at_path(&["spec", "resourcesTemplate"]);
    if let Some((node, block)) = template.and_then(|node| Some((node, node.as_str()?))) {
        let source = Source {
            file,
            text: block,
            block: Some((node.at, text)),
        };
        // A text with loops in it is no YAML yet.
        let documents = parse_bytes(block.as_bytes(), Dialect::Kustomize);
        for document in &documents.unwrap_or_default() {
            found.extend(source.object(document, object, path));
        }
    }
    found
}

impl Source<'_> {
    /// How far a document for objects of this kind goes along the path.
    fn object(&self, document: &Node, object: &Object, path: &FieldPath) -> Option<(usize, Place)> {
        let text = |path: &[&str]| document.at_path(path).and_then(Node::as_str);
        let is_template = |name: &str| name.contains("<<");
        let name = text(&["metadata", "name"]).unwrap_or_default();
        let is_of_kind = text(&["kind"]) == Some(object.kind());
        if !is_of_kind || !(is_template(name) || name == object.name()) {
            return None;
        }
        let written = path.written_for(document, object.node());
        Some((written.depth, self.place(written.at)?))
    }

    /// Where a patch writes the value at a path.
    fn patch(&self, object: &Object, path: &FieldPath) -> Option<(usize, Place)> {
        let at = written_in_patch(self.text, object, path)?;
        Some((path.segments().len(), self.place(at)?))
    }

    /// A place in the file of a place in the text.
    pub(crate) fn place(&self, at: Position) -> Option<Place> {
        let Some((begin, whole)) = self.block else {
            return Some(Place::new(self.file.as_str().to_owned(), at));
        };
        let inner = at.line.checked_sub(1)?;
        let wanted = self.text.lines().nth(inner as usize)?;
        // The text begins on the line of its `|`, or on the next one.
        let lines = || {
            let lines = [begin.line + inner, begin.line + inner + 1].into_iter();
            lines.filter_map(|line| Some((line, whole.lines().nth(line.checked_sub(1)? as usize)?)))
        };
        let exact = lines().find(|(_, text)| text.trim() == wanted.trim());
        // A variable that was put into the text stands in the file by its name.
        let (line, text) = exact.or_else(|| lines().find(|(_, text)| text.contains("${")))?;
        let indent = |line: &str| line.len() - line.trim_start().len();
        let column = at.column + indent(text).saturating_sub(indent(wanted)) as u32;
        Some(Place::new(
            self.file.as_str().to_owned(),
            Position { line, column },
        ))
    }
}

/// Where the text of a patch writes the value at a path.
pub(crate) fn written_in_patch(text: &str, object: &Object, path: &FieldPath) -> Option<Position> {
    let documents = parse_bytes(text.as_bytes(), Dialect::Kustomize).ok()?;
    let wanted = path.find(object.node())?;
    documents
        .iter()
        .find_map(|document| match document.as_list() {
            Some(operations) => operations
                .iter()
                .find_map(|operation| written_by(operation, wanted, path)),
            None => merged_by(document, object, wanted, path),
        })
}

/// Where a patch that is merged writes a value.
fn merged_by(patch: &Node, object: &Object, wanted: &Node, path: &FieldPath) -> Option<Position> {
    if patch.get("kind").and_then(Node::as_str) != Some(object.kind()) {
        return None;
    }
    let written = path.written_for(patch, object.node());
    let is_whole = written.depth == path.segments().len();
    let value = path.find(patch).filter(|_| is_whole);
    // Items of lists may lie elsewhere in the patch.
    let mut segments = path.segments().iter();
    let is_item = segments.any(|segment| segment.as_key().is_none());
    (is_whole && (is_item || is_equal(value?, wanted))).then_some(written.at)
}

/// Where an operation of a JSON patch writes a value.
fn written_by(operation: &Node, wanted: &Node, path: &FieldPath) -> Option<Position> {
    let pointer = operation.get("path").and_then(Node::as_str)?;
    let steps: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    let (above, below) = path.segments().split_at_checked(steps.len())?;
    let is_it = above
        .iter()
        .zip(&steps)
        .all(|(segment, step)| match segment {
            FieldSegment::Key(key) => key.as_str() == step,
            FieldSegment::Index(index) => step == "-" || *step == index.to_string(),
            FieldSegment::Item(_) => false,
        });
    let value = operation.get("value").filter(|_| is_it)?;
    let below: FieldPath = below.iter().cloned().collect();
    let written = below.find(value)?;
    is_equal(written, wanted).then_some(written.at)
}

fn is_equal(one: &Node, other: &Node) -> bool {
    let is_variable = one.as_str().is_some_and(|text| text.contains("${"));
    // kustomize cuts the last line break of a patch.
    let ends_alike = |one: &str, other: &str| one.trim_end() == other.trim_end();
    let texts = one.as_str().zip(other.as_str());
    let is_text = texts.is_some_and(|(one, other)| ends_alike(one, other));
    is_variable
        || is_text
        || canonical_json(one).is_ok_and(|one| canonical_json(other).ok() == Some(one))
}
