//! TOML as values.
//!
//! ```text
//! text ──lines──▶ keys and values ──▶ tables, each remembering how it was made
//! ```
//!
//! One decoder with a cursor; each file adds methods for one part of the language.

mod entries;
mod scalars;
mod strings;
mod tables;
mod values;

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::dotted;
use crate::fmt::quote;
use crate::value::{List, Map, MapType, Value};

/// How deep tables, arrays and inline tables may nest.
const MAX_NESTING: usize = 200;

/// How far the library looks for a NUL, the sign of UTF-16.
const UTF_16_LOOK: usize = 6;

/// Reads a document; the error is the library's, with the line and the last key.
pub(in crate::functions::toml) fn decode(bytes: &[u8]) -> Result<Value, String> {
    if bytes.iter().take(UTF_16_LOOK).any(|byte| *byte == 0) {
        let problem =
            "files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8";
        return Err(format!("toml: line 1: {problem}"));
    }
    let (text, forbidden) = readable(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let root = new_table();
    let mut decoder = Decoder {
        text,
        forbidden,
        at: 0,
        depth: 0,
        context: Vec::new(),
        current: String::new(),
        table: Rc::clone(&root),
        root,
        implicit: HashSet::new(),
        growing: HashSet::new(),
    };
    decoder
        .document()
        .map_err(|problem| decoder.describe(&problem))?;
    Ok(Value::Map(decoder.root))
}

/// The text up to the first byte that no TOML may have, and what is wrong with that byte.
fn readable(bytes: &[u8]) -> (&str, Option<String>) {
    let (text, mut problem) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            let byte = rest.first().copied().unwrap_or_default();
            let problem = format!("invalid UTF-8 byte: 0x{byte:02x}");
            (
                std::str::from_utf8(valid).unwrap_or_default(),
                Some(problem),
            )
        }
    };
    let is_control = |(at, byte): (usize, u8)| match byte {
        b'\t' | b'\n' => false,
        b'\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        _ => byte.is_ascii_control(),
    };
    let control = text.bytes().enumerate().find(|&found| is_control(found));
    let end = control.map_or(text.len(), |(at, byte)| {
        problem = Some(format!(
            "TOML files cannot contain control characters: '0x{byte:02x}'"
        ));
        at
    });
    (&text[..end], problem)
}

fn new_table() -> Rc<Map> {
    Rc::new(Map::new(MapType::Any, BTreeMap::new()))
}

type Key = Vec<String>;
type Step<T = ()> = Result<T, Problem>;

/// What is wrong at the decoder's place.
enum Problem {
    /// The text ends too early; the library counts one line less then.
    End(String),
    Text(String),
}

fn fail<T>(message: impl Into<String>) -> Step<T> {
    Err(Problem::Text(message.into()))
}

/// The text, the place in it, and the tables made so far, of which sets know by address how each was made.
struct Decoder<'t> {
    text: &'t str,
    /// What stands where the text ends, when that is not the end of the file.
    forbidden: Option<String>,
    at: usize,
    depth: usize,
    root: Rc<Map>,
    /// The table that entries go into, and its key with what dotted and nested keys add to it.
    table: Rc<Map>,
    context: Key,
    /// The last part of the key whose value is being read.
    current: String,
    /// Tables that exist only because their children do: a header may still come.
    implicit: HashSet<*const Map>,
    /// Arrays that headers made, which take further tables.
    growing: HashSet<*const List>,
}

impl<'t> Decoder<'t> {
    fn describe(&self, problem: &Problem) -> String {
        let line = 1 + self.text[..self.at].matches('\n').count();
        let (line, message) = match problem {
            Problem::End(message) => (line - 1, message),
            Problem::Text(message) => (line, message),
        };
        let mut key = dotted(&self.context);
        if !self.current.is_empty() {
            let dot = if key.is_empty() { "" } else { "." };
            key = key + dot + &super::quoted_key(&self.current);
        }
        if key.is_empty() {
            return format!("toml: line {line}: {message}");
        }
        let key = quote(key.as_bytes(), false);
        format!("toml: line {line} (last key {key}): {message}")
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// The problem that the text ends here, or that something no TOML may have stands here.
    fn end(&self, message: impl Into<String>) -> Problem {
        match &self.forbidden {
            Some(problem) => Problem::Text(problem.clone()),
            None => Problem::End(message.into()),
        }
    }

    /// The problem that another character was expected; a line end counts as read.
    fn unexpected(&mut self, message: impl FnOnce(&str) -> String) -> Problem {
        match self.peek() {
            None => self.end(message(&rune('\0'))),
            Some(found) => {
                self.at += usize::from(found == '\n');
                Problem::Text(message(&rune(found)))
            }
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Blanks, line ends and comments.
    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n' | '\r') => self.at += 1,
                Some('#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let end = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += end;
    }

    fn document(&mut self) -> Step {
        loop {
            self.skip_lines();
            match self.peek() {
                None => return self.forbidden.take().map_or(Ok(()), fail),
                Some('[') => self.header()?,
                Some(_) => self.entry_line()?,
            }
            self.end_of_line()?;
        }
    }

    fn end_of_line(&mut self) -> Step {
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | '\r' | '#') => Ok(()),
            Some(other) => fail(format!(
                "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
                rune(other)
            )),
        }
    }
}

fn check_depth(depth: usize) -> Step {
    if depth <= MAX_NESTING {
        return Ok(());
    }
    fail(format!("values nest more than {MAX_NESTING} deep"))
}

fn rune(character: char) -> String {
    crate::fmt::quote_rune(character, false)
}
