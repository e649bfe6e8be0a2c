//! Where a field of an emitted object is written: the object's file is read again and followed key by key.
//!
//! A place is given only if the text there is the field's value, or contains variables. A value that comes from a
//! patch or a generator has no place here.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::{FieldPath, Object, Place, canonical_json};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Dialect, Node, Position, Text};

use crate::kustomization::generate;

/// A field in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) place: Place,
    /// The names of the variables that stand in it.
    pub(crate) variables: Vec<Text>,
}

/// Where a field with this value is written in the file of its object.
pub(crate) fn written(
    object: &Object,
    path: &FieldPath,
    value: &Node,
    files: &dyn Vfs,
) -> Option<Written> {
    let declared = object.place()?;
    let file = Utf8Path::new(declared.file.as_str());
    let documents = portolan_yaml::parse_bytes(&files.read(file).ok()?, Dialect::Kustomize).ok()?;
    let mut documents = documents.iter();
    let document = documents.find(|document| document.at == declared.at)?;
    let node = path.find(document)?;
    let variables = variables(node.as_str().unwrap_or_default());
    let means_it = || canonical_json(node).is_ok_and(|is| canonical_json(value).ok() == Some(is));
    let is_it = !variables.is_empty() || means_it();
    is_it.then(|| Written {
        place: Place::new(declared.file.clone(), node.at),
        variables,
    })
}

/// A place in the file of an object, if a word stands there: what a patch brought stands elsewhere.
pub(crate) fn written_here(
    object: &Object,
    at: Position,
    word: &str,
    files: &dyn Vfs,
) -> Option<Place> {
    let begins = object.place()?;
    if at.line < begins.at.line || at.line == 0 {
        return None;
    }
    let text = files.read(Utf8Path::new(begins.file.as_str()));
    let text = text.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().nth(at.line as usize - 1)?;
    // A word with variables in it stands there in another form.
    let is_there = line.contains(word) || line.contains("${");
    is_there.then(|| Place::new(begins.file.clone(), at))
}

/// Where a value of a YAML text is written that an object holds under a key of its data.
pub(crate) fn written_in_text(
    object: &Object,
    key: &str,
    text: &str,
    at: Position,
    files: &dyn Vfs,
) -> Option<Place> {
    let generated = || {
        let place = object.place()?;
        let kustomization = Utf8Path::new(place.file.as_str());
        let mut named = named_files(files, kustomization).into_iter();
        let is_it = |file: &Utf8PathBuf| files.read(file).is_ok_and(|is| is == text.as_bytes());
        Some(Place::new(named.find(is_it)?.into_string(), at))
    };
    written_in_block(object, key, text, at, files).or_else(generated)
}

/// A value in a block of text in the object's own file: its line must be there as it is in the text.
fn written_in_block(
    object: &Object,
    key: &str,
    text: &str,
    at: Position,
    files: &dyn Vfs,
) -> Option<Place> {
    let path = FieldPath::from_keys(["data", key]);
    let block = written(object, &path, &Node::string(text), files)?.place;
    let content = files.read(Utf8Path::new(block.file.as_str())).ok()?;
    let content = String::from_utf8(content).ok()?;
    let inner = at.line.checked_sub(1)?;
    let wanted = text.lines().nth(inner as usize)?.trim();
    // The text begins on the line of its `|`, or on the next one.
    let mut lines = [block.at.line + inner, block.at.line + inner + 1].into_iter();
    let is_it = |line: &u32| {
        let found = content.lines().nth(line.saturating_sub(1) as usize);
        found.is_some_and(|found| found.trim() == wanted)
    };
    Some(Place::line(block.file, lines.find(is_it)?))
}

/// The files that a kustomization file names: patches, what generators read. None for other files.
pub fn named_files(files: &dyn Vfs, kustomization: &Utf8Path) -> Vec<Utf8PathBuf> {
    let name = kustomization.file_name().unwrap_or_default();
    let (true, Some(directory)) = (generate::FILE_NAMES.contains(&name), kustomization.parent())
    else {
        return Vec::new();
    };
    let bytes = files.read(kustomization).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let words = text.split(|letter: char| letter.is_whitespace() || "\"',=[]{}".contains(letter));
    let paths = words
        .filter(|word| word.contains('.'))
        .map(|word| resolve(directory, word));
    paths.filter(|path| files.is_file(path)).collect()
}

/// The names in `${NAME}` and `${NAME:=default}`; `$${` is no variable.
fn variables(text: &str) -> Vec<Text> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let begins = text.match_indices("${");
    let begins = begins.filter(|(at, _)| !text.get(..*at).is_some_and(|is| is.ends_with('$')));
    let names = begins.map(|(at, _)| text.get(at + 2..).unwrap_or_default());
    let names = names.map(|rest| rest.split(|letter| !is_part(letter)).next());
    names
        .flatten()
        .filter(|name| !name.is_empty())
        .map(Text::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use portolan_object::{FieldSegment, Origin};
    use portolan_vfs::Memory;

    use super::*;

    /// The first object of a file.
    fn object(file: &str, text: &str) -> (Object, Memory) {
        let node = portolan_yaml::parse_one(text.to_owned(), Dialect::Kustomize).unwrap();
        let origin = Origin::read(Place::new(file, node.at));
        let object = Object::new(node, origin).unwrap();
        (object, [(file, text)].into_iter().collect())
    }

    #[test]
    fn a_field_is_found_where_its_value_stands_and_nowhere_else() {
        let text = "---\nkind: A\napiVersion: v1\nmetadata: {name: a}\nspec:\n- name: x\n  image: a:${TAG} $${NO}\n- name: y\n  image: b:1\n";
        let (object, files) = object("/a.yaml", text);
        let path = |item: &str| {
            let item = FieldPath::from_keys(["spec"]).then(FieldSegment::Item(Text::from(item)));
            item.join(&FieldPath::from_keys(["image"]))
        };
        let at = |item: &str, value: &str| {
            let written = written(&object, &path(item), &Node::string(value), &files)?;
            Some((written.place.to_string(), written.variables))
        };
        assert_eq!(at("y", "b:1"), Some(("/a.yaml:9".to_owned(), vec![])));
        assert_eq!(at("y", "b:2"), None, "a patch brought it");
        assert_eq!(at("z", "b:1"), None);
        let (place, variables) = at("x", "a:1 ${NO}").unwrap();
        assert_eq!(
            (place.as_str(), variables),
            ("/a.yaml:7", vec!["TAG".into()])
        );
    }

    #[test]
    fn a_value_in_a_text_is_found_in_its_block_or_in_the_file_it_was_made_of() {
        let values = "# why\nimage:\n  tag: 1\n";
        let at = Position { line: 3, column: 8 };
        let block = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  values.yaml: |\n    # why\n    image:\n      tag: 1\n";
        let (own, files) = object("/a.yaml", block);
        let place = written_in_text(&own, "values.yaml", values, at, &files).unwrap();
        assert_eq!(place.to_string(), "/a.yaml:8");

        let (generated, mut files) = object(
            "/app/kustomization.yaml",
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {x: \"files=values.yaml\"}\n",
        );
        files.insert("/app/values.yaml", values);
        let place = written_in_text(&generated, "values.yaml", values, at, &files).unwrap();
        assert_eq!(place.to_string(), "/app/values.yaml:3");
    }
}
