//! Writes values as YAML text, byte for byte as Go's printers do.
//!
//! An [`Emitter`] takes values one after the other and needs no tree: the template engine prints its own values
//! through it, and trees are printed through it too. The start of a collection is written when its first child comes,
//! because an empty one looks different (`{}`).
//!
//! ```text
//!   Node ──► tree ──┐
//!                   ├──► Emitter ──► analysis, scalar ──► String
//!   own values ─────┘
//! ```

mod analysis;
mod scalar;
mod tree;

use std::fmt::Write;

pub use tree::{write_kustomize, write_v2, write_v3_pretty};

use crate::error::WriteError;
use crate::limits::{MAX_DEPTH, MAX_SIMPLE_KEY};
use crate::value::number::{self, Number};
use crate::value::resolve;
use crate::{Dialect, json};
use analysis::Analysis;
use scalar::Place;

/// Keys up to this length are written before a `:`, longer ones after a `?`.
const LONGEST_PLAIN_KEY: usize = 128;

/// Prints one document; the caller gives keys in the order they shall stand in, see [`crate::order`].
///
/// Errors are kept until [`Emitter::finish`]; what was printed until then is to be thrown away.
pub struct Emitter<'o> {
    out: &'o mut String,
    flavor: Flavor,
    /// The column in characters.
    column: usize,
    /// The last thing written was white space.
    whitespace: bool,
    /// Nothing but indentation and `- ` or `? ` stands on the line.
    indention: bool,
    /// The column of the innermost open collection; -1 outside of all.
    indent: i32,
    levels: Vec<Level>,
    failure: Option<WriteError>,
}

/// Whose printing is followed.
#[derive(Clone, Copy, PartialEq)]
enum Flavor {
    /// sigs.k8s.io/yaml: the value goes through JSON, lines are folded at 80 columns.
    V2,
    /// go-yaml v3 with two columns of indentation: no folding, lists are indented.
    V3,
}

/// A collection that was begun.
struct Level {
    is_map: bool,
    /// It is the value of a map's key.
    in_map: bool,
    /// Its first child was written.
    open: bool,
    outer_indent: i32,
    /// The key before the value that comes next.
    key: Option<KeyForm>,
}

#[derive(Clone, Copy)]
enum KeyForm {
    Simple,
    Explicit,
}

impl<'o> Emitter<'o> {
    /// Prints as sigs.k8s.io/yaml's `Marshal`: Helm's `toYaml`, and kustomize's output.
    pub fn v2(out: &'o mut String) -> Self {
        Self::new(out, Flavor::V2)
    }

    /// Prints as go-yaml v3's encoder with an indentation of two: Helm's `toYamlPretty`.
    pub fn v3_pretty(out: &'o mut String) -> Self {
        Self::new(out, Flavor::V3)
    }

    fn new(out: &'o mut String, flavor: Flavor) -> Self {
        Self {
            out,
            flavor,
            column: 0,
            whitespace: true,
            indention: true,
            indent: -1,
            levels: Vec::new(),
            failure: None,
        }
    }

    /// Begins a map.
    pub fn begin_map(&mut self) {
        self.begin(true);
    }

    /// Begins a list.
    pub fn begin_list(&mut self) {
        self.begin(false);
    }

    /// Ends the innermost map or list.
    pub fn end(&mut self) {
        let Some(level) = self.levels.pop() else {
            return;
        };
        if level.open {
            self.indent = level.outer_indent;
        } else {
            let empty = if level.is_map { "{}" } else { "[]" };
            self.indicator(empty, true, false);
        }
    }

    /// Gives the key of the value that comes next.
    pub fn key(&mut self, key: &str) {
        self.open_level();
        self.write_indent();
        let Some((key, analysis)) = self.prepare_key(key) else {
            return;
        };
        let simple = !analysis.multiline && key.len() <= LONGEST_PLAIN_KEY;
        let place = if simple {
            Place::SimpleKey
        } else {
            self.indicator("?", true, true);
            Place::Value
        };
        self.write_string(&key, analysis, place);
        if let Some(level) = self.levels.last_mut() {
            level.key = Some(if simple {
                KeyForm::Simple
            } else {
                KeyForm::Explicit
            });
        }
    }

    /// Prints a string.
    pub fn string(&mut self, text: &str) {
        self.before_value();
        let analysis = self.analyze(text);
        if self.flavor == Flavor::V2 && analysis.special && is_changed_by_json(text) {
            match through_json(text) {
                Ok(text) => {
                    let analysis = self.analyze(&text);
                    self.write_string(&text, analysis, Place::Value);
                }
                Err(error) => self.fail(error),
            }
            return;
        }
        self.write_string(text, analysis, Place::Value);
    }

    /// Prints a whole number.
    pub fn int(&mut self, value: i64) {
        self.before_value();
        self.word(|out| {
            let _ = write!(out, "{value}");
        });
    }

    /// Prints a whole number without sign.
    pub fn uint(&mut self, value: u64) {
        self.before_value();
        self.word(|out| {
            let _ = write!(out, "{value}");
        });
    }

    /// Prints a float. Through JSON, whole ones are printed as integers and infinities are an error.
    pub fn float(&mut self, value: f64) {
        if self.flavor == Flavor::V3 {
            self.before_value();
            return self.word(|out| number::write_yaml(out, value));
        }
        if !value.is_finite() {
            return self.fail(WriteError::NotANumber(json::not_finite(value)));
        }
        match number::through_json(value) {
            Number::Int(value) => self.int(value),
            Number::Uint(value) => self.uint(value),
            Number::Float(value) => {
                self.before_value();
                self.word(|out| number::write_yaml(out, value));
            }
        }
    }

