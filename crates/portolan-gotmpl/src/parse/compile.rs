//! Compiles the tree to instructions.
//!
//! Some things that Go's executor finds out by reflection each time depend only on the text. They are decided here
//! once: the number of arguments, the types of constants, the slots of variables. An error becomes an instruction
//! that fails, because Go reports only errors that it reaches.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use portolan_yaml::Text;

use super::arena::List;
use super::tree::{
    Body, Branches, Command, Fields, Node, Operand, Pipeline, Statement, Tree, Variable,
};
use crate::function::{Function, Param, Special};
use crate::program::{Constant, Literal, LiteralKind, Op, Program, Source, Span, Targets};

/// Turns the body of a template into a program that has no name yet.
pub(crate) fn compile<'s>(
    draft: &mut Draft,
    tree: &Tree<'s>,
    body: Body<'s>,
    source: &Arc<Source>,
) -> Program {
    let mut compiler = Compiler {
        program: draft,
        tree,
        source,
        loops: Vec::new(),
    };
    compiler.statements(body);
    compiler.emit(Op::Return, Span::default());
    draft.finish(source)
}

/// The largest draft that is kept for the next text.
const MAX_KEPT: usize = 1 << 16;

thread_local! {
    static KEPT: Cell<Option<Draft>> = const { Cell::new(None) };
}

/// The parts of a program while it grows; one draft serves all templates of a text, and then the next text.
#[derive(Default)]
pub(crate) struct Draft {
    code: Vec<Op>,
    spans: Vec<Span>,
    constants: Vec<Constant>,
    literals: Vec<Literal>,
    functions: Vec<&'static Function>,
    params: Vec<Param>,
    fields: Vec<Text>,
    paths: Vec<(u32, u32)>,
    names: Vec<Text>,
    messages: Vec<String>,
    targets: Vec<Targets>,
}

impl Draft {
    /// An empty draft, with the memory of an earlier one.
    pub(crate) fn begin() -> Self {
        KEPT.take().unwrap_or_default()
    }

    /// Leaves the memory to the next text of this thread.
    pub(crate) fn end(self) {
        if self.code.capacity() <= MAX_KEPT {
            KEPT.set(Some(self));
        }
    }

    /// Moves everything into memory of the right size.
    fn finish(&mut self, source: &Arc<Source>) -> Program {
        fn take<T>(pool: &mut Vec<T>) -> Box<[T]> {
            pool.drain(..).collect()
        }
        fn copy<T: Copy>(pool: &mut Vec<T>) -> Box<[T]> {
            let copied = Box::from(pool.as_slice());
            pool.clear();
            copied
        }
        Program {
            name: Text::default(),
            source: Arc::clone(source),
            code: copy(&mut self.code),
            spans: copy(&mut self.spans),
            constants: take(&mut self.constants),
            literals: take(&mut self.literals),
            functions: copy(&mut self.functions),
            params: copy(&mut self.params),
            fields: take(&mut self.fields),
            paths: copy(&mut self.paths),
            names: take(&mut self.names),
            messages: take(&mut self.messages),
            targets: copy(&mut self.targets),
            slots: 0,
            blank: false,
        }
    }
}

struct Compiler<'a, 's> {
    program: &'a mut Draft,
    tree: &'a Tree<'s>,
    source: &'a Source,
    loops: Vec<Loop>,
}

/// A loop being compiled.
struct Loop {
    /// The instruction that begins each round.
    next: u32,
    /// Instructions that leave the loop, to be told where its end is.
    breaks: Vec<usize>,
}

