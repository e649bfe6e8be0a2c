//! `configMapGenerator` and `secretGenerator`: objects made from files, literals and environment files.

pub(crate) mod chart;
pub(crate) mod plugin;

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_budget::Budget;
use portolan_yaml::{Node, Scalar, Style, Tag, Text, Value};

use crate::error::{During, Error, Result};
use crate::load::kustomization::{GeneratorArgs, GeneratorOptions};
use crate::load::loader::Loader;
use crate::resource::{Behavior, Origin, Resource};
use crate::value::field::{check_new_key, distinct_map};

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    /// A `ConfigMap`: texts in `data`, other bytes in `binaryData`.
    ConfigMap,
    /// A Secret: everything in `data`, base64.
    Secret,
}

/// Makes the object of one generator.
pub(crate) fn generate(
    kind: Generated,
    args: &GeneratorArgs,
    loader: &Loader<'_>,
    origin: Arc<Origin>,
    budget: &Budget,
) -> Result<Resource> {
    let node = make_object(kind, args, loader, budget).during(|| {
        let name = if kind == Generated::Secret {
            "Secret"
        } else {
            "ConfigMap"
        };
        format!("cannot generate {name} `{}`", args.name)
    })?;
    let mut resource = Resource::new(node, origin)?;
    resource.history.needs_hash = !args
        .options
        .as_ref()
        .is_some_and(|options| options.disable_hash);
    resource.history.behavior = Behavior::parse(&args.behavior);
    Ok(resource)
}

fn make_object(
    kind: Generated,
    args: &GeneratorArgs,
    loader: &Loader<'_>,
    budget: &Budget,
) -> Result<Node> {
    if args.name.is_empty() {
        return Err(Error::refused("a configmap must have a name"));
    }
    let data = load_data(args, loader)?;
    for (key, value) in &data {
        // Kept as a text, and as base64 on the way there.
        budget.allocate(key.len() + value.len() * 3)?;
        budget.step(1)?;
    }
    data.keys().try_for_each(|key| check_new_key(key))?;
    let mut metadata = Node::map();
    put(&mut metadata, "name", Node::string(args.name.clone()));
    if !args.namespace.is_empty() {
        put(
            &mut metadata,
            "namespace",
            Node::string(args.namespace.clone()),
        );
    }
    let options = args.options.clone().unwrap_or_default();
    for (field, pairs) in [
        ("labels", &options.labels),
        ("annotations", &options.annotations),
    ] {
        if !pairs.is_empty() {
            pairs.iter().try_for_each(|(key, _)| check_new_key(key))?;
            put(&mut metadata, field, string_map(pairs));
        }
    }
    let mut node = Node::map();
    put(
        &mut node,
        "apiVersion",
        Node::string(Text::from_static("v1")),
    );
    match kind {
        Generated::ConfigMap => {
            put(
                &mut node,
                "kind",
                Node::string(Text::from_static("ConfigMap")),
            );
            put(&mut node, "metadata", metadata);
            put_config_data(&mut node, data);
        }
        Generated::Secret => {
            put(&mut node, "kind", Node::string(Text::from_static("Secret")));
            put(&mut node, "metadata", metadata);
            let secret_type = if args.secret_type.is_empty() {
                "Opaque"
            } else {
                &args.secret_type
            };
            put(&mut node, "type", Node::string(secret_type));
            let data = data
                .into_iter()
                .map(|(key, value)| (key, block(base64_lines(&value))));
            put(&mut node, "data", distinct_map(data));
        }
    }
    if options.is_immutable {
        put(&mut node, "immutable", Node::bool(true));
    }
    Ok(node)
}

fn put(node: &mut Node, key: &str, value: Node) {
    if let Some(map) = node.as_map_mut() {
        map.insert(key, value);
    }
}

fn string_map(pairs: &[(Text, Text)]) -> Node {
    let mut map = Node::map();
    for (key, value) in pairs {
        put(&mut map, key, Node::string(value.clone()));
    }
    map
}

fn put_config_data(node: &mut Node, data: BTreeMap<String, Vec<u8>>) {
    let (mut texts, mut binaries) = (Vec::new(), Vec::new());
    for (key, value) in data {
        match String::from_utf8(value) {
            Ok(text) => texts.push((key, block(text))),
            Err(error) => binaries.push((key, block(base64_lines(error.as_bytes())))),
        }
    }
    let (texts, binaries) = (distinct_map(texts), distinct_map(binaries));
    for (field, map) in [("data", texts), ("binaryData", binaries)] {
        if map.as_map().is_some_and(|map| !map.is_empty()) {
            put(node, field, map);
        }
    }
}

fn block(text: String) -> Node {
    let style = if text.contains('\n') {
        Style::Literal
    } else {
        Style::Plain
    };
    Node::new(Value::Scalar(Scalar {
        text: text.into(),
        tag: Tag::Str,
        style,
    }))
}

