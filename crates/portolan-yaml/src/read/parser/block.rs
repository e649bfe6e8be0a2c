//! Lists and maps written by indentation.

use super::{Allowed, Parser, State, empty_scalar};
use crate::error::Fallible;
use crate::read::event::{Event, EventKind};
use crate::read::token::{Mark, TokenKind};

impl Parser<'_> {
    pub(super) fn block_sequence_entry(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            TokenKind::BlockEntry => match self.advance()?.kind {
                TokenKind::BlockEntry | TokenKind::BlockEnd => {
                    self.state = State::BlockSequenceEntry;
                    Ok(empty_scalar(end))
                }
                _ => {
                    self.states.push(State::BlockSequenceEntry);
                    self.node(Allowed::Block)
                }
            },
            TokenKind::BlockEnd => self.leave(EventKind::ListEnd),
            _ => {
                let context = self.marks.pop();
                self.fail(context, start, "did not find expected '-' indicator")
            }
        }
    }

    pub(super) fn indentless_sequence_entry(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        if !matches!(token.kind, TokenKind::BlockEntry) {
            self.pop_state();
            return Ok(Event::plain(EventKind::ListEnd, start));
        }
        match self.advance()?.kind {
            TokenKind::BlockEntry
            | TokenKind::Key
            | TokenKind::EntryKey(..)
            | TokenKind::Value
            | TokenKind::BlockEnd => {
                self.state = State::IndentlessSequenceEntry;
                Ok(empty_scalar(end))
            }
            _ => {
                self.states.push(State::IndentlessSequenceEntry);
                self.node(Allowed::Block)
            }
        }
    }

    pub(super) fn block_mapping_key(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            TokenKind::Key => match self.advance()?.kind {
                TokenKind::Key
                | TokenKind::EntryKey(..)
                | TokenKind::Value
                | TokenKind::BlockEnd => {
                    self.state = State::BlockMappingValue;
                    Ok(empty_scalar(end))
                }
                TokenKind::Scalar(..) => self.bare_scalar(State::BlockMappingValue),
                _ => {
                    self.states.push(State::BlockMappingValue);
                    self.node(Allowed::BlockOrIndentless)
                }
            },
            TokenKind::EntryKey(key, key_end) => {
                self.scanner.skip();
                self.state = State::BlockMappingKey;
                self.entry((key, key_end), start)
            }
            TokenKind::BlockEnd => self.leave(EventKind::MapEnd),
            _ => {
                let context = self.marks.pop();
                self.fail(context, start, "did not find expected key")
            }
        }
    }

    /// The key whose token was just passed and the scalar after it.
    fn entry(&mut self, key: (u32, u32), at: Mark) -> Fallible<Event> {
        let token = self.scanner.take()?;
        let TokenKind::Scalar(content, style) = token.kind else {
            return self.fail(None, token.start, "did not find expected node content");
        };
        let kind = EventKind::Entry {
            key,
            content,
            style,
            value_at: token.start,
        };
        Ok(Event::plain(kind, at))
    }

    pub(super) fn block_mapping_value(&mut self) -> Fallible<Event> {
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        if !matches!(token.kind, TokenKind::Value) {
            self.state = State::BlockMappingKey;
            return Ok(empty_scalar(start));
        }
        match self.advance()?.kind {
            TokenKind::Key | TokenKind::EntryKey(..) | TokenKind::Value | TokenKind::BlockEnd => {
                self.state = State::BlockMappingKey;
                Ok(empty_scalar(end))
            }
            TokenKind::Scalar(..) => self.bare_scalar(State::BlockMappingKey),
            _ => {
                self.states.push(State::BlockMappingKey);
                self.node(Allowed::BlockOrIndentless)
            }
        }
    }
}
