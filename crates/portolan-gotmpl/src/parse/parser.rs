//! From tokens to the tree: Go's grammar, its checks and its words for what is wrong.
//!
//! Functions and variables are resolved here, so that executing a program looks up no names but those of fields and
//! templates.

use std::borrow::Cow;

use super::lexer::{Delimiters, Keyword, Lexer, Token, TokenKind};
use super::number::Number;
use super::tree::{
    Branches, Command, Definition, Fields, Node, Operand, Pipeline, Statement, Variable,
};
use super::unquote::unquote;
use crate::error::ParseError;
use crate::fmt::quote;
use crate::functions::FunctionTable;
use crate::program::Span;

/// Reads a text and every template it defines; the last definition is the text itself.
pub(crate) fn parse<'s>(
    name: &'s str,
    text: &'s str,
    delims: &'s Delimiters,
    functions: &'s FunctionTable,
    max_depth: usize,
) -> Result<Vec<Definition<'s>>, ParseError> {
    if u32::try_from(text.len()).is_err() {
        return Err(ParseError {
            name: name.to_owned(),
            line: 1,
            message: "text too long".to_owned(),
        });
    }
    let mut parser = Parser {
        name,
        lexer: Lexer::new(text, delims),
        functions,
        max_depth,
        depth: 0,
        pending: Vec::new(),
        last: 0,
        action: None,
        range_depth: 0,
        scope: Scope::default(),
        definitions: Vec::new(),
    };
    let body = parser.file()?;
    parser.define(name.to_owned(), body)?;
    Ok(parser.definitions)
}

type Parsed<T> = Result<T, ParseError>;

struct Parser<'s> {
    name: &'s str,
    lexer: Lexer<'s>,
    functions: &'s FunctionTable,
    max_depth: usize,
    depth: usize,
    /// Tokens put back, the next one last.
    pending: Vec<Token<'s>>,
    /// Where the newest token stands: the line that Go reports a mistake at.
    last: usize,
    /// Where the action began that is being read.
    action: Option<usize>,
    range_depth: usize,
    scope: Scope<'s>,
    definitions: Vec<Definition<'s>>,
}

/// The variables in scope; a slot is free again when its scope ends.
struct Scope<'s> {
    variables: Vec<Variable<'s>>,
    /// The next free slot.
    next: usize,
    /// The most slots ever in use.
    slots: usize,
}

/// How far the scope had grown at some point.
#[derive(Clone, Copy)]
struct Mark {
    variables: usize,
    next: usize,
}

/// What ended a list of statements.
enum Ending {
    End,
    Else,
}

/// What a pipeline belongs to, in Go's words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Context(&'static str);

const RANGE: Context = Context("range");

impl Default for Scope<'_> {
    fn default() -> Self {
        Self {
            variables: vec![Variable {
                name: "$",
                slot: Some(0),
            }],
            next: 1,
            slots: 1,
        }
    }
}

impl<'s> Scope<'s> {
    /// A name that gets its value only when the pipeline after it is done: `$x := $x` reads the outer one.
    fn announce(&mut self, name: &'s str) -> usize {
        self.variables.push(Variable { name, slot: None });
        self.variables.len() - 1
    }

    /// Gives an announced name its slot.
    fn declare(&mut self, index: usize) -> Variable<'s> {
        let slot = self.next;
        self.next += 1;
        self.slots = self.slots.max(self.next);
        self.variables[index].slot = Some(slot);
        self.variables[index]
    }

    fn find(&self, name: &str) -> Option<Variable<'s>> {
        let named = |variable: &&Variable<'s>| variable.name == name;
        let live = self
            .variables
            .iter()
            .rev()
            .filter(named)
            .find(|variable| variable.slot.is_some());
        live.or_else(|| self.variables.iter().find(named)).copied()
    }

    /// A variable to assign; Go notices only at run time that there is none.
    fn assign(&mut self, name: &'s str) -> Variable<'s> {
        self.find(name).unwrap_or_else(|| {
            let variable = Variable { name, slot: None };
            self.variables.push(variable);
            variable
        })
    }

    fn mark(&self) -> Mark {
        Mark {
            variables: self.variables.len(),
            next: self.next,
        }
    }

    /// What a branch declared is known to the branches after it, but never has a value there.
    fn leave_branch(&mut self, mark: Mark) {
        for variable in &mut self.variables[mark.variables..] {
            variable.slot = None;
        }
        self.next = mark.next;
    }

    fn leave(&mut self, mark: Mark) {
        self.variables.truncate(mark.variables);
        self.next = mark.next;
    }
}

