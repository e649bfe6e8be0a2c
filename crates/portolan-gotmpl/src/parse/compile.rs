//! From the tree to instructions.
//!
//! Everything that Go's executor finds out by reflection each time, but that the text alone decides, is settled
//! here: the number of arguments, the types of constants, the slots of variables. What is wrong becomes an
//! instruction that fails, because Go complains only about what it reaches.

use std::borrow::Cow;
use std::sync::Arc;

use portolan_yaml::Text;

use super::tree::{
    Branches, Command, Definition, Fields, Node, Operand, Pipeline, Statement, Variable,
};
use crate::function::{Function, Param, Special};
use crate::program::{Constant, Literal, LiteralKind, Op, Program, Source, Span, Targets};

/// Turns a definition into a program.
pub(crate) fn compile(definition: &Definition<'_>, source: &Arc<Source>) -> Program {
    let mut compiler = Compiler {
        program: Program {
            name: Text::from(definition.name.as_str()),
            source: Arc::clone(source),
            code: Vec::with_capacity(16),
            spans: Vec::with_capacity(16),
            constants: Vec::new(),
            literals: Vec::new(),
            functions: Vec::new(),
            params: Vec::new(),
            fields: Vec::new(),
            paths: Vec::new(),
            names: Vec::new(),
            messages: Vec::new(),
            targets: Vec::new(),
            slots: definition.slots,
            blank: definition.body.iter().all(Statement::is_blank),
        },
        loops: Vec::new(),
    };
    compiler.statements(&definition.body);
    compiler.emit(Op::Return, Span::default());
    compiler.program
}

struct Compiler {
    program: Program,
    loops: Vec<Loop>,
}

/// A loop being compiled.
struct Loop {
    /// The instruction that begins each round.
    next: u32,
    /// Instructions that leave the loop, to be told where its end is.
    breaks: Vec<usize>,
}

