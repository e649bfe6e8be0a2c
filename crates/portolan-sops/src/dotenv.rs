//! Files of `KEY=value` lines, whose metadata is flattened into keys: `sops_age__list_0__map_enc=…`.

use portolan_yaml::{Entry, Key, List, Map, Node, Value};

use crate::cipher::SealedValue;
use crate::error::SopsError;

const METADATA_PREFIX: &str = "sops_";
/// More list items than any real file has recipients; a larger index is refused before a list is made for it.
const MAX_LIST: usize = 1000;

/// Reads a file into a tree like that of a YAML document: its keys, and a `sops` map.
///
/// Comments and empty lines are left out.
pub(crate) fn read(text: &str) -> Result<Node, SopsError> {
    let mut values = Map::new();
    let mut sops = Node::map();
    for (index, line) in text.split('\n').enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |problem: &str| SopsError::Format {
            format: "dotenv",
            line: index as u32 + 1,
            problem: problem.to_owned(),
        };
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| wrong("`=` is missing"))?;
        let value = Node::string(value.replace("\\n", "\n"));
        match key.strip_prefix(METADATA_PREFIX) {
            Some(path) => {
                unflatten(&mut sops, path, value).ok_or_else(|| wrong("not sops metadata"))?;
            }
            None => values.entries_mut().push(Entry {
                key: Key::from(key),
                value,
            }),
        }
    }
    values.insert("sops", sops);
    Ok(Node::new(Value::Map(values)))
}

/// Writes the keys of a decrypted tree over the lines of the encrypted file, in whose order and with whose comments.
pub(crate) fn write(
    encrypted: &str,
    plain: &Node,
    comment: impl Fn(&SealedValue<'_>) -> Option<String>,
) -> String {
    let mut values = plain.as_map().into_iter().flat_map(Map::iter);
    let mut text = String::new();
    for line in encrypted.split('\n').filter(|line| !line.is_empty()) {
        if let Some(note) = line.strip_prefix('#') {
            let opened = SealedValue::parse(note).and_then(|sealed| comment(&sealed));
            text.push('#');
            text.push_str(opened.as_deref().unwrap_or(note));
        } else if line.starts_with(METADATA_PREFIX) {
            continue;
        } else if let Some(entry) = values.next() {
            let value = entry
                .value
                .as_scalar()
                .map(|scalar| scalar.text.replace('\n', "\\n"));
            text.push_str(entry.key.as_str());
            text.push('=');
            text.push_str(&value.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// Puts a value where its flattened path says: `age__list_0__map_enc` is `age[0].enc`.
fn unflatten(root: &mut Node, path: &str, value: Node) -> Option<()> {
    let mut place = root;
    // `__map_NAME` and `__list_INDEX` follow a first name.
    let mut rest = path;
    let mut step = Step::Map;
    loop {
        let (name, next) = cut(rest);
        place = match step {
            Step::Map => as_map(place)?.get_or_insert_with(name, Node::null),
            Step::List => item(place, name.parse().ok()?)?,
        };
        match next {
            Some((next_step, after)) => (step, rest) = (next_step, after),
            None => break,
        }
    }
    *place = value;
    Some(())
}

#[derive(Clone, Copy)]
enum Step {
    Map,
    List,
}

/// The name up to the next separator, and what follows that.
fn cut(text: &str) -> (&str, Option<(Step, &str)>) {
    let map = text
        .find("__map_")
        .map(|at| (at, Step::Map, "__map_".len()));
    let list = text
        .find("__list_")
        .map(|at| (at, Step::List, "__list_".len()));
    match map.into_iter().chain(list).min_by_key(|(at, _, _)| *at) {
        Some((at, step, length)) => (&text[..at], Some((step, &text[at + length..]))),
        None => (text, None),
    }
}

fn as_map(node: &mut Node) -> Option<&mut Map> {
    if node.is_null() {
        *node = Node::map();
    }
    node.as_map_mut()
}

fn item(node: &mut Node, index: usize) -> Option<&mut Node> {
    if node.is_null() {
        *node = Node::new(Value::List(List::new()));
    }
    let items = node.as_list_mut()?.items_mut();
    if index >= MAX_LIST {
        return None;
    }
    while items.len() <= index {
        items.push(Node::null());
    }
    items.get_mut(index)
}
