//! An outline of a text in terms of go-yaml v3's nodes: one line for each node, for tests and for inspecting a file.
//!
//! ```text
//! 1:1 doc
//!  1:1 map !!map
//!   1:1 scalar !!str "a"
//!   1:4 seq !!seq flow &x
//! ```

use std::collections::HashSet;
use std::fmt::Write;

use crate::error::Error;
use crate::json;
use crate::read::documents::Dialect;
use crate::read::event::{Event, EventKind, Properties};
use crate::read::parser::Parser;
use crate::read::reader::Source;
use crate::read::scanner::Scanner;
use crate::read::token::{Content, Mark};
use crate::value::node::Style;
use crate::value::resolve;

/// The nodes of a text's documents, up to its first error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// One line for each node: place, kind, tag, styles, anchor and value.
    pub lines: String,
    /// What is wrong after that.
    pub error: Option<Error>,
}

/// Outlines all documents as one stream, aliases and merge keys as they are written.
pub fn outline(bytes: &[u8]) -> Outline {
    let mut lines = String::new();
    let error = Source::from_bytes(bytes)
        .and_then(|source| write_stream(&source, &mut lines))
        .err();
    Outline { lines, error }
}

fn write_stream(source: &Source, lines: &mut String) -> Result<(), Error> {
    let scanner = Scanner::new(source, source.start, source.end, 0, Dialect::Kustomize);
    let mut parser = Parser::new(scanner);
    let mut anchors = HashSet::new();
    loop {
        let start = parser.next()?;
        if let EventKind::StreamEnd = start.kind {
            return Ok(());
        }
        let mut document = Lines::default();
        document.start(start.at, "doc");
        document.end();
        document.depth = 1;
        loop {
            let event = parser.next()?;
            if let EventKind::DocumentEnd = event.kind {
                break;
            }
            document.event(event, source, &mut anchors)?;
        }
        lines.push_str(&document.text);
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn start(&mut self, at: Mark, kind: &str) {
        let place = at.position();
        let indent = " ".repeat(self.depth);
        let _ = write!(self.text, "{indent}{}:{} {kind}", place.line, place.column);
    }

    fn end(&mut self) {
        self.text.push('\n');
    }

    fn word(&mut self, word: &str) {
        self.text.push(' ');
        self.text.push_str(word);
    }

    fn event(
        &mut self,
        event: Event,
        source: &Source,
        anchors: &mut HashSet<Box<str>>,
    ) -> Result<(), Error> {
        let properties = event.properties;
        match event.kind {
            EventKind::Scalar { content, style } => {
                let text = content.into_text(&source.text);
                let tag = properties.as_ref().and_then(|it| it.tag.as_deref());
                let scalar = resolve::kustomize(text, style, tag);
                let style = match style {
                    Style::Double => "double",
                    Style::Single => "single",
                    Style::Literal => "literal",
                    Style::Folded => "folded",
                    Style::Plain | Style::Flow => "",
                };
                self.start(event.at, "scalar");
                let default = resolve::short_name(scalar.tag);
                self.properties(default, style, properties, anchors);
                self.value(&scalar.text);
            }
            EventKind::Entry {
                key,
                content,
                style,
                value_at,
            } => {
                for (content, style, at) in [
                    (Content::Slice(key.0, key.1), Style::Plain, event.at),
                    (content, style, value_at),
                ] {
                    let scalar = EventKind::Scalar { content, style };
                    self.event(Event::plain(scalar, at), source, anchors)?;
                }
                return Ok(());
            }
            EventKind::Alias(name) => {
                if !anchors.contains(&name) {
                    let message = format!("unknown anchor '{name}' referenced");
                    return Err(Error::new(event.at.position(), message));
                }
                self.start(event.at, "alias");
                self.value(&name);
            }
            EventKind::ListStart { flow } => {
                self.start(event.at, "seq");
                self.properties("!!seq", if flow { "flow" } else { "" }, properties, anchors);
                self.depth += 1;
            }
            EventKind::MapStart { flow } => {
                self.start(event.at, "map");
                self.properties("!!map", if flow { "flow" } else { "" }, properties, anchors);
                self.depth += 1;
            }
            _ => {
                self.depth = self.depth.saturating_sub(1);
                return Ok(());
            }
        }
        self.end();
        Ok(())
    }

    fn properties(
        &mut self,
        default_tag: &str,
        style: &str,
        properties: Option<Box<Properties>>,
        anchors: &mut HashSet<Box<str>>,
    ) {
        let properties = properties.map(|boxed| *boxed).unwrap_or_default();
        match properties.tag.as_deref() {
            None | Some("!") => self.word(default_tag),
            Some(tag) => {
                self.word(&resolve::shorten(tag));
                self.word("tagged");
            }
        }
        if !style.is_empty() {
            self.word(style);
        }
        if let Some(anchor) = properties.anchor {
            self.word(&format!("&{anchor}"));
            anchors.insert(anchor);
        }
    }

    fn value(&mut self, value: &str) {
        self.text.push(' ');
        json::write_plain_string(&mut self.text, value);
    }
}
