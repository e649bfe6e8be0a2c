//! Trim patterns: `*`, `?`, `[…]` and `\c`, matched against the start of a value.
//!
//! Matching works on bytes and decodes characters when needed, because Flux tries every prefix of a value, also those
//! that end inside a character.

use crate::error::ErrorKind;
use crate::expand::Work;

/// The pattern is not a pattern; the value stays whole.
pub(crate) struct BadPattern;

/// Whether all of `name` matches.
pub(crate) fn matches(
    mut pattern: &[u8],
    mut name: &[u8],
    work: &mut Work,
) -> Result<Result<bool, BadPattern>, ErrorKind> {
    while !pattern.is_empty() {
        work.spend(1 + name.len())?;
        let (star, chunk, rest) = next_chunk(pattern);
        if star && chunk.is_empty() {
            return Ok(Ok(true));
        }
        let skips = if star { name.len() } else { 0 };
        let mut after = None;
        for skip in 0..=skips {
            work.spend(1)?;
            match match_chunk(chunk, &name[skip..]) {
                Err(bad) => return Ok(Err(bad)),
                Ok(Some(tail)) if tail.is_empty() || !rest.is_empty() => {
                    after = Some(tail);
                    break;
                }
                Ok(_) => {}
            }
        }
        let Some(tail) = after else {
            return Ok(Ok(false));
        };
        name = tail;
        pattern = rest;
    }
    Ok(Ok(name.is_empty()))
}

/// Splits off stars and what follows them up to the next star.
fn next_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    let pattern = &pattern[stars..];
    let mut in_class = false;
    let mut at = 0;
    while at < pattern.len() {
        match pattern[at] {
            b'\\' if at + 1 < pattern.len() => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'*' if !in_class => break,
            _ => {}
        }
        at += 1;
    }
    (stars > 0, &pattern[..at], &pattern[at..])
}

/// What remains of `name` after a chunk without stars matched its start.
fn match_chunk<'n>(mut chunk: &[u8], mut name: &'n [u8]) -> Result<Option<&'n [u8]>, BadPattern> {
    while let [first, chunk_rest @ ..] = chunk {
        let Some((&byte, name_rest)) = name.split_first() else {
            return Ok(None);
        };
        match first {
            b'[' => {
                let (character, width) = decode(name);
                let (matched, rest) = match_class(chunk_rest, character)?;
                if !matched {
                    return Ok(None);
                }
                (chunk, name) = (rest, &name[width..]);
            }
            b'?' => (chunk, name) = (chunk_rest, &name[decode(name).1..]),
            b'\\' => {
                let (escaped, rest) = chunk_rest.split_first().ok_or(BadPattern)?;
                if *escaped != byte {
                    return Ok(None);
                }
                (chunk, name) = (rest, name_rest);
            }
            literal if *literal == byte => (chunk, name) = (chunk_rest, name_rest),
            _ => return Ok(None),
        }
    }
    Ok(Some(name))
}

/// Whether a character is in the class that follows `[`, and the pattern after its `]`.
fn match_class(mut class: &[u8], character: char) -> Result<(bool, &[u8]), BadPattern> {
    let negated = class.first() == Some(&b'^');
    if negated {
        class = &class[1..];
    }
    let mut found = false;
    let mut ranges = 0;
    loop {
        if ranges > 0
            && let [b']', rest @ ..] = class
        {
            return Ok((found != negated, rest));
        }
        let (low, rest) = class_character(class)?;
        let (high, rest) = match rest {
            [b'-', rest @ ..] => class_character(rest)?,
            _ => (low, rest),
        };
        found |= (low..=high).contains(&character);
        ranges += 1;
        class = rest;
    }
}

/// A character of a class, escaped or not; the class must go on after it.
fn class_character(class: &[u8]) -> Result<(char, &[u8]), BadPattern> {
    let class = match class {
        [] | [b'-' | b']', ..] => return Err(BadPattern),
        [b'\\', rest @ ..] => rest,
        _ => class,
    };
    let (character, width) = decode(class);
    let broken = class.is_empty() || (character == char::REPLACEMENT_CHARACTER && width == 1);
    if broken || class.len() == width {
        return Err(BadPattern);
    }
    Ok((character, &class[width..]))
}

/// The first character and its width; a broken one is one byte wide.
fn decode(bytes: &[u8]) -> (char, usize) {
    let window = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(window) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid
        .chars()
        .next()
        .map_or((char::REPLACEMENT_CHARACTER, bytes.len().min(1)), |c| {
            (c, c.len_utf8())
        })
}