impl<'s> Compiler<'_, 's> {
    fn emit(&mut self, op: Op, span: Span) -> usize {
        self.program.code.push(op);
        self.program.spans.push(span);
        self.program.code.len() - 1
    }

    fn here(&self) -> u32 {
        self.program.code.len() as u32
    }

    /// Lets an earlier jump lead here.
    fn land(&mut self, at: usize) {
        let here = self.here();
        if let Some(
            Op::Jump(to)
            | Op::JumpIfFalse(to)
            | Op::AndElse(to)
            | Op::OrElse(to)
            | Op::EnterWith(to)
            | Op::MethodEnd(to)
            | Op::RangeBreak(to)
            | Op::RangeStart { otherwise: to, .. }
            | Op::RangeNext { exit: to, .. },
        ) = self.program.code.get_mut(at)
        {
            *to = here;
        }
    }

    fn fail(&mut self, message: String, span: Span) {
        let index = push(&mut self.program.messages, message);
        self.emit(Op::Fail(index), span);
    }

    fn fail_here(&mut self, message: String) {
        let index = push(&mut self.program.messages, message);
        self.emit(Op::FailHere(index), Span::default());
    }

    fn render(&self, span: Span) -> String {
        self.source.render(span)
    }

    // Statements.

    fn statements(&mut self, body: Body<'s>) {
        for statement in self.tree.statements.iter(body) {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement<'s>) {
        match statement {
            Statement::Text(text, start) => {
                let (start, end) = (*start as u32, (start + text.len()) as u32);
                self.emit(Op::Text { start, end }, Span::default());
            }
            Statement::Action(pipeline) => {
                self.pipeline(pipeline);
                let op = if pipeline.targets.is_empty() {
                    Op::Print
                } else {
                    Op::Drop
                };
                self.emit(op, pipeline.span);
            }
            Statement::If(branches) => self.branches(*branches, false),
            Statement::With(branches) => self.branches(*branches, true),
            Statement::Range {
                pipeline,
                body,
                otherwise,
            } => self.range(pipeline, *body, *otherwise),
            Statement::Template {
                name,
                pipeline,
                span,
            } => self.template(name, pipeline.as_ref(), *span),
            Statement::Break => {
                let at = self.emit(Op::RangeBreak(0), Span::default());
                if let Some(inner) = self.loops.last_mut() {
                    inner.breaks.push(at);
                }
            }
            Statement::Continue => {
                let next = self.loops.last().map_or(0, |inner| inner.next);
                self.emit(Op::Jump(next), Span::default());
            }
        }
    }

    fn branches(&mut self, all: Branches<'s>, with: bool) {
        let tree = self.tree;
        let count = all.branches.len() + usize::from(!all.otherwise.is_empty());
        let mut ends = Vec::new();
        for (index, branch) in tree.branches.iter(all.branches).enumerate() {
            self.pipeline(&branch.pipeline);
            let op = if with {
                Op::EnterWith(0)
            } else {
                Op::JumpIfFalse(0)
            };
            let skip = self.emit(op, branch.pipeline.span);
            self.statements(branch.body);
            if with {
                self.emit(Op::LeaveWith, Span::default());
            }
            if index + 1 < count {
                ends.push(self.emit(Op::Jump(0), Span::default()));
            }
            self.land(skip);
        }
        self.statements(all.otherwise);
        for end in ends {
            self.land(end);
        }
    }

    fn range(&mut self, pipeline: &Pipeline<'s>, body: Body<'s>, otherwise: Body<'s>) {
        self.pipeline(pipeline);
        let pair = pipeline.targets.len() > 1;
        let start = self.emit(Op::RangeStart { otherwise: 0, pair }, pipeline.span);
        let targets = self.tree.variables.iter(pipeline.targets);
        let targets = push(&mut self.program.targets, Targets::of(targets));
        let next = self.emit(Op::RangeNext { exit: 0, targets }, pipeline.span);
        self.loops.push(Loop {
            next: next as u32,
            breaks: Vec::new(),
        });
        self.statements(body);
        self.emit(Op::Jump(next as u32), Span::default());
        let breaks = self
            .loops
            .pop()
            .map(|inner| inner.breaks)
            .unwrap_or_default();
        self.land(next);
        let end = (!otherwise.is_empty()).then(|| self.emit(Op::Jump(0), Span::default()));
        self.land(start);
        self.statements(otherwise);
        for exit in end.into_iter().chain(breaks) {
            self.land(exit);
        }
    }

    fn template(&mut self, name: &str, pipeline: Option<&Pipeline<'s>>, span: Span) {
        let name = push(&mut self.program.names, Text::from(name));
        if let Some(pipeline) = pipeline {
            self.emit(Op::FindTemplate(name), span);
            self.pipeline(pipeline);
        } else {
            self.emit(Op::Nil, span);
        }
        self.emit(Op::Template(name), span);
    }

    // Pipelines.

    fn pipeline(&mut self, pipeline: &Pipeline<'s>) {
        let tree = self.tree;
        for (index, command) in tree.commands.iter(pipeline.commands).enumerate() {
            let piped = index > 0;
            if !piped {
                self.place_of_first(command, pipeline.span);
            }
            self.command(command, piped);
        }
        let last = tree.commands.last(pipeline.commands);
        let boxed = match last.map(|command| &command.first.operand) {
            Some(Operand::Function(function)) => is_short_circuit(function),
            Some(Operand::Pipeline(_)) | None => false,
            Some(_) => true,
        };
        if boxed {
            self.emit(Op::Unbox, pipeline.span);
        }
        for target in tree.variables.iter(pipeline.targets) {
            match target.slot {
                Some(slot) => {
                    self.emit(Op::SetVariable(slot), pipeline.span);
                }
                None => self.fail_here(format!("undefined variable: {}", target.name)),
            }
        }
    }

    /// Go complains about arguments after parentheses at the place of the whole pipeline.
    fn place_of_first(&mut self, command: &Command<'s>, pipeline: Span) {
        if matches!(command.first.operand, Operand::Pipeline(_)) && !command.args.is_empty() {
            self.emit(Op::At, pipeline);
        }
    }

    /// A command; `piped` when the value of the one before it lies on the stack.
    fn command(&mut self, command: &Command<'s>, piped: bool) {
        let (first, args) = (&command.first, command.args);
        let has_args = piped || !args.is_empty();
        match &first.operand {
            Operand::Function(function) => {
                self.call(function, first.span, command.span, args, piped);
            }
            Operand::Field(fields) if has_args => {
                self.receiver(Receiver::Dot, *fields, first, args, piped);
            }
            Operand::Variable(variable, fields) if has_args && !fields.is_empty() => {
                self.receiver(Receiver::Variable(*variable), *fields, first, args, piped);
            }
            Operand::Chain(inner, fields) if has_args => {
                self.receiver(Receiver::Chain(*inner), *fields, first, args, piped);
            }
            Operand::Pipeline(_) if has_args => {
                let text = self.render(first.span);
                self.fail_here(format!("can't give argument to non-function {text}"));
            }
            _ if has_args => {
                let text = self.render(first.span);
                self.fail(
                    format!("can't give argument to non-function {text}"),
                    first.span,
                );
            }
            Operand::Nil => self.fail("nil is not a command".to_owned(), first.span),
            _ => self.operand(first, Param::Any),
        }
    }

    /// An operand without arguments, where a parameter's type is wanted.
    fn operand(&mut self, node: &Node<'s>, param: Param) {
        let span = node.span;
        match &node.operand {
            Operand::Dot => {
                self.emit(Op::Dot, span);
            }
            Operand::Nil if param.can_be_nil() => {
                self.emit(Op::Nil, span);
                return;
            }
            Operand::Nil => {
                return self.fail(format!("cannot assign nil to {}", param.name()), span);
            }
            Operand::Field(fields) => {
                let path = self.path(*fields);
                self.emit(Op::DotPath(path), span);
            }
            Operand::Variable(variable, fields) => self.variable(*variable, *fields, span),
            Operand::Pipeline(pipeline) => self.pipeline(pipeline),
            Operand::Function(function) => self.call(function, span, span, List::default(), false),
            Operand::Chain(inner, fields) => {
                self.chain_start(*inner, node);
                let path = self.path(*fields);
                self.emit(Op::Path(path), span);
            }
            Operand::Bool(_) | Operand::Number(_) | Operand::String(_) => {
                return self.literal(node, param);
            }
        }
        if !param.takes_anything() {
            let param = push(&mut self.program.params, param);
            self.emit(Op::Check(param), span);
        }
    }

    fn literal(&mut self, node: &Node<'s>, param: Param) {
        let Some(literal) = self.as_literal(node) else {
            return;
        };
        match literal.convert(param) {
            Ok(constant) => self.constant(constant, node.span),
            Err(message) => self.fail(message, node.span),
        }
    }

    fn constant(&mut self, constant: Constant, span: Span) {
        let index = push(&mut self.program.constants, constant);
        self.emit(Op::Constant(index), span);
    }

    fn as_literal(&self, node: &Node<'s>) -> Option<Literal> {
        let kind = match &node.operand {
            Operand::Bool(value) => LiteralKind::Bool(*value),
            Operand::Number(number) => LiteralKind::Number(**number),
            Operand::String(Cow::Borrowed(part)) => LiteralKind::Str(self.part(part)),
            Operand::String(Cow::Owned(bytes)) => LiteralKind::Str(Constant::string(bytes)),
            _ => return None,
        };
        Some(Literal {
            text: self.source.part(node.span),
            kind,
        })
    }

    /// A string constant without escapes: a part of the source.
    fn part(&self, bytes: &[u8]) -> Constant {
        match std::str::from_utf8(bytes) {
            Ok(text) => Constant::Str(self.source.share(text)),
            Err(_) => Constant::string(bytes),
        }
    }

    fn path(&mut self, mut fields: Fields<'_>) -> u32 {
        let program = &mut *self.program;
        let start = program.fields.len() as u32;
        while let Some((field, rest)) = fields.split_first() {
            program.fields.push(self.source.share(field));
            fields = rest;
        }
        let end = program.fields.len() as u32;
        push(&mut program.paths, (start, end))
    }

    fn variable(&mut self, variable: Variable<'_>, fields: Fields<'_>, span: Span) {
        let Some(slot) = variable.slot else {
            return self.fail(format!("undefined variable: {}", variable.name), span);
        };
        if fields.is_empty() {
            self.emit(Op::Variable(slot), span);
        } else {
            let path = self.path(fields);
            self.emit(Op::VariablePath { slot, path }, span);
        }
    }

    /// What a chain of fields begins with.
    fn chain_start(&mut self, inner: List<Node<'s>>, chain: &Node<'s>) {
        self.emit(Op::At, chain.span);
        if let Some(inner) = self.tree.operands.first(inner) {
            self.operand(inner, Param::Any);
        }
    }

    // Calls.

    fn call(
        &mut self,
        function: &'static Function,
        name: Span,
        command: Span,
        args: List<Node<'s>>,
        piped: bool,
    ) {
        let count = args.len() + usize::from(piped);
        if let Err(message) = function.signature.check_count(function.name, count, piped) {
            return self.fail(message, name);
        }
        if args.is_empty() {
            self.emit(Op::At, name);
        }
        if is_short_circuit(function) {
            return self.short_circuit(function, args, piped);
        }
        if function.special == Some(Special::Call) {
            let first = self.tree.operands.first(args);
            let text = first.map(|node| self.render(node.span)).unwrap_or_default();
            self.constant(Constant::string(text.as_bytes()), name);
        }
        for (index, arg) in self.tree.operands.iter(args).enumerate() {
            self.operand(arg, function.signature.param(index));
        }
        let param = function.signature.param(args.len());
        if piped && !param.takes_anything() {
            let param = push(&mut self.program.params, param);
            self.emit(
                Op::CheckPiped {
                    param,
                    args: args.len() as u32,
                },
                command,
            );
        }
        let extra = usize::from(function.special == Some(Special::Call));
        let function = push(&mut self.program.functions, function);
        let args = (args.len() + extra) as u32;
        self.emit(
            Op::Call {
                function,
                args,
                piped,
            },
            command,
        );
    }

    /// `and` and `or` return the first argument that decides, or the last.
    fn short_circuit(&mut self, function: &Function, args: List<Node<'s>>, piped: bool) {
        let mut exits = Vec::new();
        for (index, arg) in self.tree.operands.iter(args).enumerate() {
            self.operand(arg, Param::Value);
            if piped || index + 1 < args.len() {
                let op = if function.special == Some(Special::And) {
                    Op::AndElse(0)
                } else {
                    Op::OrElse(0)
                };
                exits.push(self.emit(op, arg.span));
            }
        }
        if !piped {
            for exit in exits {
                self.land(exit);
            }
            return;
        }
        // No argument decided, so the value from the pipeline, below, is the answer.
        let end = self.emit(Op::Jump(0), Span::default());
        for exit in exits {
            self.land(exit);
        }
        self.emit(Op::Nip, Span::default());
        self.land(end);
    }

    /// A field with arguments: a method, or a mistake.
    fn receiver(
        &mut self,
        receiver: Receiver<'s>,
        fields: Fields<'_>,
        node: &Node<'s>,
        args: List<Node<'s>>,
        piped: bool,
    ) {
        let (path, last) = fields.split_last();
        match receiver {
            Receiver::Dot if path.is_empty() => {
                self.emit(Op::Dot, node.span);
            }
            Receiver::Dot => {
                let path = self.path(path);
                self.emit(Op::DotPath(path), node.span);
            }
            Receiver::Variable(variable) => self.variable(variable, path, node.span),
            Receiver::Chain(inner) => {
                self.chain_start(inner, node);
                if !path.is_empty() {
                    let path = self.path(path);
                    self.emit(Op::Path(path), node.span);
                }
            }
        }
        let name = self.source.share(last);
        let name = push(&mut self.program.names, name);
        let count = args.len() as u32;
        self.emit(
            Op::Method {
                name,
                args: count,
                piped,
            },
            node.span,
        );
        let end = self.emit(Op::MethodEnd(0), node.span);
        for (index, arg) in self.tree.operands.iter(args).enumerate() {
            // Only the types of parameters depend on the index, and no method has that many.
            self.method_arg(arg, name, index.try_into().unwrap_or(u16::MAX));
        }
        self.emit(
            Op::CallMethod {
                name,
                args: count,
                piped,
            },
            node.span,
        );
        self.land(end);
    }

    /// What a method takes is known only when it runs.
    fn method_arg(&mut self, node: &Node<'s>, name: u32, index: u16) {
        if let Some(literal) = self.as_literal(node) {
            let literal = push(&mut self.program.literals, literal);
            self.emit(
                Op::MethodLiteral {
                    name,
                    index,
                    literal,
                },
                node.span,
            );
        } else if matches!(node.operand, Operand::Nil) {
            self.emit(Op::MethodNil { name, index }, node.span);
        } else {
            self.operand(node, Param::Any);
            self.emit(Op::MethodArg { name, index }, node.span);
        }
    }
}

/// Where a chain of fields with arguments begins.
#[derive(Clone, Copy)]
enum Receiver<'s> {
    Dot,
    Variable(Variable<'s>),
    Chain(List<Node<'s>>),
}

/// Whether a function is `and` or `or`, which return one of their operands as it is.
fn is_short_circuit(function: &Function) -> bool {
    matches!(function.special, Some(Special::And | Special::Or))
}

fn push<T>(pool: &mut Vec<T>, item: T) -> u32 {
    pool.push(item);
    (pool.len() - 1) as u32
}

impl Targets {
    fn of<'t>(mut targets: impl Iterator<Item = &'t Variable<'t>>) -> Self {
        let (first, second) = (targets.next(), targets.next());
        let slot = |variable: Option<&Variable<'_>>| variable.and_then(|variable| variable.slot);
        match second {
            None => Self {
                key: None,
                element: slot(first),
            },
            Some(_) => Self {
                key: slot(first),
                element: slot(second),
            },
        }
    }
}
