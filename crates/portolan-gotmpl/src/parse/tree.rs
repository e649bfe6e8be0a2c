//! The tree of a parsed text: statements hold pipelines, pipelines hold commands, commands hold operands.
//!
//! Names and texts borrow from the source. Every node that an error can name keeps its [`Span`].

use std::borrow::Cow;

use super::number::Number;
use crate::function::Function;
use crate::program::Span;

/// A template that a text defines, or the text itself.
pub(crate) struct Definition<'s> {
    pub(crate) name: String,
    pub(crate) body: Vec<Statement<'s>>,
    /// Variables alive at the same time, `$` included.
    pub(crate) slots: usize,
}

pub(crate) enum Statement<'s> {
    /// A part of the source and where it begins.
    Text(&'s str, usize),
    Action(Pipeline<'s>),
    If(Branches<'s>),
    With(Branches<'s>),
    Range {
        pipeline: Pipeline<'s>,
        body: Vec<Self>,
        otherwise: Vec<Self>,
    },
    Template {
        name: String,
        pipeline: Option<Pipeline<'s>>,
        span: Span,
    },
    Break,
    Continue,
}

/// `if` or `with` and its `else if` or `else with` chain, in order.
pub(crate) struct Branches<'s> {
    pub(crate) branches: Vec<(Pipeline<'s>, Vec<Statement<'s>>)>,
    pub(crate) otherwise: Vec<Statement<'s>>,
}

pub(crate) struct Pipeline<'s> {
    pub(crate) targets: Vec<Variable<'s>>,
    /// The targets are assigned, not declared.
    pub(crate) assign: bool,
    pub(crate) commands: Vec<Command<'s>>,
    pub(crate) span: Span,
}

pub(crate) struct Command<'s> {
    pub(crate) first: Node<'s>,
    pub(crate) args: Vec<Node<'s>>,
    pub(crate) span: Span,
}

/// An operand and where it stands.
pub(crate) struct Node<'s> {
    pub(crate) operand: Operand<'s>,
    /// What an error names.
    pub(crate) span: Span,
    /// The end, parentheses included.
    pub(crate) end: usize,
}

pub(crate) enum Operand<'s> {
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    String(Cow<'s, [u8]>),
    Field(Fields<'s>),
    Variable(Variable<'s>, Fields<'s>),
    Function(&'static Function),
    Pipeline(Box<Pipeline<'s>>),
    Chain(Box<Node<'s>>, Fields<'s>),
}

/// Names of fields as they stand in the text, with points between them; empty for none.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'s>(pub(crate) &'s str);

#[derive(Clone, Copy)]
pub(crate) struct Variable<'s> {
    pub(crate) name: &'s str,
    /// None when the name is known to the parser but has no value when it is reached.
    pub(crate) slot: Option<usize>,
}

impl<'s> Fields<'s> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The first field and those after it; none where there are no more.
    pub(crate) fn split_first(self) -> Option<(&'s str, Self)> {
        let end = self.0.bytes().position(|byte| byte == b'.');
        match end.and_then(|end| Some((self.0.get(..end)?, self.0.get(end + 1..)?))) {
            Some((first, rest)) => Some((first, Self(rest))),
            None => (!self.0.is_empty()).then_some((self.0, Self(""))),
        }
    }

    /// The fields before the last, and the last.
    pub(crate) fn split_last(self) -> (Self, &'s str) {
        match self.0.rsplit_once('.') {
            Some((before, last)) => (Self(before), last),
            None => (Self(""), self.0),
        }
    }
}

impl Statement<'_> {
    /// Whether only space would be printed: such a definition replaces no other.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text, _) if text.trim().is_empty())
    }
}

impl Pipeline<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}
