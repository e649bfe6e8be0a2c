//! Go's regular expressions, run by Rust's engine: the syntax differs a little.

use regex::Regex;

use crate::error::{Error, Result};

/// A pattern; most are plain names and need no automaton.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Matches everything.
    Any,
    /// Matches this text only.
    Exact(String),
    /// A regular expression.
    Regex(Regex),
}

/// Characters that mean more than themselves.
const SPECIAL: &[char] = &[
    '\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$',
];

impl Pattern {
    /// A pattern that must match a whole text; the empty one matches everything.
    pub(crate) fn whole(pattern: &str) -> Result<Self> {
        match pattern {
            "" => Ok(Self::Any),
            _ if !Self::is_regex(pattern) => Ok(Self::Exact(pattern.to_owned())),
            _ => Ok(Self::Regex(compile(&format!("^(?:{pattern})$"))?)),
        }
    }

    /// Whether a pattern needs an automaton.
    pub(crate) fn is_regex(pattern: &str) -> bool {
        pattern.contains(SPECIAL)
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// The only text that matches, if there is just one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(exact) => Some(exact),
            _ => None,
        }
    }
}

/// A regular expression that may match anywhere.
pub(crate) fn compile(pattern: &str) -> Result<Regex> {
    let refused =
        |problem: String| Error::refused(format!("error parsing regexp `{pattern}`: {problem}"));
    let translated = Translator::new(pattern).run().map_err(refused)?;
    Regex::new(&translated).map_err(|error| refused(error.to_string()))
}

/// Writes a pattern of Go's so that Rust takes it the same way: ASCII classes, braces that count nothing are
/// themselves, and nothing is special in a class but its own signs.
struct Translator<'a> {
    letters: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    /// Whether what was written last is a count such as `*`, which Go lets no other count follow.
    after_count: bool,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            letters: pattern.chars().peekable(),
            out: String::with_capacity(pattern.len() + 8),
            after_count: false,
        }
    }

    fn run(mut self) -> std::result::Result<String, String> {
        while let Some(letter) = self.letters.next() {
            let is_count = match letter {
                '\\' => self.escape().map(|()| false)?,
                '[' => {
                    self.class()?;
                    false
                }
                '{' => self.braces(),
                '}' => {
                    self.out.push_str(r"\}");
                    false
                }
                '*' | '+' | '?' => {
                    let is_group = letter == '?' && self.out.ends_with('(');
                    self.out.push(letter);
                    !is_group
                }
                _ => {
                    self.out.push(letter);
                    false
                }
            };
            if is_count {
                self.end_count()?;
            }
            self.after_count = is_count;
        }
        Ok(self.out)
    }

    /// A count may be followed by one `?`, and by no other count.
    fn end_count(&mut self) -> std::result::Result<(), String> {
        if self.after_count {
            return Err("invalid nested repetition operator".to_owned());
        }
        if self.letters.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        Ok(())
    }

    /// `{2}`, `{2,}` and `{2,3}` count; any other brace is itself.
    fn braces(&mut self) -> bool {
        let rest: String = self
            .letters
            .clone()
            .take_while(|letter| *letter != '}')
            .collect();
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_closed = self.letters.clone().nth(rest.chars().count()) == Some('}');
        let counts = match rest.split_once(',') {
            Some((low, high)) => is_number(low) && (high.is_empty() || is_number(high)),
            None => is_number(&rest),
        };
        if !(counts && is_closed) {
            self.out.push_str(r"\{");
            return false;
        }
        self.out.extend(["{", &rest, "}"]);
        for _ in 0..=rest.len() {
            self.letters.next();
        }
        true
    }

    fn escape(&mut self) -> std::result::Result<(), String> {
        let Some(letter) = self.letters.next() else {
            return Err("trailing backslash at end of expression".to_owned());
        };
        match letter {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.out.extend(["[", ascii(letter), "]"]),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'C' => self.out.push_str("(?s:.)"),
            'Q' => self.quoted(),
            '<' | '>' => self.out.push(letter),
            '0'..='9' => self.octal(letter)?,
            'A' | 'B' | 'z' | 'p' | 'P' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' => {
                self.out.extend(['\\', letter]);
            }
            _ if letter.is_alphanumeric() => {
                return Err(format!(r"invalid escape sequence: `\{letter}`"));
            }
            _ => self
                .out
                .push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
        Ok(())
    }

    /// `\Q…\E`: everything between means itself.
    fn quoted(&mut self) {
        let mut text = String::new();
        while let Some(letter) = self.letters.next() {
            if letter == '\\' && self.letters.next_if_eq(&'E').is_some() {
                break;
            }
            text.push(letter);
        }
        self.out.push_str(&regex::escape(&text));
    }

    /// A character by its octal number; one digit alone but zero would be a reference back, which Go does not have.
    fn octal(&mut self, first: char) -> std::result::Result<(), String> {
        let mut code = first.to_digit(8).unwrap_or(0);
        let is_octal = |letter: &char| matches!(letter, '0'..='7');
        let mut digits = 1;
        while digits < 3
            && let Some(digit) = self.letters.next_if(is_octal)
        {
            code = code * 8 + digit.to_digit(8).unwrap_or(0);
            digits += 1;
        }
        if matches!(first, '8' | '9') || (first != '0' && digits == 1) {
            return Err(format!(r"invalid escape sequence: `\{first}`"));
        }
        let letter = char::from_u32(code).unwrap_or_default();
        self.out
            .push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
        Ok(())
    }

    fn class(&mut self) -> std::result::Result<(), String> {
        self.out.push('[');
        if self.letters.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        while let Some(letter) = self.letters.next() {
            match letter {
                ']' if !is_first => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape()?,
                '[' if self.letters.peek() == Some(&':') => self.named_class(),
                '[' | ']' | '&' | '~' => self.out.extend(['\\', letter]),
                _ => self.out.push(letter),
            }
            is_first = false;
        }
        Err("missing closing ]".to_owned())
    }

    /// `[:alpha:]` inside of a class.
    fn named_class(&mut self) {
        self.out.push('[');
        for letter in self.letters.by_ref() {
            self.out.push(letter);
            if letter == ']' {
                break;
            }
        }
    }
}

