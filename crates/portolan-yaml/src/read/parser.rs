//! Turns tokens into events: the grammar of YAML as a state machine with a stack.

mod block;
mod flow;

use std::sync::Arc;

use crate::error::Fallible;
use crate::read::event::{Event, EventKind, Properties};
use crate::read::scanner::{Blame, Scanner};
use crate::read::token::{Content, Mark, TagParts, Token, TokenKind};
use crate::value::node::Style;

/// The parser over one scanner.
pub(crate) struct Parser<'s> {
    scanner: Scanner<'s>,
    state: State,
    states: Vec<State>,
    /// Where the open collections began, for messages.
    marks: Vec<Mark>,
    tag_directives: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Which nodes may stand at a place.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Flow,
    Block,
    BlockOrIndentless,
}

const DEFAULT_TAGS: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

impl<'s> Parser<'s> {
    pub(crate) fn new(scanner: Scanner<'s>) -> Self {
        Self {
            scanner,
            state: State::ImplicitDocumentStart,
            states: Vec::with_capacity(16),
            marks: Vec::with_capacity(16),
            tag_directives: Vec::new(),
        }
    }

    /// The source that slices refer to.
    pub(crate) fn source(&self) -> &'s Arc<str> {
        self.scanner.source()
    }

    /// Where scanning stands, and the line there.
    pub(crate) fn offset(&self) -> (usize, u32) {
        self.scanner.offset()
    }

    /// The next event; `StreamEnd` again and again at the end.
    pub(crate) fn next(&mut self) -> Fallible<Event> {
        match self.state {
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Allowed::Block),
            State::BlockSequenceFirstEntry => {
                self.enter()?;
                self.block_sequence_entry()
            }
            State::BlockSequenceEntry => self.block_sequence_entry(),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => {
                self.enter()?;
                self.block_mapping_key()
            }
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => {
                self.enter()?;
                self.flow_sequence_entry(true)
            }
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_pair_key(),
            State::FlowSequenceEntryMappingValue => self.flow_pair_value(),
            State::FlowSequenceEntryMappingEnd => self.flow_pair_end(),
            State::FlowMappingFirstKey => {
                self.enter()?;
                self.flow_mapping_key(true)
            }
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event::plain(EventKind::StreamEnd, Mark::default())),
        }
    }

    fn peek(&mut self) -> Fallible<&Token> {
        self.scanner.peek()
    }

    /// Passes over the token that was looked at and shows the next one.
    fn advance(&mut self) -> Fallible<&Token> {
        self.scanner.skip();
        self.scanner.peek()
    }

    /// Takes a collection's first token.
    fn enter(&mut self) -> Fallible<()> {
        let token = self.scanner.take()?;
        self.marks.push(token.start);
        Ok(())
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    fn fail<T>(&self, context: Option<Mark>, problem: Mark, message: &str) -> Fallible<T> {
        Err(Box::new(self.scanner.error(
            &Blame::Parser,
            context,
            problem,
            message,
        )))
    }

    /// Ends the collection whose end token is next.
    fn leave(&mut self, kind: EventKind) -> Fallible<Event> {
        self.pop_state();
        self.marks.pop();
        let token = self.scanner.take()?;
        Ok(Event::plain(kind, token.start))
    }

    // Documents.

    fn document_start(&mut self, implicit: bool) -> Fallible<Event> {
        if !implicit {
            while matches!(self.peek()?.kind, TokenKind::DocumentEnd) {
                self.scanner.take()?;
            }
        }
        let token = self.peek()?;
        let at = token.start;
        match token.kind {
            TokenKind::StreamEnd => {
                self.state = State::End;
                self.scanner.take()?;
                return Ok(Event::plain(EventKind::StreamEnd, at));
            }
            TokenKind::VersionDirective { .. }
            | TokenKind::TagDirective(_)
            | TokenKind::DocumentStart => self.explicit_start()?,
            _ if implicit => {
                self.process_directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
            }
            _ => self.explicit_start()?,
        }
        Ok(Event::plain(EventKind::DocumentStart, at))
    }

    fn explicit_start(&mut self) -> Fallible<()> {
        self.process_directives()?;
        let token = self.peek()?;
        if !matches!(token.kind, TokenKind::DocumentStart) {
            let at = token.start;
            return self.fail(None, at, "did not find expected <document start>");
        }
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        self.scanner.take()?;
        Ok(())
    }

    fn process_directives(&mut self) -> Fallible<()> {
        let mut version_seen = false;
        while let TokenKind::VersionDirective { .. } | TokenKind::TagDirective(_) =
            self.peek()?.kind
        {
            let token = self.scanner.take()?;
            match token.kind {
                TokenKind::VersionDirective { .. } if version_seen => {
                    return self.fail(None, token.start, "found duplicate %YAML directive");
                }
                TokenKind::VersionDirective { major: 1, minor: 1 } => version_seen = true,
                TokenKind::TagDirective(parts) => {
                    let TagParts { handle, rest } = *parts;
                    if self.tag_directives.iter().any(|known| known.0 == handle) {
                        return self.fail(None, token.start, "found duplicate %TAG directive");
                    }
                    self.tag_directives.push((handle, rest));
                }
                _ => return self.fail(None, token.start, "found incompatible YAML document"),
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        if let TokenKind::VersionDirective { .. }
        | TokenKind::TagDirective(_)
        | TokenKind::DocumentStart
        | TokenKind::DocumentEnd
        | TokenKind::StreamEnd = token.kind
        {
            let at = token.start;
            self.pop_state();
            return Ok(empty_scalar(at));
        }
        self.node(Allowed::Block)
    }

    fn document_end(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let at = token.start;
        if matches!(token.kind, TokenKind::DocumentEnd) {
            self.scanner.take()?;
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok(Event::plain(EventKind::DocumentEnd, at))
    }

    // Nodes.

    fn node(&mut self, allowed: Allowed) -> Fallible<Event> {
        let token = self.peek()?;
        let start = token.start;
        match token.kind {
            TokenKind::Scalar(..) => self.scalar(start, None),
            TokenKind::Alias(_) => {
                self.pop_state();
                self.alias()
            }
            TokenKind::Anchor(_) | TokenKind::Tag(_) => {
                let properties = self.properties(start)?;
                self.content(allowed, start, properties)
            }
            _ => self.content(allowed, start, None),
        }
    }

    /// What follows the properties of a node.
    fn content(
        &mut self,
        allowed: Allowed,
        start: Mark,
        properties: Option<Box<Properties>>,
    ) -> Fallible<Event> {
        let token = self.peek()?;
        let (token_start, block) = (token.start, allowed != Allowed::Flow);
        let (state, list, flow) = match token.kind {
            TokenKind::BlockEntry if allowed == Allowed::BlockOrIndentless => {
                (State::IndentlessSequenceEntry, true, false)
            }
            TokenKind::Scalar(..) => return self.scalar(start, properties),
            TokenKind::FlowSequenceStart => (State::FlowSequenceFirstEntry, true, true),
            TokenKind::FlowMappingStart => (State::FlowMappingFirstKey, false, true),
            TokenKind::BlockSequenceStart if block => (State::BlockSequenceFirstEntry, true, false),
            TokenKind::BlockMappingStart if block => (State::BlockMappingFirstKey, false, false),
            _ if properties.is_some() => {
                self.pop_state();
                return Ok(Event {
                    properties,
                    ..empty_scalar(start)
                });
            }
            _ => {
                return self.fail(
                    Some(start),
                    token_start,
                    "did not find expected node content",
                );
            }
        };
        self.state = state;
        let kind = if list {
            EventKind::ListStart { flow }
        } else {
            EventKind::MapStart { flow }
        };
        Ok(Event {
            kind,
            at: start,
            properties,
        })
    }

    fn alias(&mut self) -> Fallible<Event> {
        let token = self.scanner.take()?;
        let TokenKind::Alias(name) = token.kind else {
            return self.fail(None, token.start, "did not find expected node content");
        };
        Ok(Event::plain(EventKind::Alias(name), token.start))
    }

    /// A scalar without properties, after which a state follows.
    fn bare_scalar(&mut self, next: State) -> Fallible<Event> {
        let token = self.scanner.take()?;
        self.state = next;
        let TokenKind::Scalar(content, style) = token.kind else {
            return self.fail(None, token.start, "did not find expected node content");
        };
        Ok(Event::plain(
            EventKind::Scalar { content, style },
            token.start,
        ))
    }

    fn scalar(&mut self, at: Mark, properties: Option<Box<Properties>>) -> Fallible<Event> {
        let token = self.scanner.take()?;
        self.pop_state();
        let TokenKind::Scalar(content, style) = token.kind else {
            return self.fail(None, token.start, "did not find expected node content");
        };
        Ok(Event {
            kind: EventKind::Scalar { content, style },
            at,
            properties,
        })
    }

    /// An anchor and a tag in either order.
    fn properties(&mut self, start: Mark) -> Fallible<Option<Box<Properties>>> {
        let mut found = Properties::default();
        let mut tag = None;
        loop {
            match self.peek()?.kind {
                TokenKind::Anchor(_) if found.anchor.is_none() => {}
                TokenKind::Tag(_) if tag.is_none() => {}
                _ => break,
            }
            let token = self.scanner.take()?;
            match token.kind {
                TokenKind::Anchor(name) => found.anchor = Some(name),
                TokenKind::Tag(parts) => tag = Some((parts, token.start)),
                _ => {}
            }
        }
        if let Some((parts, at)) = tag {
            found.tag = Some(self.full_tag(*parts, start, at)?);
        }
        let any = found.anchor.is_some() || found.tag.is_some();
        Ok(any.then(|| Box::new(found)))
    }

    fn full_tag(&self, parts: TagParts, start: Mark, at: Mark) -> Fallible<String> {
        let TagParts { handle, rest } = parts;
        if handle.is_empty() {
            return Ok(rest);
        }
        let own = self.tag_directives.iter();
        let mut known = own
            .map(|(handle, prefix)| (handle.as_str(), prefix.as_str()))
            .chain(DEFAULT_TAGS);
        match known.find(|known| known.0 == handle) {
            Some((_, prefix)) => Ok(format!("{prefix}{rest}")),
            None => self.fail(Some(start), at, "found undefined tag handle"),
        }
    }
}

fn empty_scalar(at: Mark) -> Event {
    let kind = EventKind::Scalar {
        content: Content::Slice(0, 0),
        style: Style::Plain,
    };
    Event::plain(kind, at)
}
