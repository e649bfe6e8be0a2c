//! An object of any kind.

use std::collections::BTreeMap;

use portolan_object::{FieldPath, NameRule, label_key_problems, label_value_problems};
use portolan_yaml::{Dialect, Entry, Node, Position, from_json, parse_one_strict};
use prost::Message;
use serde_json::{Map, Value, json};

use crate::codec::{DecodeError, decode, encode};
use crate::definition::{KindDefinition, find_kind};
use crate::fault::{Faults, FieldFault};
use crate::kinds::KINDS;
use crate::read::{advice, read_message};
use crate::schema::{MessageSchema, message};
use crate::unstorable::unstorable;
use crate::wire::Metadata;
use crate::{codec, rule};

/// The version of the API that all kinds have.
pub const VERSION: &str = "v1alpha";

/// The most bytes of a spec. A store record has room for twice as much.
pub const MAX_OBJECT_BYTES: usize = 256 << 10;

/// The most bytes of all annotations together, as in Kubernetes.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;
/// The most bytes of a name: a key of the store has room for it.
const MAX_NAME_BYTES: usize = 253;
/// The most labels, owners and finalizers of an object.
const MAX_LABELS: usize = 256;

/// An object of any kind: what its author wishes for, and what was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct KindObject {
    /// Its kind.
    pub kind: &'static KindDefinition,
    /// Name, labels and what the server adds.
    pub metadata: Metadata,
    /// The spec in canonical JSON, defaults included.
    pub spec: Value,
    /// The status in canonical JSON; null without one.
    pub status: Value,
}

impl KindObject {
    /// Reads an object in YAML or JSON, sets defaults and checks everything.
    ///
    /// # Errors
    /// Every fault that was found.
    pub fn read_text(text: &str) -> Result<Self, Vec<FieldFault>> {
        let failed = |at: Position, message: &str| {
            vec![FieldFault {
                path: String::new(),
                at,
                message: message.to_owned(),
                hint: None,
            }]
        };
        let is_json = text.trim_start().starts_with('{');
        // A map in braces may be YAML too.
        let json = is_json.then(|| from_json(text).ok()).flatten();
        let node = match json {
            Some(node) => node,
            None => parse_one_strict(text.to_owned(), Dialect::Kustomize).map_err(|errors| {
                let first = errors.first();
                failed(first.at, &first.message)
            })?,
        };
        Self::read(&node)
    }

    /// Reads an object, sets defaults and checks everything.
    ///
    /// # Errors
    /// Every fault that was found.
    pub fn read(node: &Node) -> Result<Self, Vec<FieldFault>> {
        let mut faults = Faults::of(Some(node));
        let read = read_object(node, &mut faults);
        match read {
            Some(object) if faults.is_empty() => Ok(object),
            _ => Err(faults.into_sorted()),
        }
    }

    /// An object made by the server itself. Its spec must be valid.
    pub fn new(
        kind: &'static KindDefinition,
        name: &str,
        namespace: Option<&str>,
        spec: Value,
    ) -> Self {
        Self {
            kind,
            metadata: Metadata {
                name: Some(name.to_owned()),
                namespace: namespace.map(str::to_owned),
                ..Metadata::default()
            },
            spec,
            status: Value::Null,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata.name()
    }

    /// Its namespace, if its kind has one.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_deref()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key).map(String::as_str)
    }

