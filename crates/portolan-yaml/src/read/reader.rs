//! Turns bytes into text: encodings, byte order marks, and the characters that YAML does not allow.
//!
//! Go reads in blocks of 512 bytes and reports a bad character when its block is needed, so a document that ends well
//! before is still read. Therefore a [`Source`] holds the good part and the error about the rest.

use std::sync::Arc;

use crate::error::Error;
use crate::limits::MAX_INPUT_BYTES;
use crate::read::cursor::Cursor;
use crate::value::node::Position;
use crate::value::text::Text;

/// How much Go reads at once.
const BLOCK: usize = 512;

/// A text that only holds allowed characters, up to where its first bad one is noticed.
pub(crate) struct Source {
    /// The allowed text, from after its byte order mark on.
    pub text: Arc<str>,
    /// Where scanning begins: after a byte order mark.
    pub start: usize,
    /// Where it ends: before the block with the first bad character.
    pub end: usize,
    /// What is wrong after the end.
    pub bad: Option<Error>,
}

impl Source {
    /// Takes a text where it is, or a copy of one that needs a closer look.
    pub(crate) fn of(text: Text) -> Result<Self, Error> {
        match Self::from_part(&text) {
            Some(source) => Ok(source),
            None => Self::from_text(text.into_shared()),
        }
    }

    /// Takes a text that is known to be UTF-8.
    pub(crate) fn from_text(text: Arc<str>) -> Result<Self, Error> {
        check_size(text.len())?;
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let (end, bad) = match forbidden(text.as_bytes()) {
            Some(offset) => (
                block_start(&text, offset),
                Some(complaint(
                    &text,
                    offset,
                    "control characters are not allowed",
                )),
            ),
            None => (text.len(), None),
        };
        Ok(Self {
            start: start.min(end),
            text,
            end,
            bad,
        })
    }

    /// Takes a part of a shared text where it is; none when not all of it is allowed.
    pub(crate) fn from_part(part: &Text) -> Option<Self> {
        let (text, start, end) = part.place()?;
        let is_fine = part.len() <= MAX_INPUT_BYTES
            && !part.starts_with('\u{feff}')
            && forbidden(part.as_bytes()).is_none();
        is_fine.then_some(Self {
            text,
            start,
            end,
            bad: None,
        })
    }

    /// Takes bytes in any encoding YAML allows: UTF-8, or UTF-16 with a byte order mark.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        check_size(bytes.len())?;
        match bytes {
            [0xff, 0xfe, rest @ ..] => Self::from_utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => Self::from_utf16(rest, u16::from_be_bytes),
            _ => match std::str::from_utf8(bytes) {
                Ok(text) => Self::from_text(text.into()),
                Err(error) => {
                    let (good, rest) = bytes.split_at(error.valid_up_to());
                    let good = std::str::from_utf8(good).unwrap_or_default();
                    Self::cut_off(good, utf8_problem(rest))
                }
            },
        }
    }

    fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Self, Error> {
        let (pairs, odd) = bytes.as_chunks::<2>();
        let mut text = String::with_capacity(bytes.len());
        for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
            match decoded {
                Ok(character) => text.push(character),
                Err(error) if error.unpaired_surrogate() & 0xfc00 == 0xdc00 => {
                    return Self::cut_off(&text, "unexpected low surrogate area");
                }
                Err(_) => return Self::cut_off(&text, "expected low surrogate area"),
            }
        }
        match odd {
            [] => Self::from_text(text.into()),
            _ => Self::cut_off(&text, "incomplete UTF-16 character"),
        }
    }

    /// A text after which comes something that is no text.
    fn cut_off(good: &str, problem: &str) -> Result<Self, Error> {
        let mut source = Self::from_text(good.into())?;
        if source.bad.is_none() {
            source.bad = Some(complaint(good, good.len(), problem));
            source.end = block_start(good, good.len());
            source.start = source.start.min(source.end);
        }
        Ok(source)
    }
}

fn check_size(len: usize) -> Result<(), Error> {
    if len <= MAX_INPUT_BYTES {
        return Ok(());
    }
    let limit = MAX_INPUT_BYTES >> 20;
    Err(Error::new(
        Position::default(),
        format!("input is larger than {limit} MiB"),
    ))
}

/// The start of the block that holds an offset, moved to a character's start.
fn block_start(text: &str, offset: usize) -> usize {
    let mut start = offset / BLOCK * BLOCK;
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    start
}

/// The offset of the first character that YAML does not allow.
fn forbidden(bytes: &[u8]) -> Option<usize> {
    const CHUNK: usize = 64;
    let mut offset = 0;
    for chunk in bytes.chunks(CHUNK) {
        // One pass without branches over nearly all text; only chunks with a suspect byte are looked at closely.
        let suspect = chunk.iter().fold(0u8, |found, &byte| {
            let control = byte < 0x20 && byte != b'\n';
            let rare = byte == 0x7f || byte == 0xc2 || byte == 0xef;
            found | u8::from(control) | u8::from(rare)
        });
        if suspect != 0 {
            let bad = (offset..offset + chunk.len()).find(|&at| is_forbidden(&bytes[at..]));
            if bad.is_some() {
                return bad;
            }
        }
        offset += chunk.len();
    }
    None
}

fn is_forbidden(rest: &[u8]) -> bool {
    match *rest {
        [b'\t' | b'\n' | b'\r', ..] => false,
        [0..0x20 | 0x7f, ..] => true,
        [0xc2, second, ..] => second < 0xa0 && second != 0x85,
        [0xef, 0xbf, third, ..] => third >= 0xbe,
        _ => false,
    }
}

/// Go's words for the first bytes that are not UTF-8.
fn utf8_problem(rest: &[u8]) -> &'static str {
    let width = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let trailing = |byte: &u8| byte & 0xc0 == 0x80;
    let present = rest.iter().skip(1).take(width - 1);
    if !present.clone().all(trailing) {
        return "invalid trailing UTF-8 octet";
    }
    if present.count() < width - 1 {
        return "incomplete UTF-8 octet sequence";
    }
    match rest {
        [0xc0 | 0xc1, ..] | [0xe0, 0x80..=0x9f, ..] | [0xf0, 0x80..=0x8f, ..] => {
            "invalid length of a UTF-8 sequence"
        }
        _ => "invalid Unicode character",
    }
}

/// A problem at an offset; before it stand allowed characters only.
fn complaint(text: &str, offset: usize, problem: &str) -> Error {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let end = Cursor::new(text, start.min(offset), offset, 0).end();
    Error::new(end.position(), problem)
}
