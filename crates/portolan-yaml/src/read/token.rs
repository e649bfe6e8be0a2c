//! Tokens: the scanner makes them from characters, and the parser turns them into events.

use std::sync::Arc;

use crate::value::node::{Position, Style};
use crate::value::text::Text;

/// A place while scanning: line and column from 0, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub line: u32,
    pub column: u32,
}

/// A scalar's or a name's content: the source itself where nothing had to be resolved.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A part of the source.
    Slice(u32, u32),
    /// A text put together from several parts; boxed, since it is rare and tokens are moved a lot.
    #[expect(clippy::box_collection, reason = "a thin pointer keeps tokens small")]
    Owned(Box<String>),
}

#[derive(Debug, Clone)]
pub(crate) enum TokenKind {
    StreamEnd,
    VersionDirective {
        major: u8,
        minor: u8,
    },
    TagDirective(Box<TagParts>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    /// Three tokens in one: KEY, a plain scalar from start to end, and VALUE; a scalar follows.
    EntryKey(u32, u32),
    Alias(Box<str>),
    Anchor(Box<str>),
    Tag(Box<TagParts>),
    Scalar(Content, Style),
}

/// A tag, or what `%TAG` says: a handle and the text it stands for or is followed by.
#[derive(Debug, Clone)]
pub(crate) struct TagParts {
    pub handle: String,
    pub rest: String,
}

/// A token and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: Mark,
    pub end: Mark,
}

impl Mark {
    /// The place as a reader counts it, from 1.
    pub(crate) fn position(self) -> Position {
        Position {
            line: self.line + 1,
            column: self.column + 1,
        }
    }
}

impl Content {
    /// The content, as a part of the source where it is one.
    pub(crate) fn into_text(self, source: &Arc<str>) -> Text {
        match self {
            Self::Slice(start, end) => Text::scanned(source, start, end),
            Self::Owned(text) => Text::from(*text),
        }
    }
}
