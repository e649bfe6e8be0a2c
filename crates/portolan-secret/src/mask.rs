//! Finds secrets in nodes and in texts, and replaces them with [`HIDDEN`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use portolan_yaml::{Entry, Node, Style, Tag, Text, Value};

use crate::HIDDEN;
use crate::escape::{MAX_ESCAPES, Unescaped, has_escapes};
use crate::needle::Reach;
use crate::texts::SecretTexts;

/// This much of a text is searched for; the rest is compared where that was found.
const HEAD: usize = 64;

/// How deep nodes are looked into; what is deeper is hidden whole.
const MAX_DEPTH: usize = 256;

/// Finds secrets.
#[derive(Default)]
pub struct Mask {
    searcher: Option<AhoCorasick>,
    needles: Vec<Needle>,
    /// Whether a text has a blank in it, at which a printer may break it into lines.
    has_blanks: bool,
}

/// The beginning of one or more texts that are searched for.
struct Needle {
    head: Vec<u8>,
    /// How the texts go on.
    rests: Vec<Vec<u8>>,
    reach: Reach,
}

/// A part of a text, by the offsets of its first byte and of the one behind its last.
type Range = (usize, usize);

impl Mask {
    /// A mask that finds these texts.
    pub fn new(texts: &SecretTexts) -> Self {
        let mut heads: BTreeMap<&[u8], (Vec<Vec<u8>>, Reach)> = BTreeMap::new();
        for (text, reach) in texts.iter() {
            let (head, rest) = text.as_bytes().split_at(HEAD.min(text.len()));
            let (rests, known) = heads.entry(head).or_insert((Vec::new(), reach));
            *known = (*known).max(reach);
            if !rest.is_empty() {
                rests.push(rest.to_vec());
            }
        }
        let needles: Vec<Needle> = heads
            .into_iter()
            .map(|(head, (rests, reach))| Needle {
                head: head.to_vec(),
                rests,
                reach,
            })
            .collect();
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(needles.iter().map(|needle| &needle.head));
        Self {
            has_blanks: texts.iter().any(|(text, _)| text.contains(' ')),
            // More texts than can be searched for do not happen below gigabytes of secrets.
            searcher: searcher.ok().filter(|_| !needles.is_empty()),
            needles,
        }
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.searcher.is_none()
    }

    /// Whether a text has a secret in it.
    pub fn holds(&self, text: &str) -> bool {
        !self.ranges(text).is_empty()
    }

