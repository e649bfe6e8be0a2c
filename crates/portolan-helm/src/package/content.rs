//! The bytes of a file, shared by everything that is made from them.

use std::ops::Deref;
use std::sync::Arc;

use portolan_yaml::{Dialect, Errors, Node, Text};

/// The content of a file: a text where it is one, so that templates and values can be parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// UTF-8.
    Text(Arc<str>),
    /// Anything else.
    Bytes(Arc<[u8]>),
}

impl Content {
    /// The content as a text, which shares it where it is one; other bytes are replaced.
    pub fn to_text(&self) -> Arc<str> {
        match self {
            Self::Text(text) => Arc::clone(text),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        }
    }

    /// Reads the content's first document as Helm does.
    pub(crate) fn read_yaml(&self) -> Result<Node, Errors> {
        match self {
            Self::Text(text) => {
                portolan_yaml::parse_one(Text::from(Arc::clone(text)), Dialect::Helm)
            }
            Self::Bytes(bytes) => portolan_yaml::parse_one_bytes(bytes, Dialect::Helm),
        }
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => Self::Bytes(bytes.into()),
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}
