//! From text to programs: tokens, a tree that borrows from the text, then instructions.

pub(crate) mod compile;
pub(crate) mod lexer;
mod number;
mod parser;
pub(crate) mod tree;
mod unquote;

pub(crate) use number::Number;
pub(crate) use parser::parse;