    /// Returns a text with the secrets in it hidden. Text that was JSON still is.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.ranges(text).as_slice() {
            [] => Cow::Borrowed(text),
            ranges => Cow::Owned(replace(text, ranges)),
        }
    }

    /// Returns a node with the secrets in its keys and values hidden; `None` if there is none. What is not a text
    /// becomes one.
    pub fn node(&self, node: &Node) -> Option<Node> {
        if self.is_empty() {
            return None;
        }
        self.masked(node, MAX_DEPTH)
    }

    fn masked(&self, node: &Node, depth: usize) -> Option<Node> {
        let value = match &node.value {
            Value::Scalar(scalar) => {
                let mut scalar = scalar.clone();
                scalar.text = self.scalar_text(&scalar.text, scalar.tag)?;
                if !matches!(scalar.tag, Tag::Str | Tag::Binary) {
                    scalar.style = Style::Plain;
                }
                scalar.tag = Tag::Str;
                Value::Scalar(scalar)
            }
            _ if depth == 0 => return Some(Node::string(HIDDEN)),
            Value::List(list) => {
                let mut copy = None;
                for (at, item) in list.iter().enumerate() {
                    if let Some(masked) = self.masked(item, depth - 1) {
                        let copy = copy.get_or_insert_with(|| list.clone());
                        copy.items_mut()[at] = masked;
                    }
                }
                Value::List(copy?)
            }
            Value::Map(map) => {
                let mut copy = None;
                for (at, Entry { key, value }) in map.iter().enumerate() {
                    let shown = self.scalar_text(&key.scalar.text, Tag::Str);
                    let masked = self.masked(value, depth - 1);
                    if shown.is_none() && masked.is_none() {
                        continue;
                    }
                    let entry = &mut copy.get_or_insert_with(|| map.clone()).entries_mut()[at];
                    if let Some(shown) = shown {
                        entry.key.scalar.text = shown;
                    }
                    if let Some(masked) = masked {
                        entry.value = masked;
                    }
                }
                Value::Map(copy?)
            }
        };
        Some(Node { value, at: node.at })
    }

    fn scalar_text(&self, text: &Text, tag: Tag) -> Option<Text> {
        match (self.ranges(text).as_slice(), tag) {
            ([], _) => None,
            (ranges, Tag::Str) => Some(Text::from(replace(text, ranges))),
            // Half of a number is no text, and all of base64 may be one.
            _ => Some(Text::from_static(HIDDEN)),
        }
    }

    /// Where secrets stand in a text, in order and apart from each other.
    fn ranges(&self, text: &str) -> Vec<Range> {
        let Some(searcher) = &self.searcher else {
            return Vec::new();
        };
        let mut ranges = Vec::new();
        self.search(searcher, text.as_bytes(), &mut |start, end| {
            ranges.push((start, end));
        });
        let mut levels: Vec<Unescaped> = Vec::new();
        for level in 0..MAX_ESCAPES {
            let source = levels.last().map_or(text.as_bytes(), |last| &last.bytes);
            let is_broken = level == 0 && self.has_blanks && has_line_break(source);
            if !is_broken && !has_escapes(source) {
                break;
            }
            levels.push(Unescaped::of(source));
            let Some(last) = levels.last() else { break };
            self.search(searcher, &last.bytes, &mut |start, end| {
                let lead_back =
                    |range: Range, level: &Unescaped| level.source_range(range.0, range.1);
                ranges.push(levels.iter().rev().fold((start, end), lead_back));
            });
        }
        merged(ranges, text)
    }

    fn search(&self, searcher: &AhoCorasick, text: &[u8], found: &mut dyn FnMut(usize, usize)) {
        let mut from = 0;
        while let Some(hit) = searcher.find(Input::new(text).range(from..)) {
            match self.end_of(text, hit.pattern().as_usize(), hit.start(), hit.end()) {
                Some(end) => {
                    found(hit.start(), end);
                    from = end;
                }
                None => from = hit.start() + 1,
            }
        }
    }

    /// Where a text that begins like a needle ends; `None` if it is not one.
    fn end_of(&self, text: &[u8], needle: usize, start: usize, end: usize) -> Option<usize> {
        let needle = self.needles.get(needle)?;
        let seen = &text[start..end];
        let is_recased = || {
            let has = |is: fn(&u8) -> bool| seen.iter().any(is);
            !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
        };
        // All in capitals, say, is made of the secret; any other mix of cases is another text.
        if seen != needle.head && (needle.reach == Reach::Word || !is_recased()) {
            return None;
        }
        let common = |rest: &Vec<u8>| {
            let pairs = rest.iter().zip(&text[end..]);
            pairs
                .take_while(|(one, other)| one.eq_ignore_ascii_case(other))
                .count()
        };
        let end = end + needle.rests.iter().map(common).max().unwrap_or(0);
        let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let is_word = || !is_part(text[..start].last()) && !is_part(text.get(end));
        (needle.reach == Reach::Anywhere || is_word()).then_some(end)
    }
}

fn has_line_break(text: &[u8]) -> bool {
    text.contains(&b'\n')
}