/// Go's `\d`, `\s` and `\w` know ASCII only.
fn ascii(class: char) -> &'static str {
    match class {
        'd' => "0-9",
        'D' => "^0-9",
        's' => r"\t\n\f\r ",
        'S' => r"^\t\n\f\r ",
        'w' => "0-9A-Za-z_",
        _ => "^0-9A-Za-z_",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        let pattern = Pattern::whole(pattern).unwrap();
        assert_eq!(pattern.is_match(text), expected, "{pattern:?} {text}");
    }

    #[test]
    fn braces_that_count_nothing_are_themselves() {
        check(r"\${NAME}-web", "${NAME}-web", true);
        check("a{2}", "aa", true);
        check("a{2,}", "aaa", true);
        check("a{,2}", "a{,2}", true);
        check("a{", "a{", true);
    }

    #[test]
    fn classes_are_ascii_and_hold_brackets() {
        check(r"\d+", "12", true);
        check(r"\d+", "\u{663}", false);
        check(r"[\w-]+", "a-b_c", true);
        check(r"[^\d]", "7", false);
        check("[[]", "[", true);
        check("[]a]", "]", true);
        check("[a&&b]", "&", true);
        check("[[:alpha:]]+", "ab", true);
    }

    #[test]
    fn escapes_follow_go() {
        check(r"\Qa.b\E.", "a.bc", true);
        check(r"\Qa.b\E.", "axbc", false);
        check(r"a\<b", "a<b", true);
        check(r"\141", "a", true);
        check(r"a\.b", "axb", false);
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in ["a**", "*a", r"\h", r"\1", "[a", r"a\", "(a"] {
            assert!(Pattern::whole(pattern).is_err(), "{pattern}");
        }
    }
}
