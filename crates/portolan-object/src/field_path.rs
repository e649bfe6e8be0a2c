//! Where a field is in an object, as in `spec.template.spec.containers[web].image`, and which line of a document wrote it.
//!
//! ```text
//! path ──find──▶ the value in a tree
//!      ──written_in──▶ the line of the document that has it, or has the nearest field above it
//! ```

use std::fmt;

use portolan_yaml::{Node, Position, Text};

/// The way from the root of an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FieldPath(Vec<FieldSegment>);

/// One segment of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldSegment {
    /// A key of a map.
    Key(Text),
    /// The item of a list that has this merge key; several keys are joined by `/`.
    Item(Text),
    /// The item at this index of a list, from 0. In a difference, the index of a removed or changed item is the old one
    /// and that of an added item the new one.
    Index(usize),
}

/// How far a document goes along a path.
#[derive(Debug, Clone, Copy)]
pub struct WrittenField<'n> {
    /// The value of the field, or of the nearest field above it that the document has.
    pub node: &'n Node,
    /// Where the key of that value is written; an item of a list and a whole document have no key, and begin there.
    pub at: Position,
    /// How many segments of the path the document has.
    pub depth: usize,
}

impl FieldPath {
    /// The path of the whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// The path of a field of the object itself.
    pub fn top(key: &str) -> Self {
        Self::root().key(key)
    }

    /// A path of map keys, whatever is in them.
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let key = |key| FieldSegment::Key(Text::from(key));
        keys.into_iter().map(key).collect()
    }

    /// Reads what [`fmt::Display`] prints: `spec.containers[0].image`, `metadata.labels["helm.sh/chart"]`. Keys with
    /// line breaks and other invisible characters do not read back. Never fails: what is missing at the end of a text
    /// counts as written.
    ///
    /// ```
    /// # use portolan_object::FieldPath;
    /// let label = FieldPath::from_keys(["metadata", "labels", "helm.sh/chart"]);
    /// assert_eq!(FieldPath::parse(r#"metadata.labels["helm.sh/chart"]"#), label);
    /// ```
    pub fn parse(text: &str) -> Self {
        let mut path = Self::root();
        let mut rest = text.trim_start_matches('.');
        while !rest.is_empty() {
            let segment = match rest.strip_prefix('[') {
                Some(inside) => {
                    let (segment, behind) = bracket(inside);
                    rest = behind;
                    segment
                }
                None => {
                    let end = rest.find(['.', '[']).unwrap_or(rest.len());
                    let (key, behind) = rest.split_at(end);
                    rest = behind;
                    FieldSegment::Key(Text::from(key))
                }
            };
            path.push(segment);
            rest = rest.trim_start_matches('.');
        }
        path
    }

    /// The path one key further down.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(FieldSegment::Key(Text::from(key)))
    }

    /// The path of an item of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(FieldSegment::Index(index))
    }

    /// The path one segment further down.
    #[must_use]
    pub fn then(&self, segment: FieldSegment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend(self.0.iter().cloned());
        segments.push(segment);
        Self(segments)
    }

    /// The path that leads on from the end of this one.
    #[must_use]
    pub fn join(&self, rest: &Self) -> Self {
        Self([self.segments(), rest.segments()].concat())
    }

    /// Goes one segment down.
    pub fn push(&mut self, segment: FieldSegment) {
        self.0.push(segment);
    }

    /// Goes one segment up; the root stays the root.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// The segments, from the root down.
    pub fn segments(&self) -> &[FieldSegment] {
        &self.0
    }

    /// Whether it is the whole object.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last key of a map on the path, which names what the value is.
    pub fn last_key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(FieldSegment::as_key)
    }

    /// Whether it lies at or below a dotted path; items of lists on the way are skipped.
    ///
    /// ```
    /// # use portolan_object::FieldPath;
    /// let image = FieldPath::parse("spec.containers[0].image");
    /// assert!(image.is_under("spec.containers.image") && image.is_under("spec"));
    /// assert!(!image.is_under("spec.volumes"));
    /// ```
    pub fn is_under(&self, dotted: &str) -> bool {
        let mut keys = self.0.iter().filter_map(FieldSegment::as_key);
        let mut wanted = dotted.split('.').filter(|key| !key.is_empty());
        wanted.all(|wanted| keys.next() == Some(wanted))
    }

    /// The value at the path; `None` if a segment leads nowhere, or if several items have the name of one.
    pub fn find<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        let mut segments = self.0.iter();
        segments.try_fold(root, |node, segment| segment.find(node))
    }

    /// The value at the path, to change it; `None` as for [`Self::find`], and for a path that names items.
    pub fn find_mut<'n>(&self, root: &'n mut Node) -> Option<&'n mut Node> {
        let mut segments = self.0.iter();
        segments.try_fold(root, |node, segment| match segment {
            FieldSegment::Key(key) => node.get_mut(key),
            FieldSegment::Index(index) => node.as_list_mut()?.items_mut().get_mut(*index),
            FieldSegment::Item(_) => None,
        })
    }

    /// Which line of a document wrote the field, or the nearest field above it that the document has.
    pub fn written_in<'n>(&self, document: &'n Node) -> WrittenField<'n> {
        self.written_for(document, document)
    }

    /// Which line of a document wrote a field of the object that was made from it. Items are matched by `name`, because
    /// patches move them.
    pub fn written_for<'n>(&self, document: &'n Node, made: &Node) -> WrittenField<'n> {
        let mut written = WrittenField {
            node: document,
            at: document.at,
            depth: 0,
        };
        let mut made = Some(made);
        for segment in &self.0 {
            let made_below = made.and_then(|made| segment.find(made));
            let Some((at, node)) = segment.written(written.node, made_below) else {
                break;
            };
            made = made_below;
            written = WrittenField {
                node,
                at,
                depth: written.depth + 1,
            };
        }
        written
    }

    /// Prints keys with dots in quotes after a dot, as differences show them: `metadata.labels."helm.sh/chart"`.
    pub fn dotted(&self) -> impl fmt::Display + '_ {
        Dotted(self)
    }
}