/// The options of one generator over those of the file.
pub(crate) fn merge_options(
    local: Option<&GeneratorOptions>,
    global: Option<&GeneratorOptions>,
) -> Option<GeneratorOptions> {
    let Some(global) = global else {
        return local.cloned();
    };
    let mut merged = local.cloned().unwrap_or_default();
    for (local, global) in [
        (&mut merged.labels, &global.labels),
        (&mut merged.annotations, &global.annotations),
    ] {
        for (key, value) in global {
            if !local.iter().any(|(known, _)| known == key) {
                local.push((key.clone(), value.clone()));
            }
        }
    }
    merged.disable_hash |= global.disable_hash;
    merged.is_immutable |= global.is_immutable;
    Some(merged)
}

/// Environment files, then literals, then files; a key twice is an error.
fn load_data(args: &GeneratorArgs, loader: &Loader<'_>) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut data = BTreeMap::new();
    let mut add = |key: String, value: Vec<u8>| {
        if data.insert(key.clone(), value).is_none() {
            Ok(())
        } else {
            let name = &args.name;
            Err(Error::refused(format!(
                "configmap {name} illegally repeats the key `{key}`"
            )))
        }
    };
    for path in &args.envs {
        let content = loader.load(path)?;
        for (key, value) in
            read_env_file(&content).during(|| format!("env source file `{path}`"))?
        {
            add(key, value.into_bytes())?;
        }
    }
    for literal in &args.literals {
        let (key, value) = split_literal(literal)?;
        add(key.to_owned(), value.as_bytes().to_vec())?;
    }
    for source in &args.files {
        let (key, path) = split_file_source(source)?;
        add(key.to_owned(), loader.load(path)?)?;
    }
    Ok(data)
}

/// Lines longer than this end Go's scanner, silently.
const MAX_LINE: usize = 64 * 1024;

fn read_env_file(content: &[u8]) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.len() >= MAX_LINE {
            break;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line)
            .map_err(|_| Error::refused(format!("line {} has invalid utf8 bytes", number + 1)))?;
        let line = if number == 0 {
            line.trim_start_matches('\u{feff}')
        } else {
            line
        };
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.to_owned()));
        }
    }
    Ok(pairs)
}

fn split_literal(literal: &str) -> Result<(&str, &str)> {
    let parts = literal.split_once('=').filter(|(key, _)| !key.is_empty());
    let Some((key, value)) = parts else {
        return Err(Error::refused(format!(
            "invalid literal source {literal}, expected key=value"
        )));
    };
    Ok((key, without_quotes(value)))
}

/// Takes one pair of quotes off.
fn without_quotes(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner;
        }
    }
    value
}

fn split_file_source(source: &str) -> Result<(&str, &str)> {
    let wrong = |problem: &str| Err(Error::refused(format!("{problem} in source `{source}`")));
    match source.split_once('=') {
        None => Ok((
            source
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or(source),
            source,
        )),
        Some((_, path)) if path.contains('=') => wrong("key name or file path contains '='"),
        Some(("", _)) => wrong("missing key name"),
        Some((_, "")) => wrong("missing file path"),
        Some((key, path)) => Ok((key, path)),
    }
}

const BASE64_LINE: usize = 70;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 in lines of 70 letters, each with a line end, or one line without.
fn base64_lines(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let part = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for position in 0..4 {
            let letter = if position <= chunk.len() {
                BASE64
                    .get((bits >> (18 - 6 * position) & 63) as usize)
                    .copied()
                    .unwrap_or(b'=')
            } else {
                b'='
            };
            encoded.push(char::from(letter));
        }
    }
    if encoded.len() / BASE64_LINE == 0 {
        return encoded;
    }
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / BASE64_LINE + 1);
    for (index, letter) in encoded.chars().enumerate() {
        if index > 0 && index % BASE64_LINE == 0 {
            lines.push('\n');
        }
        lines.push(letter);
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_wrapped_only_when_long() {
        assert_eq!(base64_lines(b"s3cret"), "czNjcmV0");
        assert_eq!(base64_lines(b"a"), "YQ==");
        assert_eq!(base64_lines(b""), "");
        let long = base64_lines(&[0; 60]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [70, 10]);
        assert!(long.ends_with('\n'));
    }

    #[test]
    fn literals_lose_one_pair_of_quotes() {
        assert_eq!(split_literal("a='b c'").unwrap(), ("a", "b c"));
        assert_eq!(split_literal("a=\"b").unwrap(), ("a", "\"b"));
        assert_eq!(split_literal("a=").unwrap(), ("a", ""));
        assert!(split_literal("=b").is_err());
        assert!(split_literal("a").is_err());
    }

    #[test]
    fn environment_files_have_comments_and_bare_keys() {
        let pairs = read_env_file("\u{feff}A=1\n # no\n\n  B = two \nC\n".as_bytes()).unwrap();
        let expected = [("A", "1"), ("B ", " two "), ("C", "")];
        let found: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}
