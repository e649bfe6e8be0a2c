//! Prints YAML in block style with the keys in their order, as kyaml prints a tree, for texts that contain YAML
//! themselves.

use portolan_yaml::{Node, Position, Scalar, Style, Tag, Value};

use crate::value::field::is_blank;

/// Prints a tree that was made, not read.
pub(crate) fn to_block_yaml(node: &Node) -> String {
    to_yaml_like(node, "")
}

/// Prints a tree; what was written in flow style in the text it was read from is written so again.
pub(crate) fn to_yaml_like(node: &Node, source: &str) -> String {
    let mut printer = Printer {
        out: String::new(),
        source,
    };
    printer.block(node, 0);
    printer.out
}

struct Printer<'a> {
    out: String,
    source: &'a str,
}

impl Printer<'_> {
    fn block(&mut self, node: &Node, indent: usize) {
        if let Value::Scalar(scalar) = &node.value {
            write_scalar(&mut self.out, scalar, indent);
            self.out.push('\n');
            return;
        }
        if is_blank(node) || self.is_flow(node) {
            self.flow(node);
            self.out.push('\n');
            return;
        }
        match &node.value {
            Value::Scalar(_) => {}
            Value::Map(map) => {
                for (index, entry) in map.iter().enumerate() {
                    if index > 0 {
                        pad(&mut self.out, indent);
                    }
                    write_scalar(&mut self.out, &entry.key.scalar, indent);
                    self.out.push(':');
                    self.value(&entry.value, indent);
                }
            }
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    if index > 0 {
                        pad(&mut self.out, indent);
                    }
                    self.out.push_str("- ");
                    self.block(item, indent + 2);
                }
            }
        }
    }

    fn value(&mut self, value: &Node, indent: usize) {
        let is_block = !is_blank(value) && !self.is_flow(value);
        match &value.value {
            Value::Map(_) if is_block => {
                self.out.push('\n');
                pad(&mut self.out, indent + 2);
                self.block(value, indent + 2);
            }
            Value::List(_) if is_block => {
                self.out.push('\n');
                pad(&mut self.out, indent);
                self.block(value, indent);
            }
            Value::Scalar(scalar) if scalar.tag == Tag::Null && scalar.text.is_empty() => {
                self.out.push('\n');
            }
            _ => {
                self.out.push(' ');
                self.block(value, indent);
            }
        }
    }

    fn flow(&mut self, node: &Node) {
        match &node.value {
            Value::Scalar(scalar) => write_flow_scalar(&mut self.out, scalar),
            Value::Map(map) => {
                self.out.push('{');
                for (index, entry) in map.iter().enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    write_flow_scalar(&mut self.out, &entry.key.scalar);
                    self.out.push_str(": ");
                    self.flow(&entry.value);
                }
                self.out.push('}');
            }
            Value::List(list) => {
                self.out.push('[');
                for (index, item) in list.iter().enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    self.flow(item);
                }
                self.out.push(']');
            }
        }
    }

    fn is_flow(&self, node: &Node) -> bool {
        let start = offset(self.source, node.at).and_then(|start| self.source.get(start..));
        node.as_scalar().is_none() && start.is_some_and(|text| text.starts_with(['{', '[']))
    }
}

/// Where a position lies in a text, in bytes.
pub(crate) fn offset(text: &str, at: Position) -> Option<usize> {
    let line_start = match at.line.checked_sub(2) {
        None => 0,
        Some(breaks) => text.match_indices('\n').nth(breaks as usize)?.0 + 1,
    };
    let line = text.get(line_start..)?;
    let column = at.column.checked_sub(1)? as usize;
    Some(line_start + line.char_indices().nth(column)?.0)
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Inside of brackets a text must not look like a part of them, and has no lines of its own.
fn write_flow_scalar(out: &mut String, scalar: &Scalar) {
    let text = scalar.text.as_str();
    let is_plain = scalar.style == Style::Plain;
    if text.contains('\n') {
        out.push_str(&double_quoted(text));
    } else if is_plain && text.contains([',', '?', '[', ']', '{', '}', ':']) {
        write_type(out, scalar);
        out.push_str(&single_quoted(text));
    } else {
        write_scalar(out, scalar, 0);
    }
}

/// A text that does not read as what it is gets its type before it.
fn write_type(out: &mut String, scalar: &Scalar) {
    let name = match scalar.tag {
        tag if tag == crate::value::field::plain_tag(&scalar.text) => return,
        Tag::Int => "!!int ",
        Tag::Float => "!!float ",
        Tag::Bool => "!!bool ",
        Tag::Null => "!!null ",
        _ => return,
    };
    out.push_str(name);
}

fn write_scalar(out: &mut String, scalar: &Scalar, indent: usize) {
    let text = scalar.text.as_str();
    if scalar.style == Style::Plain {
        write_type(out, scalar);
    }
    let is_block = text.contains('\n') && matches!(scalar.style, Style::Literal | Style::Plain);
    match scalar.style {
        _ if is_block => write_literal(out, text, indent),
        Style::Single => out.push_str(&single_quoted(text)),
        Style::Plain if text.is_empty() && !matches!(scalar.tag, Tag::Str | Tag::Null) => {
            out.push_str("''");
        }
        Style::Plain if scalar.tag != Tag::Str || is_plain(text) => out.push_str(text),
        Style::Plain if is_quotable(text) => out.push_str(&single_quoted(text)),
        _ => out.push_str(&double_quoted(text)),
    }
}

/// Whether a string that cannot stand alone gets single quotes: those that read as something else get double ones.
fn is_quotable(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(char::is_control)
        && crate::value::field::plain_tag(text) == Tag::Str
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let chomping = if text.ends_with("\n\n") {
        "+"
    } else if text.ends_with('\n') {
        ""
    } else {
        "-"
    };
    out.push('|');
    out.push_str(chomping);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent + 2);
            out.push_str(line);
        }
    }
}

/// Whether a string can stand without quotes and stay a string.
fn is_plain(text: &str) -> bool {
    let starts_well = !text.starts_with(|first: char| " -?:,[]{}#&*!|>'\"%@`".contains(first))
        || (text.len() > 1 && text.starts_with(['-', '?', ':']) && !text[1..].starts_with(' '));
    !text.is_empty()
        && starts_well
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains(char::is_control)
        && crate::value::field::plain_tag(text) == Tag::Str
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double_quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n").replace('\t', "\\t"))
}
