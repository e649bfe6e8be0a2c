//! Reads text to values: characters, tokens, events, trees; and a direct reader for ordinary documents.

pub(crate) mod compose;
pub(crate) mod cursor;
pub(crate) mod direct;
pub(crate) mod documents;
pub(crate) mod event;
pub(crate) mod go_syntax;
pub(crate) mod map_builder;
pub(crate) mod parser;
pub(crate) mod reader;
pub(crate) mod scanner;
pub(crate) mod token;
