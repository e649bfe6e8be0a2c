//! The tree of a parsed template: statements hold pipelines, pipelines hold commands, commands hold operands.
//!
//! Names and texts borrow from the source, lists are in arenas. Every node that an error can name keeps its [`Span`].

use std::borrow::Cow;

use super::arena::{Arena, List};
use super::number::Number;
use crate::function::Function;
use crate::program::Span;

/// Everything that lists of the tree hold.
pub(crate) struct Tree<'s> {
    pub(crate) statements: Arena<Statement<'s>>,
    pub(crate) branches: Arena<Branch<'s>>,
    pub(crate) commands: Arena<Command<'s>>,
    pub(crate) operands: Arena<Node<'s>>,
    pub(crate) variables: Arena<Variable<'s>>,
}

/// How far a tree had grown at some point.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    statements: usize,
    branches: usize,
    commands: usize,
    operands: usize,
    variables: usize,
}

/// Statements one after the other.
pub(crate) type Body<'s> = List<Statement<'s>>;

pub(crate) enum Statement<'s> {
    /// A part of the source and where it begins.
    Text(&'s str, usize),
    Action(Pipeline<'s>),
    If(Branches<'s>),
    With(Branches<'s>),
    Range {
        pipeline: Pipeline<'s>,
        body: Body<'s>,
        otherwise: Body<'s>,
    },
    Template {
        name: Cow<'s, str>,
        pipeline: Option<Pipeline<'s>>,
        span: Span,
    },
    Break,
    Continue,
}

/// `if` or `with` and its `else if` or `else with` chain, in order.
#[derive(Clone, Copy, Default)]
pub(crate) struct Branches<'s> {
    pub(crate) branches: List<Branch<'s>>,
    pub(crate) otherwise: Body<'s>,
}

/// What is done when a pipeline is true.
pub(crate) struct Branch<'s> {
    pub(crate) pipeline: Pipeline<'s>,
    pub(crate) body: Body<'s>,
}

#[derive(Clone, Copy)]
pub(crate) struct Pipeline<'s> {
    pub(crate) targets: List<Variable<'s>>,
    /// The targets are assigned, not declared.
    pub(crate) assign: bool,
    pub(crate) commands: List<Command<'s>>,
    pub(crate) span: Span,
}

pub(crate) struct Command<'s> {
    pub(crate) first: Node<'s>,
    pub(crate) args: List<Node<'s>>,
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
    Pipeline(Pipeline<'s>),
    /// The list holds the one node that the fields belong to.
    Chain(List<Node<'s>>, Fields<'s>),
}

/// Names of fields as they stand in the text, with points between them; empty for none.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'s>(pub(crate) &'s str);

#[derive(Clone, Copy)]
pub(crate) struct Variable<'s> {
    pub(crate) name: &'s str,
    /// None when the name is known to the parser but has no value when it is reached.
    pub(crate) slot: Option<u32>,
}

// === impl Tree ===

impl<'s> Tree<'s> {
    /// A tree for a text of that many bytes; only long templates need more room than it begins with.
    pub(crate) fn for_text(bytes: usize) -> Self {
        let room = (bytes / 32).clamp(2, 256);
        Self {
            statements: Arena::with_capacity(room),
            branches: Arena::with_capacity(room / 4),
            commands: Arena::with_capacity(room),
            operands: Arena::with_capacity(room),
            variables: Arena::with_capacity(room / 4),
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent {
            statements: self.statements.len(),
            branches: self.branches.len(),
            commands: self.commands.len(),
            operands: self.operands.len(),
            variables: self.variables.len(),
        }
    }

    /// Forgets what was added since.
    pub(crate) fn shrink(&mut self, extent: Extent) {
        self.statements.truncate(extent.statements);
        self.branches.truncate(extent.branches);
        self.commands.truncate(extent.commands);
        self.operands.truncate(extent.operands);
        self.variables.truncate(extent.variables);
    }

    /// Whether only space would be printed: such a definition replaces no other.
    pub(crate) fn is_blank(&self, body: Body<'s>) -> bool {
        let mut statements = self.statements.iter(body);
        statements.all(
            |statement| matches!(statement, Statement::Text(text, _) if text.trim().is_empty()),
        )
    }
}

// === impl Fields ===

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
