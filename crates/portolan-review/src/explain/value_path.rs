//! The name of the value on a line, such as `image.tag`, in a values file, a release, or a text that contains values.

use portolan_yaml::{Dialect, Node, Value, parse};

/// How deep a text with values may lie in another.
const MAX_NESTING: usize = 4;

/// How deep a document is searched.
const MAX_DEPTH: usize = 64;

/// The path of the value on a line of a YAML text; that of a release begins below its `values`.
pub(super) fn value_path(text: &str, line: usize) -> Option<String> {
    let keys = keys_in_text(text, u32::try_from(line).ok()?, MAX_NESTING)?;
    let below = match keys.as_slice() {
        [spec, values, below @ ..] if spec == "spec" && values == "values" => below,
        keys => keys,
    };
    (!below.is_empty()).then(|| below.join("."))
}

fn keys_in_text(text: &str, line: u32, nesting: usize) -> Option<Vec<String>> {
    let documents = parse(text.to_owned(), Dialect::Helm).ok()?;
    let plain = |document: &Node| keys_to(document, line, MAX_DEPTH);
    let nested = |document: &Node| keys_in_block(document, line, nesting, MAX_DEPTH);
    let plain = documents.iter().find_map(plain);
    plain.or_else(|| documents.iter().find_map(nested))
}

/// The keys that lead to the value on a line.
fn keys_to(node: &Node, line: u32, depth: usize) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    match &node.value {
        Value::Map(map) => map.iter().find_map(|entry| {
            let below = keys_to(&entry.value, line, depth)?;
            Some([vec![entry.key.as_str().to_owned()], below].concat())
        }),
        Value::List(list) => list.iter().find_map(|item| keys_to(item, line, depth)),
        Value::Scalar(_) => (node.at.line == line).then(Vec::new),
    }
}

/// The keys in a text of several lines, which begins below the line of its `|`.
fn keys_in_block(node: &Node, line: u32, nesting: usize, depth: usize) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    let below = |node: &Node| keys_in_block(node, line, nesting, depth);
    match &node.value {
        Value::Map(map) => map.iter().find_map(|entry| below(&entry.value)),
        Value::List(list) => list.iter().find_map(below),
        Value::Scalar(scalar) => {
            let inner = line.checked_sub(node.at.line)?;
            let lines = scalar.text.lines().count();
            let is_inside = lines > 1 && lines >= inner as usize;
            let nesting = nesting.checked_sub(1).filter(|_| is_inside)?;
            keys_in_text(&scalar.text, inner, nesting)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_named_as_its_chart_does() {
        let release =
            "kind: HelmRelease\nspec:\n  values:\n    image:\n      tag: 1\n    args: [a, b]\n";
        assert_eq!(value_path(release, 5).as_deref(), Some("image.tag"));
        assert_eq!(value_path(release, 6).as_deref(), Some("args"));
        assert_eq!(value_path(release, 4), None);
        let values = "# why\nreplicas: 3\n";
        assert_eq!(value_path(values, 2).as_deref(), Some("replicas"));
        assert_eq!(value_path("{{ no: yaml", 1), None);
    }

    #[test]
    fn a_text_with_values_is_read_as_well() {
        let map = "kind: ConfigMap\ndata:\n  values.yaml: |\n    image:\n      tag: 1\n";
        assert_eq!(value_path(map, 5).as_deref(), Some("image.tag"));
    }
}
