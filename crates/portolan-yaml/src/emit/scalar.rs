//! Scalars: which form is chosen, and how each is written.

use super::analysis::{Analysis, is_break, is_printable, width};
use super::{Emitter, Flavor};
use crate::Dialect;
use crate::error::WriteError;
use crate::value::node::Style;

/// Lines are folded at the first space after this column.
const BEST_WIDTH: usize = 80;

/// Where a scalar stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// Before a `:`.
    SimpleKey,
    /// Anywhere else.
    Value,
}

impl Emitter<'_> {
    /// Writes a string in the form Go chooses.
    pub(super) fn write_string(&mut self, text: &str, analysis: Analysis, place: Place) {
        let wish = if text.contains('\n') {
            Style::Literal
        } else if self.reads_as_string(text) {
            Style::Plain
        } else {
            Style::Double
        };
        self.write_styled(text, analysis, wish, place);
    }

    fn write_styled(&mut self, text: &str, analysis: Analysis, wish: Style, place: Place) {
        let outer = self.indent;
        self.indent = if outer < 0 { 2 } else { outer + 2 };
        let fold = place == Place::Value && self.flavor == Flavor::V2;
        match possible(text, analysis, wish, place) {
            Style::Single => self.write_single(text, fold),
            Style::Double => self.write_double(text, fold),
            Style::Literal => self.write_literal(text),
            Style::Folded => self.write_folded(text),
            Style::Plain | Style::Flow => self.write_plain(text, fold),
        }
        self.indent = outer;
    }

    fn write_plain(&mut self, text: &str, fold: bool) {
        if !self.whitespace && !text.is_empty() {
            self.put(' ');
        }
        if !fold || self.column + text.len() <= BEST_WIDTH {
            self.put_str(text);
        } else {
            self.write_folding_spaces(text, 0, false);
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes text without line breaks, breaking lines at single spaces after column 80.
    fn write_folding_spaces(&mut self, text: &str, margin: usize, double_quotes: bool) {
        let bytes = text.as_bytes();
        let mut after_space = false;
        for (at, character) in text.char_indices() {
            if character != ' ' {
                if double_quotes && character == '\'' {
                    self.put('\'');
                }
                self.put(character);
                self.indention = false;
                after_space = false;
                continue;
            }
            let inside = at >= margin && at + margin < bytes.len();
            let breaks = inside && !after_space && self.column > BEST_WIDTH;
            if breaks && bytes.get(at + 1) != Some(&b' ') {
                self.write_indent();
            } else {
                self.put(' ');
            }
            after_space = true;
        }
    }

    fn write_single(&mut self, text: &str, fold: bool) {
        self.indicator("'", true, false);
        let fits = !fold || self.column + text.len() <= BEST_WIDTH;
        if fits && !text.contains(['\'', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.put_str(text);
        } else if text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.write_single_lines(text, fold);
        } else if fits {
            self.put_str(&text.replace('\'', "''"));
        } else {
            self.write_folding_spaces(text, 1, true);
        }
        self.indicator("'", false, false);
        self.indention = false;
    }

    /// Single-quoted text with line breaks, which other than LF are written as they are.
    fn write_single_lines(&mut self, text: &str, fold: bool) {
        let bytes = text.as_bytes();
        let (mut after_break, mut after_space) = (false, false);
        for (at, character) in text.char_indices() {
            if character == ' ' {
                let inside = at > 0 && at + 1 < bytes.len() && bytes[at + 1] != b' ';
                if fold && inside && !after_space && self.column > BEST_WIDTH {
                    self.write_indent();
                } else {
                    self.put(' ');
                }
                after_space = true;
                continue;
            }
            if is_break(&bytes[at..]) {
                if character == '\n' && !after_break {
                    self.put_break();
                }
                self.write_break(character.encode_utf8(&mut [0; 4]));
                after_break = true;
                continue;
            }
            if after_break {
                self.write_indent();
            }
            if character == '\'' {
                self.put('\'');
            }
            self.put(character);
            self.indention = false;
            (after_break, after_space) = (false, false);
        }
    }

    fn write_double(&mut self, text: &str, fold: bool) {
        self.indicator("\"", true, false);
        // A text that begins with a byte order mark is escaped in full: Go looks for the mark in the wrong place.
        let escape_all = text.starts_with('\u{feff}');
        let bytes = text.as_bytes();
        let mut after_space = false;
        for (at, character) in text.char_indices() {
            let rest = &bytes[at..];
            let escape = escape_all || !is_printable(rest) || is_break(rest);
            if escape || matches!(character, '"' | '\\') {
                self.write_escape(character);
                after_space = false;
            } else if character == ' ' {
                let inside = at > 0 && at + 1 < bytes.len();
                if fold && inside && !after_space && self.column > BEST_WIDTH {
                    self.write_indent();
                    if bytes.get(at + 1) == Some(&b' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_space = true;
            } else {
                self.put(character);
                after_space = false;
            }
        }
        self.indicator("\"", false, false);
        self.indention = false;
    }

    fn write_escape(&mut self, character: char) {
        let short = match character {
            '\0' => "\\0",
            '\x07' => "\\a",
            '\x08' => "\\b",
            '\t' => "\\t",
            '\n' => "\\n",
            '\x0b' => "\\v",
            '\x0c' => "\\f",
            '\r' => "\\r",
            '\x1b' => "\\e",
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{85}' => "\\N",
            '\u{a0}' => "\\_",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            _ => {
                let code = u32::from(character);
                let long = match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                return self.put_str(&long);
            }
        };
        self.put_str(short);
    }

    fn write_literal(&mut self, text: &str) {
        self.write_block_header('|', text);
        let mut rest = text;
        while !rest.is_empty() {
            let (line, line_break) = split_line(rest);
            if !line.is_empty() {
                self.write_indent();
                self.put_str(line);
                self.indention = false;
            }
            self.write_break(line_break);
            rest = &rest[line.len() + line_break.len()..];
        }
    }

    /// `|` or `>`, the indentation when the text begins with white space, and what becomes of its end.
    fn write_block_header(&mut self, indicator: char, text: &str) {
        self.indicator(indicator.encode_utf8(&mut [0; 4]), true, false);
        let bytes = text.as_bytes();
        if bytes.first() == Some(&b' ') || is_break(bytes) {
            self.indicator("2", false, false);
        }
        let mut breaks = text
            .char_indices()
            .rev()
            .map(|(at, _)| is_break(&bytes[at..]));
        match (breaks.next(), breaks.next()) {
            (Some(true), None | Some(true)) => self.indicator("+", false, false),
            (Some(true), Some(false)) => {}
            _ => self.indicator("-", false, false),
        }
        self.put_break();
        self.whitespace = true;
    }

    fn write_break(&mut self, line_break: &str) {
        match line_break {
            "" => {}
            "\n" => self.put_break(),
            other => {
                self.out.push_str(other);
                self.column = 0;
                self.indention = true;
            }
        }
    }

    /// Folded text as v3 writes it, with its mistake: only the breaks at the very start of the text are looked at.
    fn write_folded(&mut self, text: &str) {
        self.write_block_header('>', text);
        let bytes = text.as_bytes();
        let mut first = 0;
        while is_break(&bytes[first..]) {
            first += width(bytes[first]);
        }
        let starts_with_text = bytes
            .get(first)
            .is_some_and(|&byte| !matches!(byte, b' ' | b'\t' | 0) && !is_break(&bytes[first..]));
        let (mut after_break, mut leading_space) = (true, true);
        let mut at = 0;
        while at < bytes.len() {
            let (line, line_break) = split_line(&text[at..]);
            if !line.is_empty() {
                self.write_indent();
                leading_space = line.starts_with([' ', '\t']);
                self.put_str(line);
                self.indention = false;
                after_break = false;
            }
            if !after_break && !leading_space && line_break == "\n" && starts_with_text {
                self.put_break();
            }
            self.write_break(line_break);
            after_break |= !line_break.is_empty();
            at += line.len() + line_break.len();
        }
    }
}

/// The form that is possible in place of the one wished for.
fn possible(text: &str, analysis: Analysis, wish: Style, place: Place) -> Style {
    let key = place == Place::SimpleKey;
    let mut style = wish;
    if key && analysis.multiline {
        style = Style::Double;
    }
    if style == Style::Plain && (!analysis.plain_allowed || key && text.is_empty()) {
        style = Style::Single;
    }
    if style == Style::Single && !analysis.single_allowed {
        style = Style::Double;
    }
    if matches!(style, Style::Literal | Style::Folded) && (!analysis.block_allowed || key) {
        style = Style::Double;
    }
    style
}

/// A line and its break.
fn split_line(text: &str) -> (&str, &str) {
    let breaks = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let Some((line, rest)) = text.find(breaks).map(|at| text.split_at(at)) else {
        return (text, "");
    };
    let length = rest.chars().next().map_or(0, char::len_utf8);
    (line, &rest[..length])
}

/// What kustomize makes of a block scalar when it prints it with go-yaml v3 and reads it again.
pub(super) fn read_back_block(text: &str, style: Style) -> Result<String, WriteError> {
    let mut printed = String::new();
    let mut emitter = Emitter::v3_pretty(&mut printed);
    emitter.begin_map();
    emitter.key("a");
    emitter.before_value();
    let analysis = emitter.analyze(text);
    emitter.write_styled(text, analysis, style, Place::Value);
    emitter.end();
    emitter.finish()?;
    match crate::parse_one(printed, Dialect::Kustomize) {
        Ok(node) => {
            let text = node.get("a").and_then(|node| node.as_scalar());
            Ok(text
                .map(|scalar| scalar.text.to_string())
                .unwrap_or_default())
        }
        Err(errors) => Err(WriteError::NotReadBack(errors.first().message.clone())),
    }
}
