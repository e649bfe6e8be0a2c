//! Turns text into programs: tokens, a tree that borrows from the text, then instructions.

mod arena;
mod compile;
pub(crate) mod lexer;
mod number;
mod parser;
mod pipeline;
mod scope;
mod tree;

pub(crate) use number::Number;
pub(crate) use parser::parse;
