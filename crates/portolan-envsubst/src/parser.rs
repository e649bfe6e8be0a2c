//! Turns text into pieces: plain text and `${…}` expressions with their operators and arguments.
//!
//! The parser goes through the text once with a cursor. The operator decides where a piece ends, not a matching
//! brace: in `${v/l}` it reads beyond the brace to find a slash.

use crate::error::{Error, ErrorKind};

/// How deep expressions may stand in each other (`${a:-${b:-…}}`).
pub const MAX_DEPTH: usize = 100;

/// A part of the input.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Expression(Expression),
}

/// `${name operator arguments}`.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) arguments: Vec<Piece>,
    /// Where its `$` stands in the input.
    pub(crate) offset: usize,
}

/// What an expression does with its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `${v}`, and `${v^,}`, which the original accepts and ignores.
    Value,
    /// `${#v}`
    Length,
    /// `${v=d}`, `${v:=d}`, `${v:-d}`, `${v:?d}`, `${v:+d}`
    Default,
    /// `${v:offset}`, `${v:offset:length}`
    Substring,
    /// `${v,}`
    LowerFirst,
    /// `${v,,}`
    Lower,
    /// `${v^}`
    UpperFirst,
    /// `${v^^}`
    Upper,
    /// `${v#p}`
    TrimShortestPrefix,
    /// `${v##p}`
    TrimLongestPrefix,
    /// `${v%p}`
    TrimShortestSuffix,
    /// `${v%%p}`
    TrimLongestSuffix,
    /// `${v/a/b}`
    ReplaceFirst,
    /// `${v//a/b}`
    ReplaceAll,
    /// `${v/#a/b}`
    ReplacePrefix,
    /// `${v/%a/b}`
    ReplaceSuffix,
}