    /// Prints a time in the form of RFC 3339.
    pub fn timestamp(&mut self, text: &str) {
        self.before_value();
        self.word(|out| out.push_str(text));
    }

    /// Prints bytes, given in base 64.
    pub fn binary(&mut self, base64: &str) {
        self.before_value();
        self.word(|out| {
            out.push_str("!!binary ");
            out.push_str(base64);
        });
    }

    /// Prints a boolean.
    pub fn bool(&mut self, value: bool) {
        self.before_value();
        self.word(|out| out.push_str(if value { "true" } else { "false" }));
    }

    /// Prints a null.
    pub fn null(&mut self) {
        self.before_value();
        self.word(|out| out.push_str("null"));
    }

    /// Ends the document with a line break; the first error of all that was printed.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.write_indent();
        self.failure.map_or(Ok(()), Err)
    }

    fn fail(&mut self, error: WriteError) {
        self.failure.get_or_insert(error);
    }

    // Collections.

    fn begin(&mut self, is_map: bool) {
        self.before_value();
        if self.levels.len() >= MAX_DEPTH {
            self.fail(WriteError::TooDeep);
        }
        let in_map = self.levels.last().is_some_and(|level| level.is_map);
        self.levels.push(Level {
            is_map,
            in_map,
            open: false,
            outer_indent: self.indent,
            key: None,
        });
    }

    /// Indents for the innermost collection before its first child.
    fn open_level(&mut self) {
        let (indention, flavor) = (self.indention, self.flavor);
        let Some(level) = self.levels.last_mut().filter(|level| !level.open) else {
            return;
        };
        level.open = true;
        // v2 puts lists under a key without indentation, unless the key was written after a '?'.
        let indentless = flavor == Flavor::V2 && !level.is_map && level.in_map && !indention;
        if self.indent < 0 {
            self.indent = 0;
        } else if !indentless {
            self.indent += 2;
        }
    }

    /// Writes what stands before a value: `- `, `:` or nothing.
    fn before_value(&mut self) {
        match self
            .levels
            .last_mut()
            .map(|level| (level.is_map, level.key.take()))
        {
            None | Some((true, None)) => {}
            Some((true, Some(KeyForm::Simple))) => self.indicator(":", false, false),
            Some((true, Some(KeyForm::Explicit))) => {
                self.write_indent();
                self.indicator(":", true, true);
            }
            Some((false, _)) => {
                self.open_level();
                self.write_indent();
                self.indicator("-", true, true);
            }
        }
    }

    // Keys.

    /// The key as JSON and YAML leave it; `None` and an error when they refuse it.
    fn prepare_key<'k>(&mut self, key: &'k str) -> Option<(std::borrow::Cow<'k, str>, Analysis)> {
        let analysis = self.analyze(key);
        if self.flavor == Flavor::V2 {
            if analysis.special && is_changed_by_json(key) {
                self.fail(through_json(key).map_or_else(|error| error, |_| WriteError::KeyTooLong));
                return None;
            }
            if key.len() > 160 && json_length(key) > MAX_SIMPLE_KEY as usize {
                self.fail(WriteError::KeyTooLong);
                return None;
            }
        }
        Some((key.into(), analysis))
    }

    fn analyze(&self, text: &str) -> Analysis {
        Analysis::of(text, self.flavor == Flavor::V3)
    }

    /// Whether a string may stand without quotes: it must not read as something else.
    fn reads_as_string(&self, text: &str) -> bool {
        let dialect = match self.flavor {
            Flavor::V2 => Dialect::Helm,
            Flavor::V3 => Dialect::Kustomize,
        };
        resolve::plain(dialect, text) == crate::Tag::Str
            && !is_base60(text)
            && !(self.flavor == Flavor::V3 && resolve::is_old_bool(text))
    }

    // Writing.

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn put_str(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.indention = true;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0) as usize;
        let at_place = self.column == indent && self.whitespace;
        if !self.indention || self.column > indent || self.column == indent && !at_place {
            self.put_break();
        }
        while self.column < indent {
            let missing = (indent - self.column).min(SPACES.len());
            self.out.push_str(&SPACES[..missing]);
            self.column += missing;
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, indicator: &str, need_whitespace: bool, indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(indicator);
        self.column += indicator.len();
        self.whitespace = false;
        self.indention &= indention;
    }

    /// Writes a number or word, which never needs quotes.
    fn word(&mut self, write: impl FnOnce(&mut String)) {
        if !self.whitespace {
            self.put(' ');
        }
        let before = self.out.len();
        write(self.out);
        self.column += self.out.len() - before;
        self.whitespace = false;
        self.indention = false;
    }
}

const SPACES: &str = "                                                                ";

/// Whether a text holds a character that JSON leaves as it is and YAML does not take as it is.
fn is_changed_by_json(text: &str) -> bool {
    text.chars()
        .any(|c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
}

/// What Go makes of a string when it is printed as JSON and read as YAML.
fn through_json(text: &str) -> Result<String, WriteError> {
    let mut quoted = String::new();
    json::write_string(&mut quoted, text);
    match crate::parse_one(quoted, Dialect::Helm) {
        Ok(node) => Ok(node.as_str().unwrap_or_default().to_owned()),
        Err(errors) => Err(WriteError::NotReadBack(errors.first().message.clone())),
    }
}

/// How many characters a string has in JSON, quotes included.
fn json_length(text: &str) -> usize {
    let mut quoted = String::new();
    json::write_string(&mut quoted, text);
    quoted.chars().count()
}

/// A number in base 60, `1:20`, which YAML 1.1 knew: `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_base60(text: &str) -> bool {
    let Some(b'+' | b'-' | b'0'..=b'9') = text.as_bytes().first() else {
        return false;
    };
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let sixtieth =
        |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && whole.contains(':')
        && parts.all(sixtieth)
}
