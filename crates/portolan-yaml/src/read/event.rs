//! Events: the shape of a document as the parser sees it, one step at a time.

use crate::read::token::{Content, Mark};
use crate::value::node::Style;

/// What is written before a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Properties {
    /// The name after `&`.
    pub anchor: Option<Box<str>>,
    /// The tag with its handle resolved, `tag:yaml.org,2002:int`; `!` alone stays.
    pub tag: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum EventKind {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(Box<str>),
    Scalar {
        content: Content,
        style: Style,
    },
    /// A key that is a part of the source and its scalar value, neither with properties.
    Entry {
        key: (u32, u32),
        content: Content,
        style: Style,
        value_at: Mark,
    },
    ListStart {
        flow: bool,
    },
    ListEnd,
    MapStart {
        flow: bool,
    },
    MapEnd,
}

/// An event and where its text begins.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub kind: EventKind,
    pub at: Mark,
    /// Anchor and tag, when there are any.
    pub properties: Option<Box<Properties>>,
}

impl Event {
    /// An event without anchor and tag.
    pub(crate) fn plain(kind: EventKind, at: Mark) -> Self {
        Self {
            kind,
            at,
            properties: None,
        }
    }
}
