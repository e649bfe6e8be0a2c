//! Builds the tree from tokens: Go's grammar, its checks and its error messages.
//!
//! Functions and variables are resolved here, so a running program looks up only the names of fields and templates. A
//! template is compiled as soon as its end is read, and then its part of the tree is dropped.

use std::borrow::Cow;
use std::sync::Arc;

use super::compile::{Draft, compile};
use super::lexer::{Keyword, Lexer, Token, TokenKind};
use super::scope::Scope;
use super::tree::{Body, Branch, Branches, Statement, Tree};
use crate::error::ParseError;
use crate::fmt::quote;
use crate::functions::FunctionTable;
use crate::options::CommentLines;
use crate::program::{Program, Source, Span};

/// Reads a text and every template it defines; the last program is the text itself.
pub(crate) fn parse(
    source: &Arc<Source>,
    functions: &FunctionTable,
    max_depth: usize,
    comment_lines: CommentLines,
) -> Parsed<Vec<Arc<Program>>> {
    if u32::try_from(source.text.len()).is_err() {
        return Err(ParseError {
            name: source.name.clone(),
            line: 1,
            message: "text too long".to_owned(),
        });
    }
    let mut parser = Parser {
        source,
        lexer: Lexer::new(&source.text, &source.delims),
        functions,
        max_depth,
        comment_lines,
        depth: 0,
        pending: Vec::new(),
        last: 0,
        action: None,
        range_depth: 0,
        scope: Scope::default(),
        tree: Tree::for_text(source.text.len()),
        draft: Draft::begin(),
        programs: Vec::new(),
    };
    let body = parser.file()?;
    parser.define(&source.name, body)?;
    parser.draft.end();
    Ok(parser.programs)
}

pub(super) type Parsed<T> = Result<T, ParseError>;

pub(super) struct Parser<'s> {
    source: &'s Arc<Source>,
    pub(super) lexer: Lexer<'s>,
    pub(super) functions: &'s FunctionTable,
    max_depth: usize,
    comment_lines: CommentLines,
    depth: usize,
    /// Tokens put back, the next one last.
    pub(super) pending: Vec<Token<'s>>,
    /// Where the newest token stands: the line that Go reports a mistake at.
    last: usize,
    /// Where the action began that is being read.
    action: Option<usize>,
    range_depth: usize,
    pub(super) scope: Scope<'s>,
    /// What was read of the templates that are not complete.
    pub(super) tree: Tree<'s>,
    draft: Draft,
    programs: Vec<Arc<Program>>,
}

/// What ended a list of statements.
enum Ending {
    End,
    Else,
}

/// What a pipeline belongs to, in Go's words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Context(pub(super) &'static str);

pub(super) const RANGE: Context = Context("range");

