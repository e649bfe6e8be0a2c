//! YAML read and written exactly as Go's libraries do.

#![warn(missing_docs)]

mod node;
mod text;

pub use node::{Entry, Key, List, Map, Node, Position, Scalar, Style, Tag, Value};
pub use text::Text;
