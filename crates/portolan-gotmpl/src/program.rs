//! The compiled form of a template: instructions for the executor, and what they refer to.
//!
//! A program contains no values, so threads can share it and execute it any number of times.

use std::sync::Arc;

use portolan_yaml::Text;

use crate::function::{Function, Param};
use crate::parse::lexer::{Delimiters, Lexer, TokenKind};
use crate::value::{FloatKind, IntKind, UintKind, Value};

/// A text as it was given, for errors and for the text between actions.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    pub(crate) delims: Arc<Delimiters>,
}

/// One template, ready to run.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: Text,
    pub(crate) source: Arc<Source>,
    pub(crate) code: Box<[Op]>,
    /// For each instruction the part of the source that an error names.
    pub(crate) spans: Box<[Span]>,
    pub(crate) constants: Box<[Constant]>,
    pub(crate) literals: Box<[Literal]>,
    pub(crate) functions: Box<[&'static Function]>,
    pub(crate) params: Box<[Param]>,
    /// The fields of all paths, one path after the other.
    pub(crate) fields: Box<[Text]>,
    /// For each path the part of `fields` that it is.
    pub(crate) paths: Box<[(u32, u32)]>,
    pub(crate) names: Box<[Text]>,
    pub(crate) messages: Box<[String]>,
    pub(crate) targets: Box<[Targets]>,
    /// How many variables are alive at the same time.
    pub(crate) slots: usize,
    /// Nothing but space: such a definition replaces no other of its name.
    pub(crate) blank: bool,
}

/// An instruction. Operands travel on the value stack; jumps name the index of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Appends a part of the source to the output.
    Text { start: u32, end: u32 },
    /// Prints the top value.
    Print,
    /// Forgets the top value.
    Drop,
    /// Forgets the value below the top.
    Nip,
    /// Only remembers the place: Go reports some errors at the place of the operand evaluated last.
    At,
    /// Pushes dot.
    Dot,
    /// Pushes a variable.
    Variable(u32),
    /// Pushes a constant.
    Constant(u32),
    /// Pushes nil.
    Nil,
    /// Pushes what a path of fields leads to, from dot.
    DotPath(u32),
    /// The same, from a variable.
    VariablePath { slot: u32, path: u32 },
    /// The same, from the top value, which it replaces.
    Path(u32),
    /// The top value ends a pipeline: its declared type is its own.
    Unbox,
    /// Checks the top value against a parameter's type.
    Check(u32),
    /// Checks the value that came through the pipeline, below the other arguments.
    CheckPiped { param: u32, args: u32 },
    /// Calls a function.
    Call {
        function: u32,
        args: u32,
        piped: bool,
    },
    /// Finds out whether the top value has a method; the arguments come next.
    Method { name: u32, args: u32, piped: bool },
    /// Where to go when there was nothing to ask for a method.
    MethodEnd(u32),
    /// Checks an argument of a method.
    MethodArg { name: u32, index: u16 },
    /// Pushes a constant as an argument of a method.
    MethodLiteral { name: u32, index: u16, literal: u32 },
    /// Pushes nil as an argument of a method.
    MethodNil { name: u32, index: u16 },
    /// Calls a method.
    CallMethod { name: u32, args: u32, piped: bool },
    /// Copies the top value into a variable.
    SetVariable(u32),
    /// Goes on elsewhere.
    Jump(u32),
    /// Takes the top value away and goes on elsewhere when it is false.
    JumpIfFalse(u32),
    /// Goes on elsewhere with the top value when it is false; forgets it otherwise.
    AndElse(u32),
    /// Goes on elsewhere with the top value when it is true; forgets it otherwise.
    OrElse(u32),
    /// Makes the top value dot, or goes on elsewhere when it is false.
    EnterWith(u32),
    /// Gives dot back.
    LeaveWith,
    /// Begins a loop over the top value, or goes on elsewhere when there is nothing in it.
    RangeStart { otherwise: u32, pair: bool },
    /// The next round, or the end of the loop.
    RangeNext { exit: u32, targets: u32 },
    /// Leaves the loop.
    RangeBreak(u32),
    /// Fails when there is no such template.
    FindTemplate(u32),
    /// Executes a template with the top value as dot.
    Template(u32),
    /// Fails at this place.
    Fail(u32),
    /// Fails at the place remembered last.
    FailHere(u32),
    /// Ends the template.
    Return,
}

/// The variables that a loop sets in each round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Targets {
    pub(crate) key: Option<u32>,
    pub(crate) element: Option<u32>,
}

/// A part of the source, and the offset that Go reports for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
    at: u32,
}

/// A constant whose type is settled.
#[derive(Debug, Clone)]
pub(crate) enum Constant {
    Bool(bool),
    Int(IntKind, i64),
    Uint(UintKind, u64),
    Float(f64),
    Complex(f64, f64),
    Str(Text),
    RawStr(Arc<[u8]>),
}

/// A constant that takes the type its use asks for, with its text.
#[derive(Debug, Clone)]
pub(crate) struct Literal {
    pub(crate) text: Text,
    pub(crate) kind: LiteralKind,
}

#[derive(Debug, Clone)]
pub(crate) enum LiteralKind {
    Bool(bool),
    Number(crate::parse::Number),
    /// A string; always one of the two string constants.
    Str(Constant),
}

// === impl Program ===