    /// The object as canonical JSON.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "apiVersion": VERSION,
            "kind": self.kind.name,
            "metadata": metadata_json(&self.metadata),
            "spec": self.spec,
        });
        if !self.status.is_null() {
            object["status"] = self.status.clone();
        }
        object
    }

    /// A field by its path, as in `spec.ref`.
    pub fn field(&self, path: &str) -> Option<Value> {
        let (part, rest) = path.split_once('.').unwrap_or((path, ""));
        let metadata;
        let mut value = match part {
            "spec" => &self.spec,
            "status" => &self.status,
            "metadata" => {
                metadata = metadata_json(&self.metadata);
                &metadata
            }
            _ => return None,
        };
        for step in rest.split('.').filter(|step| !step.is_empty()) {
            value = value.get(step)?;
        }
        Some(value.clone())
    }

    /// The bytes of the spec.
    pub fn spec_bytes(&self) -> Vec<u8> {
        encode(spec_schema(self.kind), &self.spec)
    }

    /// The bytes of the status.
    pub fn status_bytes(&self) -> Vec<u8> {
        status_schema(self.kind).map_or_else(Vec::new, |schema| encode(schema, &self.status))
    }

    /// The fields of the status that its kind does not have, or whose values it does not know; [`Self::status_bytes`]
    /// leaves them out. Empty for a status that can be stored whole.
    pub fn unstorable_status(&self) -> Vec<FieldPath> {
        match status_schema(self.kind) {
            _ if self.status.is_null() => Vec::new(),
            Some(schema) => unstorable(schema, &self.status),
            None => vec![FieldPath::root()],
        }
    }

    /// The spec as the generated message of its kind.
    ///
    /// # Errors
    /// When `T` is the message of another kind.
    pub fn typed_spec<T: Message + Default>(&self) -> Result<T, DecodeError> {
        typed(&self.spec_bytes())
    }

    /// The status as the generated message of its kind.
    ///
    /// # Errors
    /// When `T` is the message of another kind.
    pub fn typed_status<T: Message + Default>(&self) -> Result<T, DecodeError> {
        typed(&self.status_bytes())
    }

    /// Sets the spec from bytes.
    ///
    /// # Errors
    /// When the bytes are no spec of the kind.
    pub fn set_spec_bytes(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.spec = decode(spec_schema(self.kind), bytes)?;
        Ok(())
    }

    /// Sets the status from bytes.
    ///
    /// # Errors
    /// When the bytes are no status of the kind.
    pub fn set_status_bytes(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.status = match status_schema(self.kind) {
            Some(schema) => decode(schema, bytes)?,
            None => Value::Null,
        };
        Ok(())
    }

    /// Sets the status from the generated message of its kind.
    ///
    /// # Errors
    /// When the message is one of another kind.
    pub fn set_status(&mut self, status: &impl Message) -> Result<(), DecodeError> {
        self.set_status_bytes(&status.encode_to_vec())
    }
}

fn typed<T: Message + Default>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::decode(bytes).map_err(|error| DecodeError::Damaged(error.to_string()))
}

fn spec_schema(kind: &KindDefinition) -> &'static MessageSchema {
    message(kind.spec).expect("every kind has a message, which a test checks")
}

fn status_schema(kind: &KindDefinition) -> Option<&'static MessageSchema> {
    kind.status.and_then(message)
}

fn metadata_schema() -> &'static MessageSchema {
    message("Metadata").expect("the message is generated")
}

/// Metadata as canonical JSON.
fn metadata_json(metadata: &Metadata) -> Value {
    let decoded = decode(metadata_schema(), &metadata.encode_to_vec());
    decoded.unwrap_or_else(|_| Value::Object(Map::new()))
}

fn read_object(node: &Node, faults: &mut Faults<'_>) -> Option<KindObject> {
    let Some(map) = node.as_map() else {
        let what = "an object must be a map with `kind`, `metadata` and `spec`";
        faults.add(&FieldPath::default(), what);
        return None;
    };
    for Entry { key, .. } in map {
        let known = ["apiVersion", "kind", "metadata", "spec", "status"];
        if !known.contains(&key.as_str()) {
            let path = FieldPath::top(key.as_str());
            faults.add_key(
                key.at,
                &path,
                "is not a field",
                Some(advice(key.as_str(), &known)),
            );
        }
    }
    let version = read_type(node, "apiVersion", faults);
    if let Some(version) = version.filter(|version| *version != VERSION) {
        let message = format!("must be `{VERSION}`, not `{version}`");
        faults.add(&FieldPath::top("apiVersion"), message);
    }
    let name = read_type(node, "kind", faults)?;
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let hint = match find_kind(name) {
            Some(kind) => format!("did you mean `{}`?", kind.name),
            None => advice(name, &KINDS.map(|kind| kind.name)),
        };
        faults.add_hint(
            &FieldPath::top("kind"),
            format!("`{name}` is not known"),
            Some(hint),
        );
        return None;
    };
    let metadata = read_metadata(node, kind, faults);
    let spec = read_spec(node, kind, faults);
    Some(KindObject {
        kind,
        metadata,
        spec,
        status: Value::Null,
    })
}

/// `apiVersion` or `kind`, at the top or inside `metadata`.
fn read_type<'n>(node: &'n Node, key: &str, faults: &mut Faults<'_>) -> Option<&'n str> {
    let top = node.get(key);
    let inside = node.get("metadata").and_then(|metadata| metadata.get(key));
    let (top_path, inside_path) = (FieldPath::top(key), FieldPath::top("metadata").key(key));
    let mut text = |node: Option<&'n Node>, path: &FieldPath| {
        let text = node.map(|node| node.as_str().unwrap_or_default());
        if text == Some("") {
            faults.add(path, "must be a text");
        }
        text.filter(|text| !text.is_empty())
    };
    match (text(top, &top_path), text(inside, &inside_path)) {
        (Some(top), Some(inside)) if top != inside => {
            let message = format!("is `{inside}`, but the one at the top is `{top}`");
            faults.add(&inside_path, message);
            Some(top)
        }
        (Some(text), _) | (None, Some(text)) => Some(text),
        (None, None) if top.is_none() && inside.is_none() => {
            faults.add(&top_path, "must be there");
            None
        }
        (None, None) => None,
    }
}

