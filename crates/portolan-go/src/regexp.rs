//! Translates Go's regular expression syntax to that of the `regex` crate.
//!
//! The two are similar. In Go, `\d`, `\s`, `\w` and `\b` match only ASCII, there are `\Q…\E` and octal escapes, and
//! inside a class `&&`, `--` and `[` are characters, not operators. Errors are Go's.

use std::fmt::Write;

/// How often something may be repeated, repetitions inside repetitions multiplied.
const MAX_REPEAT: u32 = 1000;

/// How deep groups may nest.
const MAX_NESTING: usize = 250;

/// What is wrong with an expression, and the part that is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: `{expression}`")]
pub struct SyntaxError {
    code: &'static str,
    expression: String,
}

const BAD_CLASS_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_GROUP: &str = "invalid or unsupported Perl syntax";
const BAD_NAME: &str = "invalid named capture";
const BAD_UTF8: &str = "invalid UTF-8";
const BAD_REPEAT: &str = "invalid repeat count";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";
const MISSING_BRACKET: &str = "missing closing ]";
const MISSING_PAREN: &str = "missing closing )";
const NESTED_REPEAT: &str = "invalid nested repetition operator";
const TOO_DEEP: &str = "expression nests too deeply";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED_PAREN: &str = "unexpected )";

impl SyntaxError {
    /// The error for a text that is not UTF-8 from some place on; what stands there is shown.
    pub fn invalid_utf8(from_there: &str) -> Self {
        Self {
            code: BAD_UTF8,
            expression: from_there.to_owned(),
        }
    }
}

fn fail<T>(code: &'static str, expression: &str) -> Result<T, SyntaxError> {
    Err(SyntaxError {
        code,
        expression: expression.to_owned(),
    })
}

/// Returns an expression that the `regex` crate matches as Go matches the given one.
pub fn translate(pattern: &str) -> Result<String, SyntaxError> {
    let mut translator = Translator {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        groups: vec![Group::default()],
        last_repeat: None,
    };
    while !translator.rest.is_empty() {
        translator.step()?;
    }
    if translator.groups.len() > 1 {
        return fail(MISSING_PAREN, pattern);
    }
    Ok(translator.out)
}

struct Translator<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    /// The open groups, outermost first.
    groups: Vec<Group>,
    /// What follows the last atom's repetition operator, from that operator on.
    last_repeat: Option<&'p str>,
}

/// What a group holds so far.
#[derive(Default)]
struct Group {
    /// How often the last atom repeats something at most; none where there is no atom to repeat.
    atom: Option<u32>,
    /// The most of all atoms.
    most: u32,
}

impl<'p> Translator<'p> {
    fn step(&mut self) -> Result<(), SyntaxError> {
        let start = self.rest;
        let mut repeated = None;
        match start.as_bytes()[0] {
            b'(' => self.open()?,
            b')' => self.close()?,
            b'|' => {
                self.copy(1);
                self.group().atom = None;
            }
            b'[' => {
                self.class()?;
                self.atom(1);
            }
            b'\\' => self.escape()?,
            b'*' | b'+' | b'?' => {
                self.repeat(1, 1)?;
                repeated = Some(start);
            }
            b'{' => {
                if let Some((length, times)) = repetition(start) {
                    let times = times
                        .ok_or(())
                        .or_else(|()| fail(BAD_REPEAT, &start[..length]))?;
                    self.repeat(length, times)?;
                    repeated = Some(start);
                } else {
                    self.rest = &start[1..];
                    self.literal('{');
                }
            }
            b'^' | b'$' | b'.' => {
                self.copy(1);
                self.atom(1);
            }
            _ => {
                let character = self.next().unwrap_or_default();
                self.literal(character);
            }
        }
        self.last_repeat = repeated;
        Ok(())
    }

    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Notes that something stands here that may be repeated.
    fn atom(&mut self, repeats: u32) {
        let group = self.group();
        group.atom = Some(repeats);
        group.most = group.most.max(repeats);
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next();
        self.rest = characters.as_str();
        first
    }

