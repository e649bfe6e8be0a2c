//! Texts with their escapes resolved, and the original position of each part.
//!
//! JSON, YAML, HTML, URLs and tables each have their own way to write `&`, `<`, a tab or an emoji. Instead of
//! searching for a secret in all these forms, the escapes in the text are resolved, whatever they are and however
//! they are mixed.

/// A text with its escapes resolved once and runs of blanks made one space.
pub(crate) struct Unescaped {
    /// The bytes; not UTF-8 where the source escapes single bytes.
    pub(crate) bytes: Vec<u8>,
    /// Where the bytes and their source stop running in step: offsets in both, in rising order.
    marks: Vec<(usize, usize)>,
    source_length: usize,
}

/// What one escape says, and how many bytes of the source say it.
struct Escape {
    letters: Letters,
    length: usize,
}

enum Letters {
    None,
    Byte(u8),
    Char(char),
}

/// How many times escapes are resolved: JSON inside of JSON inside of a page is three.
pub(crate) const MAX_ESCAPES: usize = 3;

/// The longest number of an HTML escape or of `\u{…}`.
const MAX_DIGITS: usize = 8;

/// Breaks of lines beyond ASCII. YAML 1.1 adds other breaks and blanks to them in quotes, so they count as blanks.
const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Whether a text has anything in it that [`Unescaped`] would resolve, runs of blanks apart.
pub(crate) fn has_escapes(text: &[u8]) -> bool {
    (0..text.len()).any(|at| escape(&text[at..]).is_some())
}

impl Unescaped {
    /// Resolves the escapes of a text.
    pub(crate) fn of(source: &[u8]) -> Self {
        let mut unescaped = Self {
            bytes: Vec::with_capacity(source.len()),
            marks: vec![(0, 0)],
            source_length: source.len(),
        };
        let mut at = 0;
        while let Some(byte) = source.get(at) {
            match escape(&source[at..]) {
                Some(escape) => {
                    unescaped.mark(at);
                    match escape.letters {
                        Letters::None => {}
                        Letters::Byte(byte) => unescaped.push(byte, at),
                        Letters::Char(letter) => {
                            let mut buffer = [0; 4];
                            for byte in letter.encode_utf8(&mut buffer).bytes() {
                                unescaped.push(byte, at);
                            }
                        }
                    }
                    at += escape.length;
                    unescaped.mark(at);
                }
                None => {
                    unescaped.push(*byte, at);
                    at += 1;
                }
            }
        }
        unescaped
    }

    fn mark(&mut self, source: usize) {
        let mark = (self.bytes.len(), source);
        match self.marks.last_mut() {
            Some(last) if last.0 == mark.0 => last.1 = source,
            _ => self.marks.push(mark),
        }
    }

    fn push(&mut self, byte: u8, at: usize) {
        if !is_blank(byte) {
            self.bytes.push(byte);
        } else if self.bytes.last() == Some(&b' ') {
            // What follows the blanks is one more byte away from where it came from.
            self.mark(at + 1);
        } else {
            self.bytes.push(b' ');
        }
    }

    /// The part of the source that a range of the bytes came from.
    pub(crate) fn source_range(&self, start: usize, end: usize) -> (usize, usize) {
        (self.source_start(start), self.source_end(end))
    }

    fn source_start(&self, at: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.0 <= at);
        let (bytes, source) = self.marks[next.saturating_sub(1)];
        (source + (at - bytes)).min(self.next_source(next))
    }

    /// The end of what the byte before stands for.
    fn source_end(&self, at: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.0 < at);
        let (bytes, source) = self.marks[next.saturating_sub(1)];
        let end = source + (at - bytes);
        match self.marks.get(next) {
            // An escape ends where the next mark says.
            Some(mark) if mark.0 == at => mark.1.max(end),
            _ => end.min(self.next_source(next)),
        }
    }

    fn next_source(&self, next: usize) -> usize {
        self.marks
            .get(next)
            .map_or(self.source_length, |mark| mark.1)
    }
}

/// A text with each run of blanks made one space.
pub(crate) fn with_single_spaces(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_blank = BREAKS.contains(&letter) || (letter.is_ascii() && is_blank(letter as u8));
        if !is_blank {
            spaced.push(letter);
        } else if !spaced.ends_with(' ') {
            spaced.push(' ');
        }
    }
    spaced
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The escape that a text begins with.
fn escape(text: &[u8]) -> Option<Escape> {
    match text {
        [b'\\', rest @ ..] => backslash(rest),
        [b'%', high, low, ..] => {
            let byte = hex(&[*high, *low])?;
            Some(Escape {
                letters: Letters::Byte(byte as u8),
                length: 3,
            })
        }
        [b'&', rest @ ..] => entity(rest),
        [b'\'', b'\'', ..] => Some(letter('\'', 2)),
        [b'"', b'"', ..] => Some(letter('"', 2)),
        [0xc2, 0x85, ..] => Some(letter(' ', 2)),
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => Some(letter(' ', 3)),
        _ => None,
    }
}

