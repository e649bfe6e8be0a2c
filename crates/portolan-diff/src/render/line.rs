//! A field's values as lines of text: removed lines, added lines, and some unchanged lines around them.

use portolan_secret::HIDDEN;
use portolan_yaml::{Dialect, Node, Tag, Value, parse_one, to_json, write_kustomize};

use crate::field::{Difference, Field, Shown};
use crate::sequence::{Run, align};

/// How many unchanged lines are shown around changed ones.
const CONTEXT: usize = 3;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Old(String),
    New(String),
    Same(String),
    /// Unchanged lines that are left out.
    Gap(usize),
}

/// The lines of a field.
pub(super) fn lines(field: &Field) -> Vec<Line> {
    match &field.difference {
        Difference::Added(new) => value(new).into_iter().map(Line::New).collect(),
        Difference::Removed(old) => value(old).into_iter().map(Line::Old).collect(),
        Difference::Changed(Shown::Hidden, Shown::Hidden) => vec![],
        Difference::Changed(old, new) => difference(&value(old), &value(new)),
        Difference::Reordered(old, new) => {
            let row = |keys: &[portolan_yaml::Text]| {
                let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
                clean(&keys.join(", "))
            };
            vec![Line::Old(row(old)), Line::New(row(new))]
        }
    }
}

/// Old lines before new ones; several lines are aligned, with some that stay around them.
fn difference(old: &[String], new: &[String]) -> Vec<Line> {
    let mut lines = Vec::new();
    let runs = align(old, new);
    let last = runs.len().saturating_sub(1);
    for (place, run) in runs.into_iter().enumerate() {
        match run {
            Run::Same { old: at, count, .. } => {
                let before = if place == 0 { 0 } else { CONTEXT };
                let after = if place == last { 0 } else { CONTEXT };
                keep(&old[at..at + count], before, after, &mut lines);
            }
            Run::Replaced { old: a, new: b } => {
                lines.extend(old[a].iter().cloned().map(Line::Old));
                lines.extend(new[b].iter().cloned().map(Line::New));
            }
        }
    }
    lines
}

/// The first and last lines of those that stay.
fn keep(same: &[String], before: usize, after: usize, lines: &mut Vec<Line>) {
    let all = |lines: &mut Vec<Line>, same: &[String]| {
        lines.extend(same.iter().cloned().map(Line::Same));
    };
    if same.len() <= before + after + 1 {
        return all(lines, same);
    }
    all(lines, &same[..before]);
    lines.push(Line::Gap(same.len() - before - after));
    all(lines, &same[same.len() - after..]);
}

/// A value as lines.
pub(super) fn value(shown: &Shown) -> Vec<String> {
    match shown {
        Shown::Hidden => vec![HIDDEN.to_owned()],
        Shown::Value(node) => node_lines(node),
    }
}

fn node_lines(node: &Node) -> Vec<String> {
    let text = match &node.value {
        Value::Scalar(scalar) if scalar.tag == Tag::Str => plain(&scalar.text),
        Value::Scalar(scalar) if scalar.text.is_empty() => "null".to_owned(),
        Value::Scalar(scalar) => scalar.text.to_string(),
        Value::List(_) | Value::Map(_) => write_kustomize(node)
            .or_else(|_| to_json(node))
            .unwrap_or_else(|_| "(nested too deep to be shown)".to_owned()),
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    text.split('\n').map(clean).collect()
}

/// A text as it is; in quotes when it would read as something else.
fn plain(text: &str) -> String {
    if text.contains('\n') {
        return text.to_owned();
    }
    let reads_as_text = !text.is_empty()
        && text.trim() == text
        && parse_one(text, Dialect::Kustomize)
            .is_ok_and(|node| node.as_scalar().is_none_or(|scalar| scalar.tag == Tag::Str));
    if reads_as_text || text.len() > 200 {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

/// A line that does nothing to a terminal: control characters and those that turn the direction of text are spelled out.
pub(super) fn clean(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let is_odd = |letter: char| {
        (letter.is_control() && letter != '\t')
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !line.contains(is_odd) {
        return line.to_owned();
    }
    let spell = |letter: char| {
        if is_odd(letter) {
            letter.escape_unicode().to_string()
        } else {
            letter.to_string()
        }
    };
    line.chars().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        node_lines(&parse_one(text, Dialect::Kustomize).expect("YAML")).join("\n")
    }

    #[test]
    fn texts_that_read_as_something_else_are_quoted() {
        assert_eq!(shown("'10'"), "\"10\"");
        assert_eq!(shown("10"), "10");
        assert_eq!(shown("''"), "\"\"");
        assert_eq!(shown("nginx:1.2"), "nginx:1.2");
    }

    #[test]
    fn nothing_that_moves_a_terminal_is_left() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}"), "a\\u{1b}[2Jb\\u{202e}");
    }

    #[test]
    fn long_texts_show_what_is_around_the_change() {
        let old: Vec<String> = (0..40).map(|line| line.to_string()).collect();
        let mut new = old.clone();
        new[20] = "twenty".to_owned();
        let lines = difference(&old, &new);
        assert_eq!(lines.len(), 2 + 3 + 1 + 1 + 3 + 1 - 1);
        assert_eq!(lines[0], Line::Gap(17));
    }
}