/// Splits a text into pieces.
pub(crate) fn parse(input: &str) -> Result<Vec<Piece>, Error> {
    // The original takes a NUL for the end of the text.
    let end = input.find('\0').unwrap_or(input.len());
    let mut parser = Parser {
        input: &input[..end],
        position: 0,
        depth: 0,
    };
    let mut pieces = Vec::new();
    while let Some(piece) = parser.piece(Escapes::Dollar, |_| true)? {
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Which pairs of characters stand for their second one.
#[derive(Clone, Copy)]
enum Escapes {
    None,
    /// `$$`
    Dollar,
    /// `$$`, `\/` and `\\`
    DollarAndBackslash,
}

struct Parser<'i> {
    input: &'i str,
    position: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.input[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a prefix of the rest when it is there.
    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.position += prefix.len();
        }
        found
    }

    fn fail<T>(&self, kind: ErrorKind) -> Result<T, Error> {
        Err(kind.at(self.position))
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.eat("}") {
            Ok(())
        } else {
            self.fail(ErrorKind::BadSubstitution)
        }
    }

    /// The next expression, or the text up to it or up to a character that is not accepted; nothing when that is empty.
    fn piece(
        &mut self,
        escapes: Escapes,
        accept: impl Fn(char) -> bool,
    ) -> Result<Option<Piece>, Error> {
        if self.rest().starts_with("${") {
            return self.expression().map(|e| Some(Piece::Expression(e)));
        }
        let mut text = String::new();
        while let Some(next) = self.peek() {
            if self.rest().starts_with("${") {
                break;
            }
            if let Some(escaped) = self.escaped(escapes) {
                self.position += 2;
                text.push(escaped);
            } else if accept(next) {
                self.position += next.len_utf8();
                text.push(next);
            } else {
                break;
            }
        }
        Ok((!text.is_empty()).then_some(Piece::Text(text)))
    }

    fn escaped(&self, escapes: Escapes) -> Option<char> {
        match (escapes, self.rest().as_bytes()) {
            (Escapes::Dollar | Escapes::DollarAndBackslash, [b'$', b'$', ..]) => Some('$'),
            (Escapes::DollarAndBackslash, [b'\\', next @ (b'/' | b'\\'), ..]) => {
                Some(char::from(*next))
            }
            _ => None,
        }
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        let offset = self.position;
        if self.depth == MAX_DEPTH {
            return self.fail(ErrorKind::TooDeep);
        }
        self.depth += 1;
        self.position += "${".len();
        let (name, operator, arguments) = if self.eat("#") {
            let name = self.name(ErrorKind::BadSubstitution)?;
            self.close()?;
            (name, Operator::Length, Vec::new())
        } else {
            let name = self.name(ErrorKind::VariableName)?;
            let (operator, arguments) = self.operation()?;
            (name, operator, arguments)
        };
        self.depth -= 1;
        Ok(Expression {
            name,
            operator,
            arguments,
            offset,
        })
    }

    fn name(&mut self, missing: ErrorKind) -> Result<String, Error> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if end == 0 {
            return self.fail(missing);
        }
        let name = rest[..end].to_owned();
        self.position += end;
        Ok(name)
    }

    fn operation(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        match self.peek() {
            Some(':') => self.colon(),
            Some('=') => {
                self.position += 1;
                self.default()
            }
            Some(',' | '^') => self.casing(),
            Some('#' | '%') => self.trim(),
            Some('/') => self.replace(),
            Some('}') => {
                self.position += 1;
                Ok((Operator::Value, Vec::new()))
            }
            _ => self.fail(ErrorKind::MissingClosingBrace),
        }
    }

    /// `:=`, `:-`, `:?` and `:+` give a default; anything else after the colon is an offset.
    fn colon(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        self.position += 1;
        match self.peek() {
            Some('=' | '-' | '?' | '+') => {
                self.position += 1;
                self.default()
            }
            Some(next) if next.is_ascii() => self.substring(),
            // The original loses its place here.
            _ => self.fail(ErrorKind::BadSubstitution),
        }
    }

    fn default(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        let mut arguments = Vec::new();
        while !self.eat("}") {
            arguments.push(self.argument(Escapes::None, |c| c != '}')?);
        }
        Ok((Operator::Default, arguments))
    }

    fn substring(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        let mut arguments = vec![self.argument(Escapes::None, |c| c != ':' && c != '}')?];
        if self.eat("}") {
            return Ok((Operator::Substring, arguments));
        }
        if !self.eat(":") {
            return self.fail(ErrorKind::BadSubstitution);
        }
        while self.eat(":") {}
        arguments.push(self.argument(Escapes::None, |c| c != '}')?);
        self.close()?;
        Ok((Operator::Substring, arguments))
    }

    fn casing(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        let operator = if self.eat(",,") {
            Operator::Lower
        } else if self.eat("^^") {
            Operator::Upper
        } else if self.eat(",^") || self.eat("^,") {
            Operator::Value
        } else if self.eat(",") {
            Operator::LowerFirst
        } else {
            self.position += 1;
            Operator::UpperFirst
        };
        self.close()?;
        Ok((operator, Vec::new()))
    }

    fn trim(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        let operator = if self.eat("##") {
            Operator::TrimLongestPrefix
        } else if self.eat("#") {
            Operator::TrimShortestPrefix
        } else if self.eat("%%") {
            Operator::TrimLongestSuffix
        } else {
            self.position += 1;
            Operator::TrimShortestSuffix
        };
        let pattern = self.argument(Escapes::None, |c| c != '}')?;
        self.close()?;
        Ok((operator, vec![pattern]))
    }

    fn replace(&mut self) -> Result<(Operator, Vec<Piece>), Error> {
        let operator = if self.eat("//") {
            Operator::ReplaceAll
        } else if self.eat("/#") {
            Operator::ReplacePrefix
        } else if self.eat("/%") {
            Operator::ReplaceSuffix
        } else {
            self.position += 1;
            Operator::ReplaceFirst
        };
        let mut arguments = vec![self.argument(Escapes::DollarAndBackslash, |c| c != '/')?];
        if !self.eat("/") {
            return self.fail(ErrorKind::BadSubstitution);
        }
        while self.eat("/") {}
        if !self.eat("}") {
            arguments.push(self.argument(Escapes::DollarAndBackslash, |c| c != '}')?);
            self.close()?;
        }
        Ok((operator, arguments))
    }

    fn argument(
        &mut self,
        escapes: Escapes,
        accept: impl Fn(char) -> bool,
    ) -> Result<Piece, Error> {
        match self.piece(escapes, accept)? {
            Some(piece) => Ok(piece),
            None => self.fail(ErrorKind::Argument),
        }
    }
}