impl FieldSegment {
    /// The key, if it is one of a map.
    pub fn as_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Item(_) | Self::Index(_) => None,
        }
    }

    fn find<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        match self {
            Self::Key(key) => node.get(key),
            Self::Index(index) => node.as_list()?.get(*index),
            Self::Item(name) => {
                let has_name = |item: &&Node| {
                    let mut entries = item.as_map().into_iter().flatten();
                    entries.any(|entry| entry.value.as_str() == Some(name.as_str()))
                };
                let mut items = node.as_list()?.iter().filter(has_name);
                items.next().filter(|_| items.next().is_none())
            }
        }
    }

    /// One step down in a document, with the place of what is there; `made` is the value in what was made from it.
    fn written<'n>(&self, node: &'n Node, made: Option<&Node>) -> Option<(Position, &'n Node)> {
        match self {
            Self::Key(key) => {
                let mut entries = node.as_map()?.iter();
                let entry = entries.find(|entry| entry.key.as_str() == key.as_str())?;
                Some((entry.key.at, &entry.value))
            }
            Self::Index(index) => {
                let list = node.as_list()?;
                let item = match made.and_then(name_of) {
                    Some(name) if list.get(*index).and_then(name_of) != Some(name) => {
                        list.iter().find(|item| name_of(item) == Some(name))
                    }
                    _ => list.get(*index),
                };
                item.map(|item| (item.at, item))
            }
            Self::Item(_) => self.find(node).map(|item| (item.at, item)),
        }
    }
}

fn name_of(item: &Node) -> Option<&str> {
    item.get("name").and_then(Node::as_str)
}

/// Reads what stands after a `[`: an index, a quoted key or the name of an item.
fn bracket(inside: &str) -> (FieldSegment, &str) {
    if let Some(quote) = inside.chars().next().filter(|first| "\"'".contains(*first)) {
        let (key, behind) = quoted(&inside[1..], quote);
        let behind = behind.strip_prefix(']').unwrap_or(behind);
        return (FieldSegment::Key(Text::from(key)), behind);
    }
    let (word, behind) = inside.split_once(']').unwrap_or((inside, ""));
    let segment = match word.parse() {
        Ok(index) => FieldSegment::Index(index),
        Err(_) => FieldSegment::Item(Text::from(word)),
    };
    (segment, behind)
}

/// Reads up to the quote that ends a text; a backslash takes the next character as it is.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut key = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => key.extend(characters.next()),
            end if end == quote => break,
            other => key.push(other),
        }
    }
    (key, characters.as_str())
}

impl FromIterator<FieldSegment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = FieldSegment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

