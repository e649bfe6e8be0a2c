//! Parts of lines that contain a value, in any kind of file: YAML, a template, a patch inside a string, `A=b`.

use std::collections::HashSet;
use std::ops::Range;

use portolan_yaml::{Node, Value};

/// A value on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// From 1.
    pub(super) line: usize,
    /// The whole line.
    pub(super) whole: &'a str,
    /// What stands before the value.
    key: &'a str,
    /// Where in the file the value stands, quotes left out.
    span: Range<usize>,
    value: &'a str,
}

/// What a piece must look like to be worth a trial.
pub(super) struct Wanted<'a> {
    key: &'a str,
    /// The field's text; JSON of a map or list.
    text: String,
    /// The texts in a map or list, each of which decides a part of it.
    leaves: HashSet<String>,
    /// What is put in for an expression.
    probe: String,
}

/// Every value of a text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        let found = |key, range: Range<usize>| Piece {
            line: index + 1,
            whole: line,
            key,
            value: &line[range.clone()],
            span: start + range.start..start + range.end,
        };
        for (key, range) in values(line) {
            let range = unquoted(line, range);
            if !range.is_empty() {
                pieces.push(found(key, range));
            }
        }
        start += line.len() + 1;
    }
    pieces
}

/// The keys and values of a line; those inside of `{…}` and `[…]` one by one.
fn values(line: &str) -> Vec<(&str, Range<usize>)> {
    let mut start = line.len() - line.trim_start().len();
    while line[start..].starts_with("- ") {
        start += 2;
        start += line[start..].len() - line[start..].trim_start().len();
    }
    let end = comment_start(line, start);
    let body = &line[start..end];
    if body.is_empty() || body.starts_with('#') || body.starts_with("---") {
        return Vec::new();
    }
    let is_control = body.starts_with("{{") && !body.contains(": ");
    let is_flow = body.contains(['{', '[']) && !body.contains("{{") && !body.contains("${");
    match (is_control, is_flow) {
        (true, _) => Vec::new(),
        (_, true) => flow_values(line, start..end),
        _ => value(line, start..end).into_iter().collect(),
    }
}

/// `key: value`, `key=value`, or a value alone.
fn value(line: &str, range: Range<usize>) -> Option<(&str, Range<usize>)> {
    let body = &line[range.clone()];
    let split = body
        .find(": ")
        .map(|at| (at, at + 2))
        .or_else(|| body.strip_suffix(':').map(|key| (key.len(), body.len())))
        .or_else(|| body.find('=').map(|at| (at, at + 1)));
    let (key, begin) = match split {
        Some((key_end, begin)) => (&body[..key_end], begin),
        None => ("", 0),
    };
    let value = &body[begin..];
    let trimmed = value.trim();
    let lead = value.len() - value.trim_start().len();
    let begin = range.start + begin + lead;
    let is_block = matches!(trimmed.trim_end_matches(['-', '+']), "|" | ">");
    (!trimmed.is_empty() && !is_block)
        .then(|| (key.trim().trim_matches('"'), begin..begin + trimmed.len()))
}

fn flow_values(line: &str, range: Range<usize>) -> Vec<(&str, Range<usize>)> {
    let mut values = Vec::new();
    let mut start = range.start;
    let ends = line[range.clone()]
        .char_indices()
        .filter(|(_, letter)| ",{}[]".contains(*letter))
        .map(|(at, _)| range.start + at);
    for end in ends.chain([range.end]) {
        values.extend(value(line, start..end));
        start = (end + 1).min(range.end);
    }
    values
}

fn comment_start(line: &str, start: usize) -> usize {
    let comment = line[start..].find(" #").map(|at| start + at);
    let end = comment.unwrap_or(line.len());
    start + line[start..end].trim_end().len()
}