impl Compiler {
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
        self.program.source.render(span)
    }

    // Statements.

    fn statements(&mut self, statements: &[Statement<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement<'_>) {
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
            Statement::If(branches) => self.branches(branches, false),
            Statement::With(branches) => self.branches(branches, true),
            Statement::Range {
                pipeline,
                body,
                otherwise,
            } => self.range(pipeline, body, otherwise),
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

    fn branches(&mut self, all: &Branches<'_>, with: bool) {
        let mut ends = Vec::new();
        for (pipeline, body) in &all.branches {
            self.pipeline(pipeline);
            let op = if with {
                Op::EnterWith(0)
            } else {
                Op::JumpIfFalse(0)
            };
            let skip = self.emit(op, pipeline.span);
            self.statements(body);
            if with {
                self.emit(Op::LeaveWith, Span::default());
            }
            ends.push(self.emit(Op::Jump(0), Span::default()));
            self.land(skip);
        }
        self.statements(&all.otherwise);
        for end in ends {
            self.land(end);
        }
    }

    fn range(
        &mut self,
        pipeline: &Pipeline<'_>,
        body: &[Statement<'_>],
        otherwise: &[Statement<'_>],
    ) {
        self.pipeline(pipeline);
        let pair = pipeline.targets.len() > 1;
        let start = self.emit(Op::RangeStart { otherwise: 0, pair }, pipeline.span);
        let targets = push(&mut self.program.targets, Targets::of(&pipeline.targets));
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

    fn template(&mut self, name: &str, pipeline: Option<&Pipeline<'_>>, span: Span) {
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

    fn pipeline(&mut self, pipeline: &Pipeline<'_>) {
        for (index, command) in pipeline.commands.iter().enumerate() {
            let piped = index > 0;
            if !piped {
                self.place_of_first(command, pipeline.span);
            }
            self.command(command, piped);
        }
        let last = pipeline.commands.last();
        let boxed = match last.map(|command| &command.first.operand) {
            Some(Operand::Function(function)) => is_short_circuit(function),
            Some(Operand::Pipeline(_)) | None => false,
            Some(_) => true,
        };
        if boxed {
            self.emit(Op::Unbox, pipeline.span);
        }
        for target in &pipeline.targets {
            match target.slot {
                Some(slot) => {
                    self.emit(Op::SetVariable(slot as u32), pipeline.span);
                }
                None => self.fail_here(format!("undefined variable: {}", target.name)),
            }
        }
    }

    /// Go complains about arguments after parentheses at the place of the whole pipeline.
    fn place_of_first(&mut self, command: &Command<'_>, pipeline: Span) {
        if matches!(command.first.operand, Operand::Pipeline(_)) && !command.args.is_empty() {
            self.emit(Op::At, pipeline);
        }
    }

    /// A command; `piped` when the value of the one before it lies on the stack.
    fn command(&mut self, command: &Command<'_>, piped: bool) {
        let (first, args) = (&command.first, command.args.as_slice());
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
                self.receiver(Receiver::Node(inner), *fields, first, args, piped);
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
    fn operand(&mut self, node: &Node<'_>, param: Param) {
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
            Operand::Function(function) => self.call(function, span, span, &[], false),
            Operand::Chain(inner, fields) => {
                self.chain_start(inner, node);
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

    fn literal(&mut self, node: &Node<'_>, param: Param) {
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

    fn as_literal(&self, node: &Node<'_>) -> Option<Literal> {
        let kind = match &node.operand {
            Operand::Bool(value) => LiteralKind::Bool(*value),
            Operand::Number(number) => LiteralKind::Number(**number),
            Operand::String(Cow::Borrowed(part)) => LiteralKind::Str(self.part(part)),
            Operand::String(Cow::Owned(bytes)) => LiteralKind::Str(Constant::string(bytes)),
            _ => return None,
        };
        Some(Literal {
            text: self.program.source.part(node.span),
            kind,
        })
    }

    /// A string constant without escapes: a part of the source.
    fn part(&self, bytes: &[u8]) -> Constant {
        match std::str::from_utf8(bytes) {
            Ok(text) => Constant::Str(self.program.source.share(text)),
            Err(_) => Constant::string(bytes),
        }
    }

    fn path(&mut self, mut fields: Fields<'_>) -> u32 {
        let program = &mut self.program;
        let start = program.fields.len() as u32;
        while let Some((field, rest)) = fields.split_first() {
            program.fields.push(program.source.share(field));
            fields = rest;
        }
        let end = program.fields.len() as u32;
        push(&mut program.paths, (start, end))
    }

    fn variable(&mut self, variable: Variable<'_>, fields: Fields<'_>, span: Span) {
        let Some(slot) = variable.slot else {
            return self.fail(format!("undefined variable: {}", variable.name), span);
        };
        let slot = slot as u32;
        if fields.is_empty() {
            self.emit(Op::Variable(slot), span);
        } else {
            let path = self.path(fields);
            self.emit(Op::VariablePath { slot, path }, span);
        }
    }

    /// What a chain of fields begins with.
    fn chain_start(&mut self, inner: &Node<'_>, chain: &Node<'_>) {
        self.emit(Op::At, chain.span);
        self.operand(inner, Param::Any);
    }

    // Calls.

    fn call(
        &mut self,
        function: &'static Function,
        name: Span,
        command: Span,
        args: &[Node<'_>],
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
            let text = args
                .first()
                .map(|node| self.render(node.span))
                .unwrap_or_default();
            self.constant(Constant::string(text.as_bytes()), name);
        }
        for (index, arg) in args.iter().enumerate() {
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
    fn short_circuit(&mut self, function: &Function, args: &[Node<'_>], piped: bool) {
        let mut exits = Vec::new();
        for (index, arg) in args.iter().enumerate() {
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
        receiver: Receiver<'_, '_>,
        fields: Fields<'_>,
        node: &Node<'_>,
        args: &[Node<'_>],
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
            Receiver::Node(inner) => {
                self.chain_start(inner, node);
                if !path.is_empty() {
                    let path = self.path(path);
                    self.emit(Op::Path(path), node.span);
                }
            }
        }
        let name = self.program.source.share(last);
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
        for (index, arg) in args.iter().enumerate() {
            self.method_arg(arg, name, index as u32);
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
    fn method_arg(&mut self, node: &Node<'_>, name: u32, index: u32) {
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
enum Receiver<'a, 's> {
    Dot,
    Variable(Variable<'s>),
    Node(&'a Node<'s>),
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
    fn of(targets: &[Variable<'_>]) -> Self {
        let slot = |variable: &Variable<'_>| variable.slot.map(|slot| slot as u32);
        match targets {
            [] => Self::default(),
            [element] => Self {
                key: None,
                element: slot(element),
            },
            [key, element, ..] => Self {
                key: slot(key),
                element: slot(element),
            },
        }
    }
}
