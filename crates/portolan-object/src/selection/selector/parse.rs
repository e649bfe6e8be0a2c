//! Parses selectors from text.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = [ "!" ] key
//!             | key ( "=" | "==" | "!=" | ">" | "<" ) [ value ]
//!             | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
//! ```
//!
//! Keys and values are sequences of any characters except white space and `=!(),<>`; whether they are valid labels is
//! checked when the requirement is made. `in` and `notin` are keywords only at the place of an operator.

use std::collections::BTreeSet;

use super::{Operator, Requirement, SelectorError, invalid};
use crate::selection::label::key_problems;

/// Reads every requirement, in the order of the text.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser {
        tokens: tokens(text),
        next: 0,
    };
    parser.selector().map_err(SelectorError)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Word,
    Symbol,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

const END: Token<'static> = Token {
    kind: Kind::End,
    text: "",
};

const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(WHITE_SPACE);
        // Kubernetes ends the text at a NUL, unless it follows a token: then it only ends that.
        let Some(first) = rest.chars().next().filter(|first| *first != '\0') else {
            return tokens;
        };
        let (kind, length) = if is_symbol(first) {
            (Kind::Symbol, symbol_length(rest))
        } else {
            let end = |c| is_symbol(c) || WHITE_SPACE.contains(&c) || c == '\0';
            (Kind::Word, rest.find(end).unwrap_or(rest.len()))
        };
        let (text, after) = rest.split_at(length);
        tokens.push(Token { kind, text });
        rest = after.strip_prefix('\0').unwrap_or(after);
    }
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn symbol_length(text: &str) -> usize {
    if text.starts_with("==") || text.starts_with("!=") {
        2
    } else {
        1
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        match self.peek() {
            token if token.kind == Kind::End => return Ok(requirements),
            token if starts_requirement(token) => {}
            token => return Err(found(token, "!, identifier, or 'end of string'")),
        }
        loop {
            let requirement = self.requirement();
            requirements.push(
                requirement.map_err(|error| format!("unable to parse requirement: {error}"))?,
            );
            match self.take() {
                token if token.kind == Kind::End => return Ok(requirements),
                token if token.text == "," => {}
                token => return Err(found(token, "',' or 'end of string'")),
            }
            if !starts_requirement(self.peek()) {
                return Err(found(self.peek(), "identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek().text == "!";
        if negated {
            self.take();
        }
        let key = self.key()?;
        let next = self.peek();
        let operator = match (negated, next) {
            (true, _) => Operator::DoesNotExist,
            (false, token) if token.kind == Kind::End || token.text == "," => Operator::Exists,
            (false, _) => self.operator()?,
        };
        let values = match operator {
            Operator::Exists | Operator::DoesNotExist => BTreeSet::new(),
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.value()?]),
        };
        Requirement::new(key, operator, values).map_err(|error| error.0)
    }

    fn key(&mut self) -> Result<&'a str, String> {
        let token = self.take();
        if token.kind != Kind::Word {
            return Err(found(token, "identifier"));
        }
        let problems = key_problems(token.text);
        if problems.is_empty() {
            Ok(token.text)
        } else {
            Err(invalid("<nil>", token.text, &problems.join("; ")))
        }
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let token = self.take();
        Ok(match token.text {
            "=" => Operator::Equals,
            "==" => Operator::DoubleEquals,
            "!=" => Operator::NotEquals,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            _ => return Err(found(token, "in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// A value may be left out, which is the empty one.
    fn value(&mut self) -> Result<&'a str, String> {
        let next = self.peek();
        if next.kind == Kind::End || next.text == "," {
            return Ok("");
        }
        match self.take() {
            token if token.kind == Kind::Word => Ok(token.text),
            token => Err(found(token, "identifier")),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let open = self.take();
        if open.text != "(" {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            token if token.text == ")" => {
                values.insert("");
            }
            token if token.kind == Kind::Word || token.text == "," => {
                self.value_list(&mut values)?;
            }
            token => return Err(found(token, "',', ')' or identifier")),
        }
        self.take();
        Ok(values)
    }

    /// Up to the closing parenthesis; an empty place between commas is the empty value.
    fn value_list(&mut self, values: &mut BTreeSet<&'a str>) -> Result<(), String> {
        loop {
            let token = self.take();
            if token.kind == Kind::Word {
                values.insert(token.text);
                match self.peek().text {
                    "," => {}
                    ")" => return Ok(()),
                    _ => return Err(found(self.peek(), "',' or ')'")),
                }
            } else if token.text == "," {
                if values.is_empty() {
                    values.insert("");
                }
                match self.peek().text {
                    ")" => {
                        values.insert("");
                        return Ok(());
                    }
                    "," => {
                        self.take();
                        values.insert("");
                    }
                    _ => {}
                }
            } else {
                return Err(found(token, "',', or identifier"));
            }
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(END)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }
}

fn starts_requirement(token: Token<'_>) -> bool {
    token.kind == Kind::Word || token.text == "!"
}

fn found(token: Token<'_>, expected: &str) -> String {
    format!("found '{}', expected: {expected}", token.text)
}
