//! Reads the fields of an object by type and collects all errors.

use portolan_yaml::{Map, Node, Position, Tag, Text, Value};

use super::NamespacedName;

/// A field that does not hold what its kind demands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` must be {wanted}")]
pub struct FieldError {
    /// The field's path, as in `spec.postBuild.substitute`.
    pub path: String,
    /// Where its value begins in the file it came from.
    pub at: Position,
    /// What it should be, as in `a string`.
    pub wanted: &'static str,
}

/// The errors found so far in one object.
pub(super) type Errors = Vec<FieldError>;

/// Reads an object's name and spec; all that is wrong when something is.
pub(super) fn read_object<T>(
    object: &Node,
    read: impl FnOnce(NamespacedName, &Fields<'_>, &mut Errors) -> T,
) -> Result<T, Vec<FieldError>> {
    let mut errors = Errors::new();
    let root = Fields::of(object);
    let metadata = root.map("metadata", &mut errors);
    let id = NamespacedName {
        namespace: metadata.text("namespace", &mut errors).unwrap_or_default(),
        name: metadata.required("name", &mut errors),
    };
    let spec = root.map("spec", &mut errors);
    let read = read(id, &spec, &mut errors);
    if errors.is_empty() {
        Ok(read)
    } else {
        Err(errors)
    }
}

/// A map being read, with the path that leads to it.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: Option<&'a Map>,
    path: String,
    at: Position,
}

impl<'a> Fields<'a> {
    /// The fields of a whole object.
    pub(super) fn of(object: &'a Node) -> Self {
        Self {
            map: object.as_map(),
            path: String::new(),
            at: object.at,
        }
    }

    /// Where the map begins.
    pub(super) fn at(&self) -> Position {
        self.at
    }

    /// Whether the map is there at all.
    pub(super) fn is_present(&self) -> bool {
        self.map.is_some()
    }

    /// The raw value of a field; null counts as absent, as in Go.
    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        self.map?.get(key).filter(|node| !node.is_null())
    }

    /// A map below this one; empty when absent.
    pub(super) fn map(&self, key: &str, errors: &mut Errors) -> Self {
        let node = self.node(key);
        let map = node.and_then(Node::as_map);
        if let (Some(node), None) = (node, map) {
            self.wrong(key, node, "a map", errors);
        }
        Self {
            map,
            path: self.join(key),
            at: node.map_or(self.at, |node| node.at),
        }
    }

    /// A string.
    pub(super) fn text(&self, key: &str, errors: &mut Errors) -> Option<Text> {
        let node = self.node(key)?;
        match node.as_scalar() {
            Some(scalar) if scalar.tag == Tag::Str => Some(scalar.text.clone()),
            _ => {
                self.wrong(key, node, "a string", errors);
                None
            }
        }
    }

    /// A string that must be there and not be empty.
    pub(super) fn required(&self, key: &str, errors: &mut Errors) -> Text {
        let before = errors.len();
        let text = self.text(key, errors).unwrap_or_default();
        if text.is_empty() && errors.len() == before {
            errors.push(FieldError {
                path: self.join(key),
                at: self.at,
                wanted: "set",
            });
        }
        text
    }

    /// A boolean, false when absent.
    pub(super) fn bool(&self, key: &str, errors: &mut Errors) -> bool {
        let Some(node) = self.node(key) else {
            return false;
        };
        node.as_bool().unwrap_or_else(|| {
            self.wrong(key, node, "true or false", errors);
            false
        })
    }

    /// A list of strings.
    pub(super) fn texts(&self, key: &str, errors: &mut Errors) -> Vec<Text> {
        let items = self.list(key, errors);
        // No more room than is needed, because what is read is kept for thousands of objects.
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(text) => texts.push(Text::from(text)),
                None => {
                    self.wrong(key, item, "a list of strings", errors);
                }
            }
        }
        texts
    }

    /// A map of strings; a value of another type is an error, as the API server has it.
    pub(super) fn pairs(&self, key: &str, errors: &mut Errors) -> Vec<(Text, Text)> {
        let fields = self.map(key, errors);
        let mut pairs = Vec::with_capacity(fields.map.map_or(0, Map::len));
        for entry in fields.map.into_iter().flatten() {
            match &entry.value.value {
                Value::Scalar(scalar) if scalar.tag == Tag::Str => {
                    pairs.push((entry.key.scalar.text.clone(), scalar.text.clone()));
                }
                _ => {
                    fields.wrong(entry.key.as_str(), &entry.value, "a string", errors);
                }
            }
        }
        pairs
    }

    /// The items of a list; none when absent.
    pub(super) fn list(&self, key: &str, errors: &mut Errors) -> &'a [Node] {
        let Some(node) = self.node(key) else {
            return &[];
        };
        let Some(list) = node.as_list() else {
            self.wrong(key, node, "a list", errors);
            return &[];
        };
        list.iter().as_slice()
    }

    /// The items of a list of maps.
    pub(super) fn maps(&self, key: &str, errors: &mut Errors) -> Vec<Self> {
        let mut maps = Vec::new();
        for (index, item) in self.list(key, errors).iter().enumerate() {
            let path = format!("{}[{index}]", self.join(key));
            if item.as_map().is_none() {
                errors.push(FieldError {
                    path: path.clone(),
                    at: item.at,
                    wanted: "a map",
                });
            }
            maps.push(Self {
                map: item.as_map(),
                path,
                at: item.at,
            });
        }
        maps
    }

    /// The error for a string that is none of those allowed.
    pub(super) fn wrong_kind(&self, key: &str, wanted: &'static str) -> FieldError {
        let at = self.node(key).map_or(self.at, |node| node.at);
        FieldError {
            path: self.join(key),
            at,
            wanted,
        }
    }

    fn wrong(&self, key: &str, node: &Node, wanted: &'static str, errors: &mut Errors) {
        errors.push(FieldError {
            path: self.join(key),
            at: node.at,
            wanted,
        });
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}
