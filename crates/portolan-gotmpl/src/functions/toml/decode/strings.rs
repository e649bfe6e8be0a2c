//! Strings of the four kinds, and their escapes.

use super::{Decoder, Problem, Step, fail};
use crate::fmt::quote;

impl Decoder<'_> {
    pub(super) fn basic_string(&mut self) -> Step<String> {
        self.at += 1;
        let start = self.at;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => return Err(self.end("unexpected EOF; expected '\"'")),
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\n') => return fail("strings cannot contain newlines"),
                Some('\\') => out.push(self.escape(start)?),
                Some(other) => {
                    self.at += other.len_utf8();
                    out.push(other);
                }
            }
        }
    }

    pub(super) fn literal_string(&mut self) -> Step<String> {
        self.at += 1;
        let rest = self.rest();
        match rest.find(['\'', '\n']) {
            Some(end) if rest[end..].starts_with('\'') => {
                let text = rest[..end].to_owned();
                self.at += end + 1;
                Ok(text)
            }
            Some(_) => fail("strings cannot contain newlines"),
            None => {
                self.at = self.text.len();
                Err(self.end("unexpected EOF; expected \"'\""))
            }
        }
    }

    /// A string between three quotes; the first line end is dropped, and up to two quotes may stand before the end.
    pub(super) fn long_string(&mut self, quotes: &str) -> Step<String> {
        self.at += quotes.len();
        if !self.eat("\n") {
            self.eat("\r\n");
        }
        let start = self.at;
        let mut out = String::new();
        loop {
            if self.rest().starts_with(quotes) {
                let extra = self.rest()[3..]
                    .chars()
                    .take(2)
                    .take_while(|c| quotes.starts_with(*c))
                    .count();
                out.push_str(&quotes[..extra]);
                self.at += 3 + extra;
                return Ok(out);
            }
            match self.peek() {
                None => {
                    let shown = if quotes == "'''" {
                        "\"'''\""
                    } else {
                        "'\"\"\"'"
                    };
                    return Err(self.end(format!("unexpected EOF; expected {shown}")));
                }
                Some('\\') if quotes != "'''" && self.skips_line_end() => {}
                Some('\\') if quotes != "'''" => out.push(self.escape(start)?),
                Some(other) => {
                    self.at += other.len_utf8();
                    out.push(other);
                }
            }
        }
    }

    /// A backslash at the end of a line takes all white space after it away.
    fn skips_line_end(&mut self) -> bool {
        let after = self.rest()[1..].trim_start_matches([' ', '\t', '\r']);
        if !after.starts_with('\n') {
            return false;
        }
        let trimmed = after.trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.text.len() - trimmed.len();
        true
    }

    /// The character of an escape in a string that starts at `start`.
    fn escape(&mut self, start: usize) -> Step<char> {
        let Some(letter) = self.rest()[1..].chars().next() else {
            self.at += 1;
            return Err(self.end("invalid escape in string '\\\0'"));
        };
        let simple = match letter {
            'b' => '\x08',
            't' => '\t',
            'n' => '\n',
            'f' => '\x0c',
            'r' => '\r',
            '"' => '"',
            '\\' => '\\',
            'u' => return self.unicode_escape(4, "four", start),
            'U' => return self.unicode_escape(8, "eight", start),
            ' ' => return fail("invalid escape: '\\ '"),
            _ => return fail(format!("invalid escape in string '\\{letter}'")),
        };
        self.at += 2;
        Ok(simple)
    }

    /// An escape of so many digits; the library shows the string up to the letter that is none.
    fn unicode_escape(&mut self, count: usize, word: &str, start: usize) -> Step<char> {
        let mut letters = self.rest()[2..].char_indices().take(count);
        let wrong = letters.find(|(_, letter)| !letter.is_ascii_hexdigit());
        let length = wrong.map_or(count, |(at, letter)| at + letter.len_utf8());
        let end = (self.at + 2 + length).min(self.text.len());
        let digits = self.text[self.at + 2..end].to_owned();
        if wrong.is_some() || digits.len() < count {
            let letter = &self.text[self.at + 1..self.at + 2];
            let shown = quote(&self.text.as_bytes()[start..end], false);
            let message = format!(
                "expected {word} hexadecimal digits after '\\{letter}', but got {shown} instead"
            );
            return Err(if wrong.is_some() {
                Problem::Text(message)
            } else {
                self.end(message)
            });
        }
        self.at = end;
        let code = u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX);
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => fail(format!(
                "Escaped character '\\u{digits}' is not valid UTF-8."
            )),
        }
    }
}
