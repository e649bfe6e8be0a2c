//! Values: strings, arrays, inline tables, and the words that [`super::scalars`] reads.

use super::scalars::{Scalar, scan};
use super::{Decoder, Problem, Step, check_depth, fail, new_table, rune};
use crate::value::{ElementType, Value};

impl Decoder<'_> {
    /// The value of the current key.
    pub(super) fn value(&mut self) -> Step<Value> {
        match self.peek() {
            None => Err(self.end("unexpected EOF; expected value")),
            Some('"') if self.rest().starts_with("\"\"\"") => {
                self.long_string("\"\"\"").map(Value::from)
            }
            Some('"') => self.basic_string().map(Value::from),
            Some('\'') if self.rest().starts_with("'''") => {
                self.long_string("'''").map(Value::from)
            }
            Some('\'') => self.literal_string().map(Value::from),
            Some('[') => self.nested(Self::array),
            Some('{') => self.nested(Self::inline_table),
            Some(_) => self.scalar(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Step<Value>) -> Step<Value> {
        check_depth(self.depth + 1)?;
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Step<Value> {
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if self.eat("]") {
                break;
            }
            if self.peek() == Some(',') {
                return fail("unexpected comma");
            }
            items.push(self.value()?);
            self.skip_lines();
            if !self.eat(",") && self.peek() != Some(']') {
                let message = |found: &str| {
                    format!("expected a comma (',') or array terminator (']'), but got {found}")
                };
                return Err(self.missing(message));
            }
        }
        let tables = !items.is_empty() && items.iter().all(|item| matches!(item, Value::Map(_)));
        let element = if tables {
            ElementType::AnyMap
        } else {
            ElementType::Any
        };
        Ok(Value::typed_list(element, items))
    }

    /// The problem that a comma or an end is missing.
    fn missing(&self, message: impl FnOnce(&str) -> String) -> Problem {
        match self.peek() {
            Some(found) => Problem::Text(message(&rune(found))),
            None => self.end(message("end of file")),
        }
    }

    /// A table on one line. The key it belongs to is part of the context meanwhile.
    fn inline_table(&mut self) -> Step<Value> {
        let table = new_table();
        let key = std::mem::take(&mut self.current);
        self.context.push(key);
        self.skip_blanks();
        while !self.eat("}") {
            self.no_line_end()?;
            self.entry(&table)?;
            self.skip_blanks();
            self.no_line_end()?;
            if self.eat(",") {
                self.skip_blanks();
                match self.peek() {
                    Some(',') => return fail("unexpected comma"),
                    Some('}') => return fail("trailing comma not allowed in inline tables"),
                    _ => {}
                }
            } else if self.peek() != Some('}') {
                let message = |found: &str| {
                    format!(
                        "expected a comma or an inline table terminator '}}', but got {found} instead"
                    )
                };
                return Err(self.missing(message));
            }
        }
        self.current = self.context.pop().unwrap_or_default();
        Ok(Value::Map(table))
    }

    fn no_line_end(&self) -> Step {
        match self.peek() {
            Some('\n' | '\r') => fail("newlines not allowed within inline tables"),
            _ => Ok(()),
        }
    }

    /// A number, boolean or date.
    fn scalar(&mut self) -> Step<Value> {
        let rest = self.rest();
        match scan(rest) {
            // What cannot be read may be the end of a longer word.
            Ok((word, _)) if word.len() == rest.len() && self.forbidden.is_some() => {
                Err(self.end(""))
            }
            Ok((word, scalar)) => {
                self.at += word.len();
                read(word, scalar).map_err(Problem::Text)
            }
            Err(None) => {
                Err(self.unexpected(|found| format!("expected value but found {found} instead")))
            }
            Err(Some(problem)) => Err(problem),
        }
    }
}

fn read(word: &str, scalar: Scalar) -> Result<Value, String> {
    match scalar {
        Scalar::Bool(value) => Ok(value.into()),
        Scalar::Integer => super::scalars::integer(word),
        Scalar::Float => super::scalars::float(word),
        Scalar::Date => super::scalars::date(word),
    }
}