fn read_metadata(node: &Node, kind: &KindDefinition, faults: &mut Faults<'_>) -> Metadata {
    let path = FieldPath::top("metadata");
    let Some(written) = node.get("metadata").filter(|node| !node.is_null()) else {
        faults.add(&path, "must be there");
        return Metadata::default();
    };
    // The type may stand here too; it has been read.
    let mut written = written.clone();
    if let Some(map) = written.as_map_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    let value = read_message(metadata_schema(), &written, &path, faults);
    let bytes = codec::encode(metadata_schema(), &value);
    let metadata = Metadata::decode(&*bytes).unwrap_or_default();
    check_metadata(&metadata, kind, &path, faults);
    metadata
}

fn check_metadata(
    metadata: &Metadata,
    kind: &KindDefinition,
    path: &FieldPath,
    faults: &mut Faults<'_>,
) {
    match metadata.name() {
        "" => faults.add(&path.key("name"), "must be there"),
        name if name.len() > MAX_NAME_BYTES => {
            faults.add(
                &path.key("name"),
                format!("must have at most {MAX_NAME_BYTES} bytes"),
            );
        }
        name if !kind.names.fits(name) => faults.add(&path.key("name"), kind.names.to_string()),
        _ => {}
    }
    match &metadata.namespace {
        Some(_) if !kind.is_namespaced => {
            let message = format!("must not be there: {} is a global kind", kind.name);
            faults.add(&path.key("namespace"), message);
        }
        Some(namespace) if !NameRule::Label.fits(namespace) => {
            faults.add(&path.key("namespace"), NameRule::Label.to_string());
        }
        _ => {}
    }
    let texts = |map: &BTreeMap<String, String>| {
        map.iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>()
    };
    if texts(&metadata.annotations) > MAX_ANNOTATION_BYTES {
        let message = format!("must have at most {MAX_ANNOTATION_BYTES} bytes in all");
        faults.add(&path.key("annotations"), message);
    }
    for (key, value) in &metadata.labels {
        let problems = label_key_problems(key)
            .into_iter()
            .chain(label_value_problems(value));
        for problem in problems {
            faults.add(&path.key("labels").key(key), problem);
        }
    }
    for key in metadata.annotations.keys() {
        for problem in label_key_problems(key) {
            faults.add(&path.key("annotations").key(key), problem);
        }
    }
    let counts = [
        ("labels", metadata.labels.len()),
        ("owners", metadata.owners.len()),
        ("finalizers", metadata.finalizers.len()),
    ];
    for (name, _) in counts.into_iter().filter(|(_, count)| *count > MAX_LABELS) {
        faults.add(
            &path.key(name),
            format!("must have at most {MAX_LABELS} entries"),
        );
    }
    for (index, finalizer) in metadata.finalizers.iter().enumerate() {
        for problem in label_key_problems(finalizer) {
            faults.add(&path.key("finalizers").index(index), problem);
        }
    }
    for (index, owner) in metadata.owners.iter().enumerate() {
        let at = path.key("owners").index(index);
        if KINDS.iter().all(|kind| kind.name != owner.kind()) {
            faults.add(&at.key("kind"), "must be a kind");
        }
        if owner.name().is_empty() || owner.uuid().is_empty() {
            faults.add(&at, "must have a `name` and a `uuid`");
        }
    }
}

fn read_spec(node: &Node, kind: &'static KindDefinition, faults: &mut Faults<'_>) -> Value {
    let path = FieldPath::top("spec");
    let nothing = Node::map();
    let written = node.get("spec").unwrap_or(&nothing);
    let mut spec = read_message(spec_schema(kind), written, &path, faults);
    rule::set_defaults(kind.rules, &mut spec);
    rule::check(kind.rules, &spec, faults);
    (kind.check)(&spec, faults);
    if encode(spec_schema(kind), &spec).len() > MAX_OBJECT_BYTES {
        faults.add(&path, format!("must have at most {MAX_OBJECT_BYTES} bytes"));
    }
    spec
}

/// A field as text for a table or a selector: lists joined by commas, maps as their keys.
pub fn field_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(field_text).collect::<Vec<_>>().join(","),
        Value::Object(map) => map.keys().map(String::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