/// Ranges in order; those that touch are one, and none begins or ends inside of a letter.
fn merged(mut ranges: Vec<Range>, text: &str) -> Vec<Range> {
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (start, end) in ranges {
        let start = text.floor_char_boundary(start);
        let end = text.ceil_char_boundary(end);
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// The text with [`HIDDEN`] in place of each range. In JSON it stands in quotes where no quotes are around it.
fn replace(text: &str, ranges: &[Range]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut quotes = Quotes::default();
    let mut from = 0;
    for (start, end) in ranges {
        // A number is hidden to its end, with whatever else was found in it.
        if *end <= from {
            continue;
        }
        let (mut start, mut end) = ((*start).max(from), *end);
        start -= quotes
            .passed(&text[from..start])
            .escape_length()
            .min(start - from);
        let before = quotes.passed(&text[from..start]);
        end = end_of_escape(text, before, start, end);
        let after = before.passed(&text[start..end]);
        let has_quotes = text[start..end].contains('"');
        if !before.is_inside && !has_quotes && is_bare_value(text, start, end) {
            (start, end) = whole_value(text, from, start, end);
            shown.push_str(&text[from..start]);
            shown.push('"');
            shown.push_str(HIDDEN);
            shown.push('"');
        } else {
            shown.push_str(&text[from..start]);
            let opens = !before.is_inside && has_quotes;
            let closes = !after.is_inside && has_quotes;
            shown.push_str(if opens { "\"" } else { "" });
            shown.push_str(HIDDEN);
            shown.push_str(if closes { "\"" } else { "" });
        }
        quotes = quotes.passed(&text[from..end]);
        from = end;
    }
    shown.push_str(&text[from..]);
    shown
}

/// Whether a place in JSON text is between quotes. A text of JSON never goes over a line's end.
#[derive(Debug, Clone, Copy, Default)]
struct Quotes {
    is_inside: bool,
    is_escaped: bool,
    /// How many digits of a `\u` escape are to come.
    digits: usize,
}

impl Quotes {
    /// How many bytes of an escape that is not at its end were passed.
    fn escape_length(self) -> usize {
        match (self.is_escaped, self.digits) {
            (true, _) => 1,
            (false, 0) => 0,
            (false, digits) => 6 - digits,
        }
    }

    fn passed(mut self, text: &str) -> Self {
        self.pass(text);
        self
    }

    fn pass(&mut self, text: &str) {
        for byte in text.bytes() {
            if !byte.is_ascii_hexdigit() {
                self.digits = 0;
            }
            match byte {
                b'\n' => *self = Self::default(),
                _ if self.is_escaped => {
                    self.is_escaped = false;
                    self.digits = if byte == b'u' { 4 } else { 0 };
                }
                _ if self.digits > 0 && byte.is_ascii_hexdigit() => self.digits -= 1,
                b'\\' => self.is_escaped = self.is_inside,
                b'"' => self.is_inside = !self.is_inside,
                _ => {}
            }
        }
    }
}

/// The end of the escape that a range ends in; half of one would not be JSON.
fn end_of_escape(text: &str, before: Quotes, start: usize, end: usize) -> usize {
    let mut quotes = before.passed(&text[start..end]);
    let mut end = end;
    for letter in text[end..].chars() {
        if quotes.escape_length() == 0 {
            break;
        }
        quotes.pass(letter.encode_utf8(&mut [0; 4]));
        end += letter.len_utf8();
    }
    end
}

/// Whether a range is, or is part of, a number that stands for itself as a value in JSON.
fn is_bare_value(text: &str, start: usize, end: usize) -> bool {
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let before =
        text[..start].trim_end_matches(|letter: char| letter.is_ascii() && is_number(letter as u8));
    let after =
        text[end..].trim_start_matches(|letter: char| letter.is_ascii() && is_number(letter as u8));
    let after = after.trim_start_matches([' ', '\t', '\r']);
    text[start..end].bytes().all(is_number)
        && before.trim_end().ends_with([':', '[', ','])
        && (after.is_empty() || after.starts_with([',', ']', '}', '\n']))
}

fn whole_value(text: &str, from: usize, start: usize, end: usize) -> Range {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let bytes = text.as_bytes();
    let before = bytes[from..start]
        .iter()
        .rev()
        .take_while(|byte| is_number(byte));
    let after = bytes[end..].iter().take_while(|byte| is_number(byte));
    (start - before.count(), end + after.count())
}

#[cfg(test)]
mod tests;