impl Program {
    pub(crate) fn path(&self, index: u32) -> &[Text] {
        let (start, end) = self.paths.get(index as usize).copied().unwrap_or_default();
        self.fields
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    pub(crate) fn name(&self, index: u32) -> &str {
        self.names
            .get(index as usize)
            .map(Text::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn message(&self, index: u32) -> String {
        self.messages
            .get(index as usize)
            .cloned()
            .unwrap_or_default()
    }
}

// === impl Source ===

impl Source {
    /// A part of the text as a value that shares it; `part` is borrowed from the text.
    pub(crate) fn share(&self, part: &str) -> Text {
        let start = part.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        Text::slice(&self.text, start, start.wrapping_add(part.len()))
            .unwrap_or_else(|| Text::from(part))
    }

    /// The text of a span as it is.
    pub(crate) fn part(&self, span: Span) -> Text {
        Text::slice(&self.text, span.start(), span.end()).unwrap_or_default()
    }

    /// Line and column of an offset; Go counts the column in bytes from 0.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = before
            .rfind('\n')
            .map_or(offset, |newline| offset - newline - 1);
        (line, column)
    }

    /// A part of an action as Go prints its tree: one space between operands, spaces around `|` and `:=`.
    pub(crate) fn render(&self, span: Span) -> String {
        let text = self.text.get(span.start()..span.end()).unwrap_or_default();
        let mut lexer = Lexer::inside_action(text, &self.delims);
        let mut out = String::with_capacity(text.len());
        let mut spaced = false;
        loop {
            let token = lexer.next();
            match token.kind {
                TokenKind::End | TokenKind::Error => return out,
                TokenKind::Space => spaced = true,
                TokenKind::Pipe | TokenKind::Declare | TokenKind::Assign => {
                    out.push(' ');
                    out.push_str(token.text);
                    spaced = true;
                }
                kind => {
                    let glued = out.is_empty() || out.ends_with('(');
                    let closes = matches!(kind, TokenKind::RightParen | TokenKind::Comma);
                    if spaced && !glued && !closes {
                        out.push(' ');
                    }
                    out.push_str(token.text);
                    spaced = kind == TokenKind::Comma;
                }
            }
        }
    }
}

// === impl Span ===

impl Span {
    /// Offsets are below 4 GiB: the parser refuses longer texts.
    pub(crate) fn new(start: usize, end: usize, at: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
            at: at as u32,
        }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) fn at(self) -> usize {
        self.at as usize
    }
}

// === impl Constant ===

impl Constant {
    pub(crate) fn string(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Str(text.into()),
            Err(_) => Self::RawStr(bytes.into()),
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(kind, value) => Value::Int(*kind, *value),
            Self::Uint(kind, value) => Value::Uint(*kind, *value),
            Self::Float(value) => Value::Float(FloatKind::Float64, *value),
            Self::Complex(re, im) => Value::Complex(*re, *im),
            Self::Str(text) => Value::Str(text.clone()),
            Self::RawStr(bytes) => Value::RawStr(bytes[..].into()),
        }
    }
}

// === impl Literal ===

impl Literal {
    /// The constant as a parameter's type asks for it; the error is Go's message.
    pub(crate) fn convert(&self, param: Param) -> Result<Constant, String> {
        let expected = |what: &str| Err(format!("expected {what}; found {}", self.text));
        match (param, &self.kind) {
            (Param::Any | Param::Value, _) => self.ideal(),
            (Param::Bool, LiteralKind::Bool(value)) => Ok(Constant::Bool(*value)),
            (Param::Bool, _) => expected("bool"),
            (Param::Str, LiteralKind::Str(constant)) => Ok(constant.clone()),
            (Param::Str, _) => expected("string"),
            (Param::Int | Param::Int64, LiteralKind::Number(number)) if number.int.is_some() => {
                let kind = if param == Param::Int {
                    IntKind::Int
                } else {
                    IntKind::Int64
                };
                Ok(Constant::Int(kind, number.int.unwrap_or_default()))
            }
            (Param::Int | Param::Int64, _) => expected("integer"),
            (Param::Uint32, LiteralKind::Number(number)) if number.uint.is_some() => Ok(
                Constant::Uint(UintKind::Uint32, number.uint.unwrap_or_default()),
            ),
            (Param::Uint32, _) => expected("unsigned integer"),
            (Param::Float, LiteralKind::Number(number)) if number.float.is_some() => {
                Ok(Constant::Float(number.float.unwrap_or_default()))
            }
            (Param::Float, _) => expected("float"),
            _ => Err(format!(
                "can't handle {} for arg of type {}",
                self.text,
                param.name()
            )),
        }
    }

    /// The constant where nothing asks for a type: its syntax decides.
    pub(crate) fn ideal(&self) -> Result<Constant, String> {
        let number = match &self.kind {
            LiteralKind::Bool(value) => return Ok(Constant::Bool(*value)),
            LiteralKind::Str(constant) => return Ok(constant.clone()),
            LiteralKind::Number(number) => number,
        };
        if let Some((re, im)) = number.complex {
            return Ok(Constant::Complex(re, im));
        }
        if let Some(float) = number.float.filter(|_| self.looks_like_float()) {
            return Ok(Constant::Float(float));
        }
        match number.int {
            Some(int) => Ok(Constant::Int(IntKind::Int, int)),
            None => Err(format!("{} overflows int", self.text)),
        }
    }

    fn looks_like_float(&self) -> bool {
        let text = &self.text;
        let is_hex_int = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        !is_hex_int && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}
