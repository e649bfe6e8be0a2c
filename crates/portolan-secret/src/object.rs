//! Secrets as they may be shown: with their keys and without their values.

use portolan_object::Gvk;
use portolan_yaml::{Entry, Map, Node, Value};

use crate::HIDDEN;

/// The fields of a Secret that hold its values.
const VALUE_FIELDS: [&str; 2] = ["data", "stringData"];

/// The fields of a Secret that hold none. Any other field is a mistake, most likely a misspelt one of values.
const PLAIN_FIELDS: [&str; 6] = [
    "apiVersion",
    "kind",
    "metadata",
    "type",
    "immutable",
    "sops",
];

/// Holds the whole object again, as `kubectl apply` leaves it.
const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How deep lists of lists are looked into.
const MAX_LISTS: usize = 4;

/// Whether an object's values are secret by its kind.
pub fn is_secret(gvk: &Gvk) -> bool {
    gvk.is("", "Secret")
}

/// Returns a Secret with its values hidden, or a list with those of its Secrets; `None` for what holds no value to hide.
///
/// Each key, also those of `stringData`, stands under `data` with [`HIDDEN`], which is not base64: an API server refuses
/// the object. Of a field that has not the form it should have, nothing is shown.
pub fn hide_values(object: &Node) -> Option<Node> {
    hide_within(object, MAX_LISTS)
}

fn hide_within(object: &Node, lists: usize) -> Option<Node> {
    if is_secret_node(object) {
        return hide_secret(object);
    }
    let kind = object.get("kind").and_then(Node::as_str)?;
    if !kind.ends_with("List") || lists == 0 {
        return None;
    }
    let mut is_changed = false;
    let mut shown = object.clone();
    for item in shown.get_mut("items")?.as_list_mut()?.items_mut() {
        let hidden = match kind {
            // Items of a typed list need not say what they are.
            "SecretList" => hide_secret(item),
            _ => hide_within(item, lists - 1),
        };
        if let Some(hidden) = hidden {
            *item = hidden;
            is_changed = true;
        }
    }
    is_changed.then_some(shown)
}

/// Also one whose `apiVersion` is missing or wrong.
fn is_secret_node(object: &Node) -> bool {
    let text = |field| object.get(field).and_then(Node::as_str);
    text("kind") == Some("Secret")
        && text("apiVersion").is_none_or(|version| !version.contains('/'))
}

fn hide_secret(secret: &Node) -> Option<Node> {
    let fields = secret.as_map()?;
    let hidden = hidden_data(secret);
    let mut is_changed = hidden.is_some();
    let mut hidden = hidden;
    let mut shown = Map::new();
    for Entry { key, value } in fields {
        let name = key.as_str();
        let value = if VALUE_FIELDS.contains(&name) {
            // Both fields become one, where the first of them stands.
            match hidden.take() {
                Some(data) => {
                    shown.insert("data", data);
                    continue;
                }
                None if is_changed => continue,
                None => value.clone(),
            }
        } else if PLAIN_FIELDS.contains(&name) {
            value.clone()
        } else {
            is_changed = true;
            Node::string(HIDDEN)
        };
        shown.insert(key.clone(), value);
    }
    let mut shown = Node {
        value: Value::Map(shown),
        at: secret.at,
    };
    is_changed |= hide_copy(&mut shown);
    is_changed.then_some(shown)
}

/// What stands under `data` for both fields of values; `None` if there is no value.
fn hidden_data(secret: &Node) -> Option<Node> {
    let fields = VALUE_FIELDS.iter().filter_map(|field| secret.get(field));
    let mut data = Map::new();
    let mut is_malformed = false;
    for field in fields {
        match &field.value {
            Value::Map(values) => {
                for entry in values {
                    data.insert(entry.key.clone(), Node::string(HIDDEN));
                }
            }
            Value::Scalar(_) if field.is_null() => {}
            Value::Scalar(_) | Value::List(_) => is_malformed = true,
        }
    }
    if is_malformed {
        return Some(Node::string(HIDDEN));
    }
    (!data.is_empty()).then(|| Node::new(Value::Map(data)))
}

fn hide_copy(secret: &mut Node) -> bool {
    let annotations = secret
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"));
    let Some(copy) = annotations.and_then(|annotations| annotations.get_mut(COPY)) else {
        return false;
    };
    *copy = Node::string(HIDDEN);
    true
}

/// The fields of a Secret that hold its values, with their names, where they have the form they should have.
pub(crate) fn value_maps(secret: &Node) -> impl Iterator<Item = (&'static str, &Map)> {
    VALUE_FIELDS
        .iter()
        .filter_map(|field| Some((*field, secret.get(field)?.as_map()?)))
}