impl<'s> Parser<'s> {
    pub(super) fn next(&mut self) -> Token<'s> {
        if let Some(token) = self.pending.pop() {
            return token;
        }
        let token = self.lexer.next();
        self.last = token.start;
        token
    }

    pub(super) fn next_non_space(&mut self) -> Token<'s> {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    pub(super) fn peek(&mut self) -> Token<'s> {
        let token = self.next();
        self.pending.push(token);
        token
    }

    pub(super) fn peek_non_space(&mut self) -> Token<'s> {
        let token = self.next_non_space();
        self.pending.push(token);
        token
    }

    fn line(&self, offset: usize) -> usize {
        match self.comment_lines {
            CommentLines::Counted => self.lexer.line(offset),
            CommentLines::Skipped => self.lexer.line_without_comments(offset),
        }
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError {
            name: self.source.name.clone(),
            line: self.line(self.last),
            message: message.into(),
        })
    }

    pub(super) fn unexpected<T>(&self, token: Token<'s>, context: &str) -> Parsed<T> {
        if token.kind != TokenKind::Error {
            return self.fail(format!("unexpected {} in {context}", describe(token)));
        }
        let message = &self.lexer.message;
        let action_line = self.action.map(|start| self.line(start));
        match action_line {
            Some(line) if line != self.line(token.start) => {
                let action = if message.ends_with(" action") {
                    ""
                } else {
                    " in action"
                };
                self.fail(format!(
                    "{message}{action} started at {}:{line}",
                    self.source.name
                ))
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
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
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

    fn file(&mut self) -> Parsed<Body<'s>> {
        let mut body = Body::default();
        loop {
            let token = self.next();
            if token.kind == TokenKind::End {
                return Ok(body);
            }
            if token.kind == TokenKind::LeftDelim
                && self.peek_non_space().kind == TokenKind::Keyword(Keyword::Define)
            {
                self.next();
                self.definition()?;
                continue;
            }
            match self.text_or_action(token)? {
                Ok(statement) => self.tree.statements.push(&mut body, statement),
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
        self.own_template(&name, |parser| {
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
        name: &str,
        parse: impl FnOnce(&mut Self) -> Parsed<Body<'s>>,
    ) -> Parsed<()> {
        let outer_scope = std::mem::take(&mut self.scope);
        let outer_action = self.action.take();
        let outer_range = std::mem::take(&mut self.range_depth);
        let outer_tree = self.tree.extent();
        let body = parse(self)?;
        self.define(name, body)?;
        self.tree.shrink(outer_tree);
        self.scope = outer_scope;
        self.action = outer_action;
        self.range_depth = outer_range;
        Ok(())
    }

    fn define(&mut self, name: &str, body: Body<'s>) -> Parsed<()> {
        let is_blank = self.tree.is_blank(body);
        let old = self.programs.iter().position(|old| old.name == *name);
        let old = old.and_then(|index| self.programs.get_mut(index));
        if old.as_ref().is_some_and(|old| !old.blank) {
            if is_blank {
                return Ok(());
            }
            let name = quote(name.as_bytes(), false);
            return self.fail(format!("template: multiple definition of template {name}"));
        }
        let slots = self.scope.slots as usize;
        let mut program = compile(&mut self.draft, &self.tree, body, self.source);
        program.name = name.into();
        program.slots = slots;
        program.blank = is_blank;
        match old {
            Some(old) => *old = Arc::new(program),
            None => self.programs.push(Arc::new(program)),
        }
        Ok(())
    }

    fn statements(&mut self) -> Parsed<(Body<'s>, Ending)> {
        let mut body = Body::default();
        loop {
            let token = self.next_non_space();
            if token.kind == TokenKind::End {
                return self.fail("unexpected EOF");
            }
            match self.text_or_action(token)? {
                Ok(statement) => self.tree.statements.push(&mut body, statement),
                Err(ending) => return Ok((body, ending)),
            }
        }
    }

    fn text_or_action(&mut self, token: Token<'s>) -> Parsed<Result<Statement<'s>, Ending>> {
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
            let context = Context("command");
            let pipeline = self.pipeline_from(token, context, TokenKind::RightDelim)?;
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
            let mut all = Branches::default();
            loop {
                let pipeline = parser.pipeline(context, TokenKind::RightDelim)?;
                let body_mark = parser.scope.mark();
                let (body, ending) = parser.statements()?;
                parser.scope.leave_branch(body_mark);
                let branch = Branch { pipeline, body };
                parser.tree.branches.push(&mut all.branches, branch);
                if matches!(ending, Ending::End) {
                    break;
                }
                if parser.peek().kind == TokenKind::Keyword(keyword) {
                    parser.next();
                    continue;
                }
                all.otherwise = parser.else_body()?;
                break;
            }
            parser.scope.leave(mark);
            Ok(all)
        })
    }

    fn else_body(&mut self) -> Parsed<Body<'s>> {
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
                Ending::End => Body::default(),
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
            parser.own_template(&own_name, |parser| {
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

    fn template_name(&mut self, token: Token<'s>, context: &str) -> Parsed<Cow<'s, str>> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return self.unexpected(token, context);
        }
        Ok(match self.unquote(token)? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        })
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