    /// Takes bytes over as they are.
    fn copy(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn literal(&mut self, character: char) {
        push_literal(&mut self.out, character);
        self.atom(1);
    }

    /// `*`, `+`, `?` or `{…}` of some length, and the `?` that makes it lazy.
    fn repeat(&mut self, length: usize, times: u32) -> Result<(), SyntaxError> {
        let start = self.rest;
        self.copy(length);
        if self.rest.starts_with('?') {
            self.copy(1);
        }
        let written = |from: &'p str, rest: &str| &from[..from.len() - rest.len()];
        if let Some(last) = self.last_repeat {
            return fail(NESTED_REPEAT, written(last, self.rest));
        }
        let Some(repeats) = self.group().atom else {
            return fail(MISSING_ARGUMENT, written(start, self.rest));
        };
        let repeats = repeats * times.max(1);
        if repeats > MAX_REPEAT {
            return fail(BAD_REPEAT, written(start, self.rest));
        }
        self.atom(repeats);
        Ok(())
    }

    fn open(&mut self) -> Result<(), SyntaxError> {
        if self.groups.len() > MAX_NESTING {
            return fail(TOO_DEEP, self.whole);
        }
        let Some(inner) = self.rest.strip_prefix("(?") else {
            self.copy(1);
            self.groups.push(Group::default());
            return Ok(());
        };
        let named = inner.strip_prefix("P<").or_else(|| inner.strip_prefix('<'));
        match named {
            Some(named) if named.len() > usize::from(inner.starts_with('P')) => {
                self.open_named(named)
            }
            _ => self.open_flags(inner),
        }
    }

    fn open_named(&mut self, named: &'p str) -> Result<(), SyntaxError> {
        let start = self.rest;
        let Some((name, rest)) = named.split_once('>') else {
            return fail(BAD_NAME, start);
        };
        let valid =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !valid {
            return fail(BAD_NAME, &start[..start.len() - rest.len()]);
        }
        // The other engine wants names to begin with a letter; Go does not, and replacements may name them.
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            self.out.push('(');
        } else {
            let _ = write!(self.out, "(?P<{name}>");
        }
        self.rest = rest;
        self.groups.push(Group::default());
        Ok(())
    }

    /// `(?i)`, `(?i-s:`, `(?:`.
    fn open_flags(&mut self, inner: &'p str) -> Result<(), SyntaxError> {
        let start = self.rest;
        let mut negated = false;
        let mut flag_seen = false;
        for (at, character) in inner.char_indices() {
            match character {
                'i' | 'm' | 's' | 'U' => flag_seen = true,
                '-' if !negated => {
                    negated = true;
                    flag_seen = false;
                }
                ':' | ')' if !negated || flag_seen => {
                    let length = start.len() - inner.len() + at + 1;
                    if character == ':' {
                        self.copy(length);
                        self.groups.push(Group::default());
                    } else if length == "(?)".len() {
                        self.rest = &start[length..];
                    } else {
                        self.copy(length);
                    }
                    return Ok(());
                }
                _ => {
                    let end = start.len() - inner.len() + at + character.len_utf8();
                    return fail(BAD_GROUP, &start[..end]);
                }
            }
        }
        fail(BAD_GROUP, start)
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        if self.groups.len() < 2 {
            return fail(UNEXPECTED_PAREN, self.whole);
        }
        self.copy(1);
        let inner = self.groups.pop().map_or(1, |group| group.most.max(1));
        self.atom(inner);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let start = self.rest;
        match start.as_bytes().get(1) {
            Some(b'A' | b'z') => self.copy(2),
            Some(letter @ (b'b' | b'B')) => {
                let _ = write!(self.out, "(?-u:\\{})", char::from(*letter));
                self.rest = &start[2..];
            }
            Some(b'C') => return fail(BAD_ESCAPE, &start[..2]),
            Some(b'Q') => {
                let (literal, rest) = start[2..].split_once("\\E").unwrap_or((&start[2..], ""));
                self.rest = rest;
                for character in literal.chars() {
                    self.literal(character);
                }
                return Ok(());
            }
            _ => {
                if let Some((class, rest)) = class_escape(start)? {
                    let _ = write!(self.out, "[{class}]");
                    self.rest = rest;
                } else {
                    let (character, rest) = character_escape(start)?;
                    self.rest = rest;
                    push_code(&mut self.out, character);
                }
            }
        }
        self.atom(1);
        Ok(())
    }