fn unquoted(line: &str, range: Range<usize>) -> Range<usize> {
    let value = &line[range.clone()];
    let is_quoted =
        |quote: char| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    if is_quoted('"') || is_quoted('\'') {
        range.start + 1..range.end - 1
    } else {
        range
    }
}

// === impl Wanted ===

impl<'a> Wanted<'a> {
    pub(super) fn new(key: &'a str, field: &Node) -> Self {
        let text = match &field.value {
            Value::Scalar(scalar) => scalar.text.to_string(),
            Value::List(_) | Value::Map(_) => portolan_yaml::to_json(field).unwrap_or_default(),
        };
        Self {
            key,
            probe: other(&text, "portolan-probe"),
            text,
            leaves: leaves(field),
        }
    }

    /// Whether a piece has the field's key, shares text with its value, or could become anything.
    pub(super) fn looks_like(&self, piece: &Piece<'_>) -> bool {
        let value = piece.value;
        is_expression(value)
            || piece.key == self.key
            || value == self.text
            || self.leaves.contains(value)
            || (value.len() >= 2 && self.text.contains(value))
            || (self.text.len() >= 2 && value.contains(&self.text))
    }

    /// The text with this piece changed to something else of the same kind.
    pub(super) fn changed(&self, text: &str, piece: &Piece<'_>) -> String {
        let new = if is_expression(piece.value) {
            self.probe.clone()
        } else {
            other(piece.value, &format!("{}-portolan-probe", piece.value))
        };
        format!(
            "{}{new}{}",
            &text[..piece.span.start],
            &text[piece.span.end..]
        )
    }
}

/// The texts in a map or list; none for a text.
fn leaves(field: &Node) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut queue = match &field.value {
        Value::Scalar(_) => Vec::new(),
        Value::List(_) | Value::Map(_) => vec![field],
    };
    while let Some(node) = queue.pop() {
        match &node.value {
            Value::Scalar(scalar) => _ = found.insert(scalar.text.to_string()),
            Value::List(list) => queue.extend(list.iter()),
            Value::Map(map) => queue.extend(map.iter().map(|entry| &entry.value)),
        }
    }
    found
}

/// Whether a value is made when it is rendered.
fn is_expression(value: &str) -> bool {
    value.contains("{{") || value.contains("${")
}

/// Another number, another truth, or another text.
fn other(value: &str, text: &str) -> String {
    if let Ok(number) = value.parse::<i64>() {
        return number.wrapping_add(1).to_string();
    }
    match value {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[(&str, &str)]) {
        let found = pieces(line);
        let found: Vec<_> = found.iter().map(|piece| (piece.key, piece.value)).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn values_are_found_whatever_the_file_is() {
        check("  - name: web # the name", &[("name", "web")]);
        check("replicas: \"3\"", &[("replicas", "3")]);
        check(
            "  replicas: {{ .Values.n }}",
            &[("replicas", "{{ .Values.n }}")],
        );
        check("  REPLICAS=3", &[("REPLICAS", "3")]);
        check("- just text", &[("", "just text")]);
        check(
            "spec: {a: 1, b: [x, 'y']}",
            &[("a", "1"), ("", "x"), ("", "y")],
        );
    }

    #[test]
    fn lines_without_a_value_have_none() {
        for line in [
            "",
            "# a: b",
            "---",
            "spec:",
            "patch: |-",
            "{{- if .Values.x }}",
        ] {
            check(line, &[]);
        }
    }

    #[test]
    fn a_changed_piece_leaves_the_rest_alone() {
        let text = "a: 1\nb: \"two\" # why\n";
        let field = Node::string("two");
        let wanted = Wanted::new("b", &field);
        let found = pieces(text);
        let changed: Vec<_> = found
            .iter()
            .map(|piece| wanted.changed(text, piece))
            .collect();
        assert_eq!(changed[0], "a: 2\nb: \"two\" # why\n");
        assert_eq!(changed[1], "a: 1\nb: \"two-portolan-probe\" # why\n");
    }
}
