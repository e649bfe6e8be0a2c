//! Lists and maps written with brackets and braces.

use super::{Allowed, Parser, State, empty_scalar};
use crate::error::Fallible;
use crate::read::event::{Event, EventKind};
use crate::read::token::TokenKind;

impl Parser<'_> {
    pub(super) fn flow_sequence_entry(&mut self, first: bool) -> Fallible<Event> {
        if !first && !matches!(self.peek()?.kind, TokenKind::FlowSequenceEnd) {
            self.flow_comma("did not find expected ',' or ']'")?;
        }
        let token = self.peek()?;
        let start = token.start;
        match token.kind {
            TokenKind::FlowSequenceEnd => self.leave(EventKind::ListEnd),
            TokenKind::Key => {
                self.state = State::FlowSequenceEntryMappingKey;
                self.scanner.take()?;
                Ok(Event::plain(EventKind::MapStart { flow: true }, start))
            }
            _ => {
                self.states.push(State::FlowSequenceEntry);
                self.node(Allowed::Flow)
            }
        }
    }

    fn flow_comma(&mut self, message: &str) -> Fallible<()> {
        let token = self.peek()?;
        let start = token.start;
        if matches!(token.kind, TokenKind::FlowEntry) {
            self.scanner.take()?;
            return Ok(());
        }
        let context = self.marks.pop();
        self.fail(context, start, message)
    }

    /// The key of a pair inside a list: `[a: b]`.
    pub(super) fn flow_pair_key(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        if let TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd = token.kind {
            // Go takes the token here, the ':' included.
            let token = self.scanner.take()?;
            self.state = State::FlowSequenceEntryMappingValue;
            return Ok(empty_scalar(token.end));
        }
        self.states.push(State::FlowSequenceEntryMappingValue);
        self.node(Allowed::Flow)
    }

    pub(super) fn flow_pair_value(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let start = token.start;
        if matches!(token.kind, TokenKind::Value) {
            let next = self.advance()?;
            if !matches!(next.kind, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                self.states.push(State::FlowSequenceEntryMappingEnd);
                return self.node(Allowed::Flow);
            }
        }
        self.state = State::FlowSequenceEntryMappingEnd;
        Ok(empty_scalar(start))
    }

    pub(super) fn flow_pair_end(&mut self) -> Fallible<Event> {
        let at = self.peek()?.start;
        self.state = State::FlowSequenceEntry;
        Ok(Event::plain(EventKind::MapEnd, at))
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Fallible<Event> {
        if !first && !matches!(self.peek()?.kind, TokenKind::FlowMappingEnd) {
            self.flow_comma("did not find expected ',' or '}'")?;
        }
        match self.peek()?.kind {
            TokenKind::FlowMappingEnd => self.leave(EventKind::MapEnd),
            TokenKind::Key => {
                let next = self.advance()?;
                let start = next.start;
                if let TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd =
                    next.kind
                {
                    self.state = State::FlowMappingValue;
                    return Ok(empty_scalar(start));
                }
                self.states.push(State::FlowMappingValue);
                self.node(Allowed::Flow)
            }
            _ => {
                self.states.push(State::FlowMappingEmptyValue);
                self.node(Allowed::Flow)
            }
        }
    }

    pub(super) fn flow_mapping_value(&mut self, empty: bool) -> Fallible<Event> {
        let token = self.peek()?;
        let mut start = token.start;
        if !empty && matches!(token.kind, TokenKind::Value) {
            let next = self.advance()?;
            start = next.start;
            if !matches!(next.kind, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                self.states.push(State::FlowMappingKey);
                return self.node(Allowed::Flow);
            }
        }
        self.state = State::FlowMappingKey;
        Ok(empty_scalar(start))
    }
}