    /// `[…]`: every character is written as its code, so that none can be an operator.
    fn class(&mut self) -> Result<(), SyntaxError> {
        let start = self.rest;
        let mut rest = &start[1..];
        self.out.push('[');
        if let Some(inner) = rest.strip_prefix('^') {
            self.out.push('^');
            rest = inner;
        }
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            if let Some((class, after)) = posix_class(rest)? {
                self.out.push_str(class);
                rest = after;
            } else if let Some((class, after)) = class_escape(rest)? {
                self.out.push_str(&class);
                rest = after;
            } else {
                rest = self.class_range(rest, start)?;
            }
        }
        self.out.push(']');
        self.rest = &rest[1..];
        Ok(())
    }

    fn class_range(&mut self, range: &'p str, class: &str) -> Result<&'p str, SyntaxError> {
        let (low, mut rest) = class_character(range, class)?;
        let mut high = low;
        let ends_class = rest.starts_with("-]") || rest == "-";
        if let Some(after) = rest.strip_prefix('-').filter(|_| !ends_class) {
            (high, rest) = class_character(after, class)?;
            if high < low {
                return fail(BAD_CLASS_RANGE, &range[..range.len() - rest.len()]);
            }
        }
        push_code(&mut self.out, low);
        self.out.push('-');
        push_code(&mut self.out, high);
        Ok(rest)
    }
}

fn class_character<'p>(text: &'p str, class: &str) -> Result<(char, &'p str), SyntaxError> {
    let mut characters = text.chars();
    match characters.next() {
        None => fail(MISSING_BRACKET, class),
        Some('\\') => character_escape(text),
        Some(character) => Ok((character, characters.as_str())),
    }
}

/// `{n}`, `{n,}` or `{n,m}`: its length and the number that counts, none where that is out of range.
fn repetition(text: &str) -> Option<(usize, Option<u32>)> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let (low, high) = match inner.split_once(',') {
        Some((low, high)) => (low, Some(high)),
        None => (inner, None),
    };
    let number = |digits: &str| {
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let valid =
            !digits.is_empty() && !leading_zero && digits.bytes().all(|b| b.is_ascii_digit());
        valid.then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
    };
    let low = number(low)?;
    let high = match high {
        Some("") => None,
        Some(high) => Some(number(high)?),
        None => Some(low),
    };
    let most = high.unwrap_or(low);
    let valid = low <= MAX_REPEAT && most <= MAX_REPEAT && low <= most;
    Some((end + 1, valid.then_some(most)))
}

/// `\d`, `\pL`, `\p{Greek}` and their opposites, as the inside of a class.
fn class_escape(text: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let class = match text.as_bytes() {
        [b'\\', b'd', ..] => "0-9",
        [b'\\', b'D', ..] => "[^0-9]",
        [b'\\', b's', ..] => r"\t\n\f\r\x20",
        [b'\\', b'S', ..] => r"[^\t\n\f\r\x20]",
        [b'\\', b'w', ..] => "0-9A-Za-z_",
        [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
        [b'\\', sign @ (b'p' | b'P'), ..] => return unicode_class(text, *sign == b'P').map(Some),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), &text[2..])))
}

fn unicode_class(text: &str, negated: bool) -> Result<(String, &str), SyntaxError> {
    let inner = &text[2..];
    let (name, rest) = if let Some(braced) = inner.strip_prefix('{') {
        braced
            .split_once('}')
            .ok_or(())
            .or_else(|()| fail(BAD_CLASS_RANGE, text))?
    } else {
        let end = inner.chars().next().map_or(0, char::len_utf8);
        inner.split_at(end)
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let sign = if negated { 'P' } else { 'p' };
    let class = match name {
        "Any" if negated => r"[^\x{0}-\x{10FFFF}]".to_owned(),
        "Any" => r"\x{0}-\x{10FFFF}".to_owned(),
        _ => format!("\\{sign}{{{name}}}"),
    };
    // Go knows categories by their letters and scripts by their full names.
    let plain = name.len() > 2
        || matches!(
            name.as_bytes(),
            [b'C' | b'L' | b'M' | b'N' | b'P' | b'S' | b'Z', ..]
        );
    let known = plain
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && regex::Regex::new(&format!("[{class}]")).is_ok();
    if known {
        Ok((class, rest))
    } else {
        fail(BAD_CLASS_RANGE, &text[..text.len() - rest.len()])
    }
}

/// `[:alpha:]` and its like.
fn posix_class(text: &str) -> Result<Option<(&str, &str)>, SyntaxError> {
    const NAMES: &[&str] = &[
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
        "space", "upper", "word", "xdigit",
    ];
    let Some(end) = text.strip_prefix("[:").and_then(|inner| inner.find(":]")) else {
        return Ok(None);
    };
    let (class, rest) = text.split_at(end + 4);
    let name = &class[2..end + 2];
    if NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some((class, rest)))
    } else {
        fail(BAD_CLASS_RANGE, class)
    }
}