impl<'s> Parser<'s> {
    fn next(&mut self) -> Token<'s> {
        if let Some(token) = self.pending.pop() {
            return token;
        }
        let token = self.lexer.next();
        self.last = token.start;
        token
    }

    fn next_non_space(&mut self) -> Token<'s> {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    fn peek(&mut self) -> Token<'s> {
        let token = self.next();
        self.pending.push(token);
        token
    }

    fn peek_non_space(&mut self) -> Token<'s> {
        let token = self.next_non_space();
        self.pending.push(token);
        token
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError {
            name: self.name.to_owned(),
            line: self.lexer.line(self.last),
            message: message.into(),
        })
    }

    fn unexpected<T>(&self, token: Token<'s>, context: &str) -> Parsed<T> {
        if token.kind != TokenKind::Error {
            return self.fail(format!("unexpected {} in {context}", describe(token)));
        }
        let message = &self.lexer.message;
        let action_line = self.action.map(|start| self.lexer.line(start));
        match action_line {
            Some(line) if line != self.lexer.line(token.start) => {
                let action = if message.ends_with(" action") {
                    ""
                } else {
                    " in action"
                };
                self.fail(format!("{message}{action} started at {}:{line}", self.name))
            }
            _ => self.fail(message.clone()),
        }
    }

    fn expect(&mut self, kind: TokenKind, context: &str) -> Parsed<Token<'s>> {
        let token = self.next_non_space();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(token, context)
        }
    }

    /// Runs a part that nests; the stack is finite, the text may not seem to be.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= self.max_depth {
            return self.fail(format!(
                "nesting exceeds the limit of {} (parse_depth)",
                self.max_depth
            ));
        }
        self.depth += 1;
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    // Statements.

    fn file(&mut self) -> Parsed<Vec<Statement<'s>>> {
        let mut body = Vec::new();
        loop {
            let token = self.peek();
            if token.kind == TokenKind::End {
                return Ok(body);
            }
            if token.kind == TokenKind::LeftDelim {
                self.next();
                if self.peek_non_space().kind == TokenKind::Keyword(Keyword::Define) {
                    self.next();
                    self.definition()?;
                    continue;
                }
                self.pending.push(token);
            }
            match self.text_or_action()? {
                Ok(statement) => body.push(statement),
                Err(ending) => return self.fail(format!("unexpected {}", ending.text())),
            }
        }
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let last = self.last;
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        self.expect(TokenKind::RightDelim, CONTEXT)?;
        self.own_template(name, |parser| {
            let (body, ending) = parser.statements()?;
            match ending {
                Ending::End => Ok(body),
                Ending::Else => parser.fail(format!("unexpected {} in {CONTEXT}", ending.text())),
            }
        })?;
        self.last = last;
        Ok(())
    }

    /// Parses a body with variables and loops of its own and defines it.
    fn own_template(
        &mut self,
        name: String,
        parse: impl FnOnce(&mut Self) -> Parsed<Vec<Statement<'s>>>,
    ) -> Parsed<()> {
        let outer_scope = std::mem::take(&mut self.scope);
        let outer_action = self.action.take();
        let outer_range = std::mem::take(&mut self.range_depth);
        let body = parse(self)?;
        self.define(name, body)?;
        self.scope = outer_scope;
        self.action = outer_action;
        self.range_depth = outer_range;
        Ok(())
    }

    fn define(&mut self, name: String, body: Vec<Statement<'s>>) -> Parsed<()> {
        let definition = Definition {
            name,
            body,
            slots: self.scope.slots,
        };
        let old = self
            .definitions
            .iter_mut()
            .find(|old| old.name == definition.name);
        let is_blank =
            |definition: &Definition<'_>| definition.body.iter().all(Statement::is_blank);
        match old {
            None => self.definitions.push(definition),
            Some(old) if is_blank(old) => *old = definition,
            Some(_) if is_blank(&definition) => {}
            Some(_) => {
                let name = quote(definition.name.as_bytes(), false);
                return self.fail(format!("template: multiple definition of template {name}"));
            }
        }
        Ok(())
    }

    fn statements(&mut self) -> Parsed<(Vec<Statement<'s>>, Ending)> {
        let mut body = Vec::new();
        while self.peek_non_space().kind != TokenKind::End {
            match self.text_or_action()? {
                Ok(statement) => body.push(statement),
                Err(ending) => return Ok((body, ending)),
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Result<Statement<'s>, Ending>> {
        let token = self.next_non_space();
        match token.kind {
            TokenKind::Text => Ok(Ok(Statement::Text(token.text, token.start))),
            TokenKind::LeftDelim => {
                self.action = Some(token.start);
                let statement = self.action()?;
                self.action = None;
                Ok(statement)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Result<Statement<'s>, Ending>> {
        let token = self.next_non_space();
        let TokenKind::Keyword(keyword) = token.kind else {
            self.pending.push(token);
            let pipeline = self.pipeline(Context("command"), TokenKind::RightDelim)?;
            return Ok(Ok(Statement::Action(pipeline)));
        };
        match keyword {
            Keyword::Block => self.block().map(Ok),
            Keyword::Break => self.loop_exit(Statement::Break, "{{break}}").map(Ok),
            Keyword::Continue => self.loop_exit(Statement::Continue, "{{continue}}").map(Ok),
            Keyword::Else => self.otherwise().map(|()| Err(Ending::Else)),
            Keyword::End => self
                .expect(TokenKind::RightDelim, "end")
                .map(|_| Err(Ending::End)),
            Keyword::If => self
                .branches(Keyword::If, Context("if"))
                .map(|all| Ok(Statement::If(all))),
            Keyword::With => self
                .branches(Keyword::With, Context("with"))
                .map(|all| Ok(Statement::With(all))),
            Keyword::Range => self.range().map(Ok),
            Keyword::Template => self.template().map(Ok),
            Keyword::Define => {
                self.pending.push(token);
                let token = self.next();
                self.unexpected(token, "command")
            }
        }
    }

    fn loop_exit(&mut self, statement: Statement<'s>, name: &str) -> Parsed<Statement<'s>> {
        let token = self.next_non_space();
        if token.kind != TokenKind::RightDelim {
            return self.unexpected(token, name);
        }
        if self.range_depth == 0 {
            return self.fail(format!("{name} outside {{{{range}}}}"));
        }
        Ok(statement)
    }

    /// After `else`: its closing delimiter, unless a chain goes on.
    fn otherwise(&mut self) -> Parsed<()> {
        let token = self.peek_non_space();
        if !matches!(token.kind, TokenKind::Keyword(Keyword::If | Keyword::With)) {
            self.expect(TokenKind::RightDelim, "else")?;
        }
        Ok(())
    }

    fn branches(&mut self, keyword: Keyword, context: Context) -> Parsed<Branches<'s>> {
        self.nested(|parser| {
            let mark = parser.scope.mark();
            let mut branches = Vec::new();
            let mut otherwise = Vec::new();
            loop {
                let pipeline = parser.pipeline(context, TokenKind::RightDelim)?;
                let body_mark = parser.scope.mark();
                let (body, ending) = parser.statements()?;
                parser.scope.leave_branch(body_mark);
                branches.push((pipeline, body));
                if matches!(ending, Ending::End) {
                    break;
                }
                if parser.peek().kind == TokenKind::Keyword(keyword) {
                    parser.next();
                    continue;
                }
                otherwise = parser.else_body()?;
                break;
            }
            parser.scope.leave(mark);
            Ok(Branches {
                branches,
                otherwise,
            })
        })
    }

    fn else_body(&mut self) -> Parsed<Vec<Statement<'s>>> {
        let (body, ending) = self.statements()?;
        match ending {
            Ending::End => Ok(body),
            Ending::Else => self.fail(format!("expected end; found {}", ending.text())),
        }
    }

    fn range(&mut self) -> Parsed<Statement<'s>> {
        self.nested(|parser| {
            let mark = parser.scope.mark();
            let pipeline = parser.pipeline(RANGE, TokenKind::RightDelim)?;
            let body_mark = parser.scope.mark();
            parser.range_depth += 1;
            let (body, ending) = parser.statements()?;
            parser.range_depth -= 1;
            parser.scope.leave_branch(body_mark);
            let otherwise = match ending {
                Ending::End => Vec::new(),
                Ending::Else => parser.else_body()?,
            };
            parser.scope.leave(mark);
            Ok(Statement::Range {
                pipeline,
                body,
                otherwise,
            })
        })
    }

    fn block(&mut self) -> Parsed<Statement<'s>> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let pipeline = self.pipeline(Context(CONTEXT), TokenKind::RightDelim)?;
        let last = self.last;
        let own_name = name.clone();
        self.nested(|parser| {
            parser.own_template(own_name, |parser| {
                let (body, ending) = parser.statements()?;
                if matches!(ending, Ending::Else) {
                    parser.last = last;
                    return parser.fail(format!("unexpected {} in {CONTEXT}", ending.text()));
                }
                Ok(body)
            })
        })?;
        self.last = last;
        let span = Span::new(pipeline.span.start(), pipeline.span.end(), token.start);
        Ok(Statement::Template {
            name,
            pipeline: Some(pipeline),
            span,
        })
    }

    fn template(&mut self) -> Parsed<Statement<'s>> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        if self.peek_non_space().kind == TokenKind::RightDelim {
            self.next();
            let span = Span::new(token.start, token.start, token.start);
            return Ok(Statement::Template {
                name,
                pipeline: None,
                span,
            });
        }
        let pipeline = self.pipeline(Context(CONTEXT), TokenKind::RightDelim)?;
        let span = Span::new(pipeline.span.start(), pipeline.span.end(), token.start);
        Ok(Statement::Template {
            name,
            pipeline: Some(pipeline),
            span,
        })
    }

    fn template_name(&mut self, token: Token<'s>, context: &str) -> Parsed<String> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return self.unexpected(token, context);
        }
        let bytes = self.unquote(token)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    // Pipelines.

    fn pipeline(&mut self, context: Context, end: TokenKind) -> Parsed<Pipeline<'s>> {
        let start = self.peek_non_space().start;
        let mut pipeline = Pipeline {
            targets: Vec::new(),
            assign: false,
            commands: Vec::new(),
            span: Span::new(start, start, start),
        };
        let announced = self.targets(&mut pipeline, context)?;
        loop {
            let token = self.next_non_space();
            if token.kind == end {
                self.check_pipeline(&pipeline, context)?;
                pipeline
                    .targets
                    .extend(announced.into_iter().map(|index| self.scope.declare(index)));
                return Ok(pipeline);
            }
            if !starts_operand(token.kind) {
                return self.unexpected(token, context.0);
            }
            self.pending.push(token);
            let command = self.command()?;
            pipeline.span = Span::new(start, command.span.end(), start);
            if pipeline.commands.is_empty() {
                // Most pipelines have one command.
                pipeline.commands.reserve_exact(1);
            }
            pipeline.commands.push(command);
        }
    }

    /// Variables before `:=` or `=`; the indexes of those that are declared, not assigned.
    fn targets(&mut self, pipeline: &mut Pipeline<'s>, context: Context) -> Parsed<Vec<usize>> {
        let mut names = Vec::new();
        loop {
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                break;
            }
            self.next();
            let after = self.peek();
            let next = self.peek_non_space();
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    self.next();
                    names.push(variable.text);
                    pipeline.assign = next.kind == TokenKind::Assign;
                    break;
                }
                TokenKind::Comma => {
                    self.next();
                    names.push(variable.text);
                    if context != RANGE || names.len() >= 2 {
                        return self.fail(format!("too many declarations in {}", context.0));
                    }
                    if !matches!(
                        self.peek_non_space().kind,
                        TokenKind::Variable | TokenKind::RightDelim | TokenKind::RightParen
                    ) {
                        return self.fail("range can only initialize variables");
                    }
                }
                _ => {
                    if after.kind == TokenKind::Space {
                        self.pending.push(after);
                    }
                    self.pending.push(variable);
                    break;
                }
            }
        }
        if pipeline.assign {
            pipeline.targets = names
                .into_iter()
                .map(|name| self.scope.assign(name))
                .collect();
            return Ok(Vec::new());
        }
        Ok(names
            .into_iter()
            .map(|name| self.scope.announce(name))
            .collect())
    }

    fn check_pipeline(&self, pipeline: &Pipeline<'s>, context: Context) -> Parsed<()> {
        if pipeline.is_empty() {
            return self.fail(format!("missing value for {}", context.0));
        }
        let constant = pipeline.commands.iter().skip(1).position(|command| {
            matches!(
                command.first.operand,
                Operand::Bool(_)
                    | Operand::Dot
                    | Operand::Nil
                    | Operand::Number(_)
                    | Operand::String(_)
            )
        });
        match constant {
            Some(index) => self.fail(format!(
                "non executable command in pipeline stage {}",
                index + 2
            )),
            None => Ok(()),
        }
    }

    fn command(&mut self) -> Parsed<Command<'s>> {
        let start = self.peek_non_space().start;
        let mut first = None;
        let mut args = Vec::new();
        loop {
            self.peek_non_space();
            match self.operand()? {
                Some(node) if first.is_none() => first = Some(node),
                Some(node) => args.push(node),
                None => {}
            }
            let token = self.next();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelim | TokenKind::RightParen => self.pending.push(token),
                TokenKind::Pipe => {}
                _ => return self.unexpected(token, "operand"),
            }
            break;
        }
        let Some(first) = first else {
            return self.fail("empty command");
        };
        let end = args.last().unwrap_or(&first).end;
        let span = Span::new(start, end, start);
        Ok(Command { first, args, span })
    }

    /// A term and the fields that follow it without a space.
    fn operand(&mut self) -> Parsed<Option<Node<'s>>> {
        let start = self.peek_non_space().start;
        let Some(mut node) = self.term()? else {
            return Ok(None);
        };
        let first_field = self.peek();
        if first_field.kind != TokenKind::Field {
            return Ok(Some(node));
        }
        while self.peek().kind == TokenKind::Field {
            let field = self.next();
            node.end = field.start + field.text.len();
        }
        let end = node.end;
        // The fields follow each other without a gap, so the text holds them as one piece.
        let fields = Fields(self.lexer.text(first_field.start + 1, end));
        let span = Span::new(start, end, first_field.start);
        let operand = match node.operand {
            Operand::Field(_) => Operand::Field(Fields(self.lexer.text(start + 1, end))),
            Operand::Variable(variable, _) => Operand::Variable(variable, fields),
            Operand::Function(_) | Operand::Pipeline(_) => Operand::Chain(Box::new(node), fields),
            _ => {
                let term = self.lexer_text(node.span);
                return self.fail(format!(
                    "unexpected . after term {}",
                    quote(term.as_bytes(), false)
                ));
            }
        };
        Ok(Some(Node { operand, span, end }))
    }

    fn term(&mut self) -> Parsed<Option<Node<'s>>> {
        let token = self.next_non_space();
        let operand = match token.kind {
            TokenKind::Identifier => self.function(token)?,
            TokenKind::Dot => Operand::Dot,
            TokenKind::Nil => Operand::Nil,
            TokenKind::Variable => self.variable(token)?,
            TokenKind::Field => Operand::Field(Fields(&token.text[1..])),
            TokenKind::Bool => Operand::Bool(token.text == "true"),
            TokenKind::CharConstant | TokenKind::Complex | TokenKind::Number => {
                match Number::parse(token.text, token.kind) {
                    Ok(number) => Operand::Number(Box::new(number)),
                    Err(message) => return self.fail(message),
                }
            }
            TokenKind::LeftParen => return self.parenthesized().map(Some),
            TokenKind::String | TokenKind::RawString => Operand::String(self.unquote(token)?),
            _ => {
                self.pending.push(token);
                return Ok(None);
            }
        };
        let end = token.start + token.text.len();
        let span = Span::new(token.start, end, token.start);
        Ok(Some(Node { operand, span, end }))
    }

    fn parenthesized(&mut self) -> Parsed<Node<'s>> {
        let pipeline = self.nested(|parser| {
            parser.pipeline(Context("parenthesized pipeline"), TokenKind::RightParen)
        })?;
        let span = pipeline.span;
        // The closing parenthesis is the newest token unless something was put back, which a pipeline's end never is.
        let end = self.lexer.consumed();
        Ok(Node {
            operand: Operand::Pipeline(Box::new(pipeline)),
            span,
            end,
        })
    }

    fn function(&self, token: Token<'s>) -> Parsed<Operand<'s>> {
        if let Some(function) = self.functions.get(token.text) {
            return Ok(Operand::Function(function));
        }
        let name = quote(token.text.as_bytes(), false);
        self.fail(format!("function {name} not defined"))
    }

    fn variable(&self, token: Token<'s>) -> Parsed<Operand<'s>> {
        if let Some(variable) = self.scope.find(token.text) {
            return Ok(Operand::Variable(variable, Fields("")));
        }
        let name = quote(token.text.as_bytes(), false);
        self.fail(format!("undefined variable {name}"))
    }

    fn unquote(&self, token: Token<'s>) -> Parsed<Cow<'s, [u8]>> {
        unquote(token.text).map_or_else(|| self.fail("invalid syntax"), Ok)
    }

    fn lexer_text(&self, span: Span) -> &'s str {
        self.lexer.text(span.start(), span.end())
    }
}

impl Ending {
    fn text(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

fn starts_operand(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Bool
            | TokenKind::CharConstant
            | TokenKind::Complex
            | TokenKind::Dot
            | TokenKind::Field
            | TokenKind::Identifier
            | TokenKind::Number
            | TokenKind::Nil
            | TokenKind::RawString
            | TokenKind::String
            | TokenKind::Variable
            | TokenKind::LeftParen
    )
}

/// A token as an error names it: words of the language in angle brackets, all else quoted and cut.
fn describe(token: Token<'_>) -> String {
    match token.kind {
        TokenKind::End => "EOF".to_owned(),
        TokenKind::Dot | TokenKind::Nil | TokenKind::Keyword(_) => format!("<{}>", token.text),
        _ => {
            let cut: String = token.text.chars().take(10).collect();
            let dots = if token.text.len() > 10 { "..." } else { "" };
            format!("{}{dots}", quote(cut.as_bytes(), false))
        }
    }
}
