//! The name suffix of generated resources: ten letters made from a hash of their content.

use portolan_yaml::{Node, Value, to_json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::field::{NewTag, set_scalar};

/// Adds the suffix to the name of every resource that asks for it.
pub(crate) fn add_hashes(set: &mut ResourceSet, schema: &Schema) -> Result<()> {
    if !set.iter().any(|resource| resource.history.needs_hash) {
        return Ok(());
    }
    for resource in set.resources_mut() {
        if !resource.history.needs_hash {
            continue;
        }
        let suffix = content_hash(&resource.node)?;
        resource.remember_id(schema);
        let name = format!("{}-{suffix}", resource.name());
        let field = resource
            .node
            .get_mut("metadata")
            .and_then(|metadata| metadata.get_mut("name"));
        if let Some(field) = field {
            set_scalar(field, name, NewTag::Str)?;
        }
    }
    Ok(())
}

fn content_hash(node: &Node) -> Result<String> {
    let kind = node
        .get("kind")
        .map(crate::value::field::text)
        .unwrap_or_default();
    let content = match kind.as_str() {
        "ConfigMap" => envelope(node, "ConfigMap", &[("binaryData", "binaryData")])?,
        "Secret" => envelope(node, "Secret", &[("stringData", "stringData")])?,
        _ => json(node)?,
    };
    Ok(encode(&content))
}

/// Kind, name, data and, for Secrets, the type; what is missing is an empty text. Keys are sorted by the printer.
fn envelope(node: &Node, kind: &str, optional: &[(&str, &str)]) -> Result<String> {
    let mut object = Node::map();
    let Some(map) = object.as_map_mut() else {
        return Ok(String::new());
    };
    let or_empty = |value: Option<&Node>| match value.map(|node| &node.value) {
        None => Node::string(""),
        Some(Value::Scalar(scalar)) => Node::string(scalar.text.clone()),
        Some(_) => value.cloned().unwrap_or_else(Node::null),
    };
    map.insert("kind", Node::string(kind));
    // kyaml looks for one field called `metadata/name`, which is never there: the name is always the empty text.
    map.insert("name", Node::string(""));
    map.insert("data", or_empty(node.get("data")));
    if kind == "Secret" {
        map.insert("type", or_empty(node.get("type")));
    }
    for (from, to) in optional {
        if let Some(value) = node.get(from).filter(|value| value.as_map().is_some()) {
            map.insert(*to, value.clone());
        }
    }
    json(&object)
}

fn json(node: &Node) -> Result<String> {
    to_json(node).map_err(|error| Error::refused(error.to_string()))
}

/// The first ten hex digits, with those that could spell something replaced.
fn encode(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let digits = digest
        .iter()
        .take(5)
        .flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| LETTERS.get(usize::from(digit)))
        .map(|letter| char::from(*letter))
        .collect()
}

const LETTERS: &[u8; 16] = b"gh2k456789mbcdtf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_that_could_spell_are_replaced() {
        // sha256("") begins with e3b0c44298.
        assert_eq!(encode(""), "tkbgc44298");
    }
}