/// Whether a field of a Secret, named by the keys that lead to it, holds values.
pub fn holds_values(keys: &[&str]) -> bool {
    match keys {
        [] => false,
        [field, ..] if !PLAIN_FIELDS.contains(field) => true,
        _ => keys.last() == Some(&COPY),
    }
}

/// Whether a line of a text, from 1, lies in a document of kind Secret or in a list of Secrets, even in one that cannot
/// be read.
pub fn is_in_secret(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let is_border = |line: &&str| line.starts_with("---");
    let (before, after) = lines.split_at(line.saturating_sub(1).min(lines.len()));
    let first = before.iter().rposition(is_border).unwrap_or(0);
    let after = after
        .iter()
        .take(1)
        .chain(after.iter().skip(1).take_while(|line| !is_border(line)));
    let document: Vec<&str> = before[first..].iter().chain(after).copied().collect();
    let is_block = |line: &&&str| {
        line.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '"')
    };
    let is_list = document
        .iter()
        .filter(is_block)
        .any(|line| names_kind(line, "List"));
    // Other kinds name Secrets too, but not at the left edge.
    let is_block_document = document.iter().any(|line| is_block(&line)) && !is_list;
    document
        .iter()
        .filter(|line| !is_block_document || is_block(line))
        .any(|line| names_kind(line, "Secret"))
}

/// `kind: Secret`, with or without quotes, alone on a line or among other fields.
fn names_kind(line: &str, kind: &str) -> bool {
    let compact: String = line
        .chars()
        .filter(|letter| !matches!(letter, ' ' | '\t' | '"' | '\''))
        .collect();
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([',', '}', '#']);
    let wanted = format!("kind:{kind}");
    let mut places = compact.match_indices(&wanted);
    places.any(|(at, found)| ends(&compact[at + found.len()..]))
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one, write_kustomize};

    use super::*;

    fn check(object: &str, expected: &str) {
        let node = parse_one(object.to_owned(), Dialect::Kustomize).expect("YAML");
        let shown = hide_values(&node).unwrap_or(node);
        assert_eq!(
            write_kustomize(&shown).expect("printable"),
            expected,
            "{object}"
        );
    }

    #[test]
    fn every_key_stands_under_data_without_its_value() {
        check(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {b: PLANT}\ndata: {a: UExBTlQ=}\ntype: Opaque\n",
            "apiVersion: v1\ndata:\n  a: <hidden>\n  b: <hidden>\nkind: Secret\nmetadata:\n  name: s\ntype: Opaque\n",
        );
    }

    #[test]
    fn of_a_malformed_secret_nothing_is_shown() {
        for fields in [
            "data: PLANT",
            "stringData: [PLANT]",
            "data: {a: b}\nstringData: PLANT",
        ] {
            check(
                &format!("apiVersion: v1\nkind: Secret\n{fields}\n"),
                "apiVersion: v1\ndata: <hidden>\nkind: Secret\n",
            );
        }
        check(
            "kind: Secret\nstringdata: {a: PLANT}\n",
            "kind: Secret\nstringdata: <hidden>\n",
        );
    }

    #[test]
    fn a_secret_without_values_and_other_kinds_stay() {
        for object in [
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\ntype: kubernetes.io/service-account-token\n",
            "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\n",
            "apiVersion: example.org/v1\ndata:\n  a: b\nkind: Secret\n",
        ] {
            check(object, object);
        }
    }

    #[test]
    fn lines_of_a_secret_are_known_even_if_it_cannot_be_read() {
        let text = "kind: ConfigMap\na: b\n---\nkind: \"Secret\"\nstringData: {a: [\n---\nkind: SecretStore\n";
        let is_in = |line: usize| is_in_secret(text, line);
        assert!(is_in(4) && is_in(5) && ![0, 1, 2, 7, 8].into_iter().any(is_in));
        assert!(is_in_secret("{apiVersion: v1, kind: Secret, data: [", 1));
        let release =
            "kind: HelmRelease\nspec:\n  valuesFrom:\n  - kind: Secret\n  - {kind: Secret}\n";
        assert!(!(1..6).any(|line| is_in_secret(release, line)));
        let list = "kind: List\nitems:\n- kind: Secret\n  data: {a: b}\n";
        assert!(is_in_secret(list, 4));
    }

    #[test]
    fn secrets_in_lists_are_hidden_too() {
        check(
            "apiVersion: v1\nitems:\n- {kind: Secret, data: {a: PLANT}}\n- {kind: ConfigMap, data: {a: b}}\nkind: List\n",
            "apiVersion: v1\nitems:\n- data:\n    a: <hidden>\n  kind: Secret\n- data:\n    a: b\n  kind: ConfigMap\nkind: List\n",
        );
    }
}
