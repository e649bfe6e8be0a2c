//! The secret values that are known in a run, collected so that none reaches a screen, a log or a file by accident.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use portolan_object::{FieldPath, FieldSegment, Object, OwnerKind};
use portolan_yaml::{Node, Value};

use crate::HIDDEN;
use crate::mask::Mask;
use crate::texts::{SEALED, SecretTexts};

/// How deep trees are compared; decryption refuses deeper ones before.
const MAX_DEPTH: usize = 256;

/// The secrets of a run.
#[derive(Default)]
pub struct KnownSecrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    texts: SecretTexts,
    /// Finds the texts; made when it is needed, and again when there are more of them.
    mask: Option<(usize, Arc<Mask>)>,
    /// The values of Secrets that were taken in, to take each in once.
    data: HashSet<(String, Vec<u8>)>,
    /// The fields of objects that were decrypted, whatever is in them.
    fields: BTreeMap<ObjectName, Vec<FieldPath>>,
}

/// Kind, namespace and name.
type ObjectName = [String; 3];

impl KnownSecrets {
    /// Takes in a secret text with all the values in it; `key` is what it is called.
    pub fn add_text(&self, key: &str, text: &str) {
        self.state.lock().texts.add_text(key, text);
    }

    /// Takes in values of a Secret, each with its key. What was taken in before costs little.
    pub fn add_data<'a>(&self, values: impl Iterator<Item = (&'a str, &'a [u8])>) {
        let state = &mut *self.state.lock();
        for (key, value) in values {
            if state.data.insert((key.to_owned(), value.to_vec())) {
                let text = String::from_utf8_lossy(value);
                state.texts.add_text(key, &text);
            }
        }
    }

    /// Takes in the values of a declared Secret; other objects have none.
    pub fn add_secret(&self, secret: &Object) {
        let texts = &mut self.state.lock().texts;
        texts.add_secret(secret, OwnerKind::Kustomization);
    }

    /// Takes in what of a document was encrypted.
    pub fn add_opened(&self, sealed: &Node, plain: &Node) {
        let mut opened = Vec::new();
        collect_opened(
            sealed,
            plain,
            &mut FieldPath::root(),
            &mut opened,
            MAX_DEPTH,
        );
        let state = &mut *self.state.lock();
        for (path, text) in &opened {
            let key = path.last_key().unwrap_or_default();
            state.texts.add_text(key, text);
        }
        if let Some(name) = object_name(plain) {
            let fields = opened.into_iter().map(|(path, _)| path).collect();
            state.fields.insert(name, fields);
        }
    }

    /// Takes in what of a document stays sealed for want of a key, and what stands for it: numbers and booleans are
    /// hidden, for nothing shows that they are not what was written. A text shows it itself.
    pub fn add_closed(&self, sealed: &Node, closed: &Node) {
        let mut left = Vec::new();
        collect_opened(sealed, closed, &mut FieldPath::root(), &mut left, MAX_DEPTH);
        let state = &mut *self.state.lock();
        left.retain(|(path, text)| {
            let is_text = path
                .find(closed)
                .is_some_and(|node| node.as_str().is_some());
            if let (false, Ok(number)) = (is_text, text.parse()) {
                state.texts.add_placeholder_number(number);
            }
            !is_text
        });
        if let (Some(name), false) = (object_name(closed), left.is_empty()) {
            let fields = left.into_iter().map(|(path, _)| path).collect();
            state.fields.insert(name, fields);
        }
    }

    /// Finds everything that is known by now.
    pub fn mask(&self) -> Arc<Mask> {
        let state = &mut *self.state.lock();
        let count = state.texts.len();
        match &state.mask {
            Some((made_of, mask)) if *made_of == count => Arc::clone(mask),
            _ => {
                let mask = Arc::new(Mask::new(&state.texts));
                state.mask = Some((count, Arc::clone(&mask)));
                mask
            }
        }
    }

    /// Returns an object with the fields hidden that were decrypted in it; `None` if there is none.
    pub fn hide_opened_fields(&self, object: &Object) -> Option<Node> {
        let state = self.state.lock();
        if state.fields.is_empty() {
            return None;
        }
        let name = [object.kind(), object.namespace(), object.name()].map(str::to_owned);
        let fields = state
            .fields
            .get(&name)
            .filter(|fields| !fields.is_empty())?;
        let mut shown = object.node().clone();
        for field in fields {
            if let Some(value) = field.find_mut(&mut shown) {
                *value = Node::string(HIDDEN);
            }
        }
        Some(shown)
    }
}

fn object_name(object: &Node) -> Option<ObjectName> {
    let text = |path: &[&str]| Some(object.at_path(path)?.as_str()?.to_owned());
    let namespace = text(&["metadata", "namespace"]).unwrap_or_default();
    Some([text(&["kind"])?, namespace, text(&["metadata", "name"])?])
}

fn collect_opened(
    sealed: &Node,
    plain: &Node,
    path: &mut FieldPath,
    opened: &mut Vec<(FieldPath, String)>,
    depth: usize,
) {
    if depth == 0 {
        return;
    }
    match (&sealed.value, &plain.value) {
        (Value::Map(sealed), Value::Map(plain)) => {
            for entry in plain {
                if let Some(sealed) = sealed.get(entry.key.as_str()) {
                    path.push(FieldSegment::Key(entry.key.scalar.text.clone()));
                    collect_opened(sealed, &entry.value, path, opened, depth - 1);
                    path.pop();
                }
            }
        }
        (Value::List(sealed), Value::List(plain)) => {
            for (at, (sealed, plain)) in sealed.iter().zip(plain).enumerate() {
                path.push(FieldSegment::Index(at));
                collect_opened(sealed, plain, path, opened, depth - 1);
                path.pop();
            }
        }
        (Value::Scalar(sealed), Value::Scalar(plain)) if sealed.text.starts_with(SEALED) => {
            opened.push((path.clone(), plain.text.to_string()));
        }
        _ => {}
    }
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KnownSecrets({:?})", self.state.lock().texts)
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn read(text: &str) -> Node {
        parse_one(text.to_owned(), Dialect::Kustomize).expect("YAML")
    }

    fn opened() -> KnownSecrets {
        let known = KnownSecrets::default();
        known.add_opened(
            &read("kind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'ENC[AES256_GCM,x]', b: 'ENC[AES256_GCM,y]', c: 'on'}\n"),
            &read("kind: ConfigMap\nmetadata: {name: c}\ndata: {a: aHVudGVyMg==, b: 'on', c: 'on'}\n"),
        );
        known
    }

    #[test]
    fn what_was_encrypted_is_hidden_in_either_form() {
        let text = "cannot log in with hunter2 (aHVudGVyMg==) to a host that is on";
        assert_eq!(
            opened().mask().text(text),
            "cannot log in with <hidden> (<hidden>) to a host that is on"
        );
    }

    #[test]
    fn a_field_that_was_encrypted_is_hidden_whatever_it_says() {
        let object = read(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: 'on', c: 'on'}\n",
        );
        let object = Object::new(object, portolan_object::Origin::default()).expect("an object");
        let shown = opened().hide_opened_fields(&object).expect("hidden");
        let text = |key| shown.at_path(&["data", key]).and_then(Node::as_str);
        assert_eq!((text("b"), text("c")), (Some(HIDDEN), Some("on")));
    }

    #[test]
    fn what_is_known_is_not_printed() {
        assert!(!format!("{:?}", opened()).contains("hunter"));
    }
}
