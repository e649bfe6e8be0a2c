//! Builds pipelines from tokens: targets, commands, operands.

use std::borrow::Cow;

use portolan_go::strconv::unquote;

use super::arena::List;
use super::lexer::{Token, TokenKind};
use super::number::Number;
use super::parser::{Context, Parsed, Parser, RANGE};
use super::tree::{Command, Fields, Node, Operand, Pipeline};
use crate::fmt::quote;
use crate::program::Span;

impl<'s> Parser<'s> {
    pub(super) fn pipeline(&mut self, context: Context, end: TokenKind) -> Parsed<Pipeline<'s>> {
        let token = self.next_non_space();
        self.pipeline_from(token, context, end)
    }

    /// A pipeline that begins with this token.
    pub(super) fn pipeline_from(
        &mut self,
        mut token: Token<'s>,
        context: Context,
        end: TokenKind,
    ) -> Parsed<Pipeline<'s>> {
        let start = token.start;
        let mut pipeline = Pipeline {
            targets: List::default(),
            assign: false,
            commands: List::default(),
            span: Span::new(start, start, start),
        };
        let mut announced = [None; 2];
        if token.kind == TokenKind::Variable {
            self.pending.push(token);
            announced = self.targets(&mut pipeline, context)?;
            token = self.next_non_space();
        }
        loop {
            if token.kind == end {
                self.check_pipeline(&pipeline, context)?;
                for index in announced.into_iter().flatten() {
                    let variable = self.scope.declare(index);
                    self.tree.variables.push(&mut pipeline.targets, variable);
                }
                return Ok(pipeline);
            }
            if !starts_operand(token.kind) {
                return self.unexpected(token, context.0);
            }
            let command = self.command(token)?;
            pipeline.span = Span::new(start, command.span.end(), start);
            self.tree.commands.push(&mut pipeline.commands, command);
            token = self.next_non_space();
        }
    }

    /// Variables before `:=` or `=`; the indexes of those that are declared, not assigned.
    fn targets(
        &mut self,
        pipeline: &mut Pipeline<'s>,
        context: Context,
    ) -> Parsed<[Option<usize>; 2]> {
        let mut names = [None; 2];
        let mut count = 0;
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
                    names[count] = Some(variable.text);
                    pipeline.assign = next.kind == TokenKind::Assign;
                    break;
                }
                TokenKind::Comma => {
                    self.next();
                    names[count] = Some(variable.text);
                    count += 1;
                    if context != RANGE || count >= names.len() {
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
        if !pipeline.assign {
            return Ok(names.map(|name| name.map(|name| self.scope.announce(name))));
        }
        for name in names.into_iter().flatten() {
            let variable = self.scope.assign(name);
            self.tree.variables.push(&mut pipeline.targets, variable);
        }
        Ok([None; 2])
    }

    fn check_pipeline(&self, pipeline: &Pipeline<'s>, context: Context) -> Parsed<()> {
        if pipeline.commands.is_empty() {
            return self.fail(format!("missing value for {}", context.0));
        }
        let mut commands = self.tree.commands.iter(pipeline.commands).skip(1);
        let constant = commands.position(|command| {
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

    /// A command that begins with this token.
    fn command(&mut self, mut token: Token<'s>) -> Parsed<Command<'s>> {
        let start = token.start;
        let mut first = None;
        let mut args = List::default();
        loop {
            match self.operand(token)? {
                Some(node) if first.is_none() => first = Some(node),
                Some(node) => self.tree.operands.push(&mut args, node),
                None => {}
            }
            token = self.next();
            match token.kind {
                TokenKind::Space => {
                    token = self.next_non_space();
                    continue;
                }
                TokenKind::RightDelim | TokenKind::RightParen => self.pending.push(token),
                TokenKind::Pipe => {}
                _ => return self.unexpected(token, "operand"),
            }
            break;
        }
        let Some(first) = first else {
            return self.fail("empty command");
        };
        let end = self.tree.operands.last(args).unwrap_or(&first).end;
        let span = Span::new(start, end, start);
        Ok(Command { first, args, span })
    }

    /// A term and the fields that follow it without a space.
    fn operand(&mut self, token: Token<'s>) -> Parsed<Option<Node<'s>>> {
        let start = token.start;
        let Some(mut node) = self.term(token)? else {
            return Ok(None);
        };
        if self.pending.is_empty() && !self.lexer.is_at_point() {
            return Ok(Some(node));
        }
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
            Operand::Function(_) | Operand::Pipeline(_) => {
                let mut inner = List::default();
                self.tree.operands.push(&mut inner, node);
                Operand::Chain(inner, fields)
            }
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

    fn term(&mut self, token: Token<'s>) -> Parsed<Option<Node<'s>>> {
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
            operand: Operand::Pipeline(pipeline),
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

    pub(super) fn unquote(&self, token: Token<'s>) -> Parsed<Cow<'s, [u8]>> {
        unquote(token.text).map_or_else(|| self.fail("invalid syntax"), Ok)
    }

    fn lexer_text(&self, span: Span) -> &'s str {
        self.lexer.text(span.start(), span.end())
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