fn letter(letter: char, length: usize) -> Escape {
    let letter = if BREAKS.contains(&letter) {
        ' '
    } else {
        letter
    };
    Escape {
        letters: Letters::Char(letter),
        length,
    }
}

/// What JSON, YAML, Go, Rust and Markdown write with a backslash.
fn backslash(rest: &[u8]) -> Option<Escape> {
    let simple = match rest.first()? {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        b'x' => return numbered(rest.get(1..3)?, 4),
        b'U' => return numbered(rest.get(1..9)?, 10),
        b'u' => return unicode(rest),
        b'\n' => return Some(continued_line(rest)),
        b' ' => ' ',
        punctuation if punctuation.is_ascii_punctuation() => *punctuation as char,
        _ => return None,
    };
    Some(letter(simple, 2))
}

/// YAML breaks a long text in quotes by a backslash at the end of a line; blanks before the rest do not count.
fn continued_line(rest: &[u8]) -> Escape {
    let indentation = rest[1..]
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'));
    Escape {
        letters: Letters::None,
        length: 2 + indentation.count(),
    }
}

/// `u0026`, `ud83d\ude00`, `u{1f600}`.
fn unicode(rest: &[u8]) -> Option<Escape> {
    if rest.get(1) == Some(&b'{') {
        let digits = &rest[2..];
        let end = digits
            .iter()
            .take(MAX_DIGITS)
            .position(|byte| *byte == b'}')?;
        return numbered(&digits[..end], end + 4);
    }
    let first = hex(rest.get(1..5)?)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map(|found| letter(found, 6));
    }
    let second = match rest.get(5..7)? {
        b"\\u" => hex(rest.get(7..11)?)?,
        _ => return None,
    };
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    let found = char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?;
    Some(letter(found, 12))
}

fn numbered(digits: &[u8], length: usize) -> Option<Escape> {
    char::from_u32(hex(digits)?).map(|found| letter(found, length))
}

/// What HTML and XML write with an ampersand.
fn entity(rest: &[u8]) -> Option<Escape> {
    let end = rest
        .iter()
        .take(MAX_DIGITS + 2)
        .position(|byte| *byte == b';')?;
    let found = match &rest[..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        b"nbsp" => '\u{a0}',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(hex(digits)?)?,
        [b'#', digits @ ..] => {
            let digits = std::str::from_utf8(digits).ok()?;
            char::from_u32(digits.parse().ok()?)?
        }
        _ => return None,
    };
    Some(letter(found, end + 2))
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    digits.iter().try_fold(0_u32, |number, digit| {
        let digit = (*digit as char).to_digit(16)?;
        number.checked_mul(16)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let unescaped = Unescaped::of(text.as_bytes());
        assert_eq!(
            String::from_utf8_lossy(&unescaped.bytes),
            expected,
            "{text}"
        );
    }

    #[test]
    fn escapes_of_many_formats_are_resolved() {
        check(r"a\u0026b\u003cc\u2028d", "a&b<c d");
        check(r"\ud83d\ude00 \U0001F600 \u{1f600}", "😀 😀 😀");
        check(r"a\Lb\_c\x7f", "a b\u{a0}c\u{7f}");
        check("a%26b%3cc %F0%9F%98%80", "a&b<c 😀");
        check("a&amp;b&lt;c&#39;d&#x1F600;", "a&b<c'd😀");
        check("it''s \"\"x\"\"", "it's \"x\"");
        check("one \\\n    \\ two", "one two");
        check("one\n\t  two", "one two");
    }

    #[test]
    fn what_only_looks_like_an_escape_stays() {
        for text in [
            "100% sure",
            r"C:\data",
            "a & b",
            r"\ud83d alone",
            "&unknown;",
            r"\u{}",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_range_leads_back_to_what_it_was_written_as() {
        let check = |source: &str, part: &str, expected: &str| {
            let unescaped = Unescaped::of(source.as_bytes());
            let text = String::from_utf8_lossy(&unescaped.bytes).into_owned();
            let start = text.find(part).expect("the part is there");
            let (from, to) = unescaped.source_range(start, start + part.len());
            assert_eq!(&source[from..to], expected, "{source}");
        };
        check(r#"{"a":"x\u0026y","b":1}"#, "x&y", r"x\u0026y");
        check(r#"{"a":"\u0026y\u0026"}"#, "&y&", r"\u0026y\u0026");
        check("a  b   c", "b", "b");
        check("a  b   c", "a b c", "a  b   c");
        check("x%F0%9F%98%80y", "😀", "%F0%9F%98%80");
        check("k: \"one \\\n  two\"", "one two", "one \\\n  two");
    }
}