/// Keys that would be read as several stand in brackets and quotes: `metadata.labels["helm.sh/chart"]`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.0.iter().enumerate() {
            match segment {
                FieldSegment::Key(key) if is_plain(key) => {
                    f.write_str(if number == 0 { "" } else { "." })?;
                    f.write_str(key)?;
                }
                FieldSegment::Key(key) => write!(f, "[{:?}]", key.as_str())?,
                FieldSegment::Item(name) => write!(f, "[{name}]")?,
                FieldSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'$');
    !key.is_empty() && key.bytes().all(plain)
}

struct Dotted<'p>(&'p FieldPath);

impl fmt::Display for Dotted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.0.0.iter().enumerate() {
            match segment {
                FieldSegment::Key(key) => {
                    f.write_str(if number == 0 { "" } else { "." })?;
                    write_dotted_key(key, f)?;
                }
                FieldSegment::Item(name) => write!(f, "[{name}]")?,
                FieldSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn write_dotted_key(key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/');
    if !key.is_empty() && key.chars().all(is_word) {
        f.write_str(key)
    } else {
        write!(f, "\"{}\"", key.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn read(text: &str) -> Node {
        parse_one(text.to_owned(), Dialect::Kustomize).expect("YAML")
    }

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = FieldPath::parse("spec.containers")
            .then(FieldSegment::Item("web".into()))
            .key("args")
            .index(2);
        assert_eq!(path.to_string(), "spec.containers[web].args[2]");
        assert_eq!(path.dotted().to_string(), "spec.containers[web].args[2]");
        let label = FieldPath::parse("metadata.labels").key("helm.sh/chart");
        assert_eq!(label.to_string(), "metadata.labels[\"helm.sh/chart\"]");
        assert_eq!(
            label.dotted().to_string(),
            "metadata.labels.\"helm.sh/chart\""
        );
    }

    #[test]
    fn a_printed_path_reads_back() {
        for text in [
            "",
            "spec.containers[0].image",
            "spec.containers[web].image",
            "metadata.labels[\"helm.sh/chart\"]",
            "data[\"a\\\"]b\\\\\"].x",
            "[\"a.b\"]",
            "[3][4]",
        ] {
            assert_eq!(FieldPath::parse(text).to_string(), text);
        }
        let label = FieldPath::from_keys(["labels", "a.b/c"]);
        assert_eq!(FieldPath::parse(".labels['a.b/c']"), label);
        assert_eq!(FieldPath::parse("a[0"), FieldPath::top("a").index(0));
    }

    #[test]
    fn a_path_leads_to_its_field_or_nowhere() {
        let root = read("a: [{name: x, k: 1}, {name: y, k: 2}, {name: z}, {also: z}]");
        let find = |path: &str| FieldPath::parse(path).find(&root)?.as_i64();
        assert_eq!(find("a[y].k"), Some(2));
        assert_eq!(find("a[0].k"), Some(1));
        assert_eq!(find("a[w].k"), None);
        let twice = FieldPath::parse("a[z]");
        assert_eq!(twice.find(&root), None);
    }

    #[test]
    fn a_value_can_be_changed() {
        let mut root = read("a: [{k: 1}]");
        let path = FieldPath::parse("a[0].k");
        *path.find_mut(&mut root).expect("a value") = Node::string("new");
        assert_eq!(path.find(&root).and_then(Node::as_str), Some("new"));
        assert!(FieldPath::parse("a[1]").find_mut(&mut root).is_none());
    }

    #[test]
    fn the_line_of_a_field_is_that_of_its_key_or_of_the_nearest_one_above() {
        let root = read("spec:\n  ports:\n  - port: 1\n  - port: 2\n");
        let at = |path: &str| {
            let written = FieldPath::parse(path).written_in(&root);
            (written.at.line, written.at.column, written.depth)
        };
        assert_eq!(at(""), (1, 1, 0));
        assert_eq!(at("spec.ports"), (2, 3, 2));
        assert_eq!(at("spec.ports[1].port"), (4, 5, 4));
        assert_eq!(at("spec.ports[7].port"), (2, 3, 2));
        assert_eq!(at("metadata"), (1, 1, 0));
    }

    #[test]
    fn an_item_that_was_moved_is_found_by_its_name() {
        let written = read("list:\n- name: a\n  image: x\n- name: b\n  image: y\n");
        let made = read("list:\n- name: new\n- name: b\n  image: y\n- name: a\n  image: x\n");
        let line = |path: &str| FieldPath::parse(path).written_for(&written, &made).at.line;
        assert_eq!(line("list[2].image"), 3);
        assert_eq!(line("list[1].image"), 5);
        assert_eq!(line("list[0].image"), 1);
    }
}