/// `\n`, `\x41`, `\x{10FFFF}`, `\123`, `\.`: the character and the rest.
fn character_escape(text: &str) -> Result<(char, &str), SyntaxError> {
    let mut characters = text[1..].chars();
    let Some(letter) = characters.next() else {
        return fail(TRAILING_BACKSLASH, "");
    };
    let rest = characters.as_str();
    let simple = match letter {
        'a' => Some('\x07'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        '0'..='7' => return octal(text, rest),
        'x' => return hexadecimal(text, rest),
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter),
        _ => None,
    };
    match simple {
        Some(character) => Ok((character, rest)),
        None => fail(BAD_ESCAPE, &text[..text.len() - rest.len()]),
    }
}

/// Up to three digits; a single one other than zero would be a back reference.
fn octal<'p>(text: &'p str, rest: &'p str) -> Result<(char, &'p str), SyntaxError> {
    let digits = text[1..]
        .bytes()
        .take(3)
        .take_while(|byte| matches!(byte, b'0'..=b'7'))
        .count();
    if digits == 1 && !text.starts_with("\\0") {
        return fail(BAD_ESCAPE, &text[..text.len() - rest.len()]);
    }
    let code = u32::from_str_radix(&text[1..=digits], 8).unwrap_or(0);
    Ok((
        char::from_u32(code).unwrap_or_default(),
        &text[digits + 1..],
    ))
}

fn hexadecimal<'p>(text: &'p str, rest: &'p str) -> Result<(char, &'p str), SyntaxError> {
    let (digits, after) = if let Some(braced) = rest.strip_prefix('{') {
        braced.split_once('}').unwrap_or((braced, ""))
    } else {
        let end = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
        rest.split_at(end)
    };
    let enough = rest.starts_with('{') || digits.len() == 2;
    let closed = !rest.starts_with('{') || rest.contains('}');
    let valid =
        enough && closed && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| valid);
    match code.and_then(char::from_u32) {
        Some(character) => Ok((character, after)),
        None => fail(BAD_ESCAPE, &text[..text.len() - after.len()]),
    }
}

/// A character that stands for itself.
fn push_literal(out: &mut String, character: char) {
    if character.is_alphanumeric() || character == '_' {
        out.push(character);
    } else {
        push_code(out, character);
    }
}

fn push_code(out: &mut String, character: char) {
    let _ = write!(out, "\\x{{{:X}}}", u32::from(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(pattern: &str, expected: &str) {
        assert_eq!(
            translate(pattern).unwrap_err().to_string(),
            expected,
            "{pattern}"
        );
    }

    #[test]
    fn errors_are_those_of_go() {
        check_error("(a", "missing closing ): `(a`");
        check_error("a)", "unexpected ): `a)`");
        check_error("a**", "invalid nested repetition operator: `**`");
        check_error("|*", "missing argument to repetition operator: `*`");
        check_error("a{1001}", "invalid repeat count: `{1001}`");
        check_error("(a{100}){100}", "invalid repeat count: `{100}`");
        check_error("[a", "missing closing ]: `[a`");
        check_error("[z-a]", "invalid character class range: `z-a`");
        check_error("[[:foo:]]", "invalid character class range: `[:foo:]`");
        check_error(r"\1", r"invalid escape sequence: `\1`");
        check_error(r"\Z", r"invalid escape sequence: `\Z`");
        check_error(r"\pX", r"invalid character class range: `\pX`");
        check_error("a\\", "trailing backslash at end of expression: ``");
        check_error("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
        check_error("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`");
    }

    #[test]
    fn what_is_special_to_one_side_only_is_escaped() {
        for pattern in [
            "[a&&b]", "[[a]", "a{,2}", "[+--b]", r"\Q*\E+", r"[\d-x]", "(?i)É", r"\<", "x{2}{",
        ] {
            let translated = translate(pattern).unwrap();
            assert!(
                regex::bytes::Regex::new(&translated).is_ok(),
                "{pattern}: {translated}"
            );
        }
    }
}
