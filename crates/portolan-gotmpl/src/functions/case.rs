//! Converts words to other spellings: `camelcase`, `snakecase`, `kebabcase`, `title`, `swapcase`, `initials`.
//!
//! Sprig uses three libraries for these, and each defines a word differently. Each is reproduced as it is.

use crate::function::{Args, Ctx, FuncError};
use crate::functions::letters::{
    is_digit, is_letter, is_lower, is_number, is_punct, is_title, is_upper, lower,
    title as title_case, upper,
};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// The first letter of every word in title case; words end at anything but letters, digits and `_`.
pub(super) fn title(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let separates = |c: char| match c {
        _ if c.is_ascii() => !c.is_ascii_alphanumeric() && c != '_',
        _ => !is_letter(c) && !is_digit(c) && c.is_whitespace(),
    };
    Ok(map_first(&args.characters(0), separates, title_case).into())
}

/// The first letter of every word in lower case; words end at white space.
pub(super) fn untitle(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut at_start = true;
    let mapped: String = args
        .characters(0)
        .chars()
        .map(|c| match c {
            _ if c.is_whitespace() => {
                at_start = true;
                c
            }
            _ if std::mem::take(&mut at_start) => lower(c),
            _ => c,
        })
        .collect();
    Ok(mapped.into())
}

/// Maps every character that follows a separator or stands first.
fn map_first(text: &str, separates: impl Fn(char) -> bool, map: fn(char) -> char) -> String {
    let mut previous = ' ';
    text.chars()
        .map(|c| {
            if separates(std::mem::replace(&mut previous, c)) {
                map(c)
            } else {
                c
            }
        })
        .collect()
}

/// Upper for lower and the other way round; at the start of a word lower becomes title case.
pub(super) fn swapcase(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut at_start = true;
    let swap = |c: char| {
        if is_upper(c) || is_title(c) {
            at_start = false;
            lower(c)
        } else if is_lower(c) {
            if std::mem::take(&mut at_start) {
                title_case(c)
            } else {
                upper(c)
            }
        } else {
            at_start = c.is_whitespace();
            c
        }
    };
    Ok(args
        .characters(0)
        .chars()
        .map(swap)
        .collect::<String>()
        .into())
}

/// The first byte of every word; the original takes bytes for characters.
pub(super) fn initials(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut after_gap = true;
    let initials: String = args
        .bytes(0)
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|c| {
            let gap = c.is_whitespace();
            let first = !gap && after_gap;
            after_gap = gap;
            first
        })
        .collect();
    Ok(initials.into())
}

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || character.is_whitespace()
}

pub(super) fn camelcase(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(pascal(&args.characters(0)).into())
}

/// Words joined with a capital each. Leading connectors stay, of several in a row all but one, and capitals that
/// follow a capital at a word's start become small.
fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    let mut current = None;
    for first in characters.by_ref() {
        if !is_connector(first) {
            current = Some((upper(first), is_upper(first)));
            break;
        }
        out.push(first);
        current = None;
    }
    let Some((mut pending, mut in_capitals)) = current else {
        // A text of connectors alone loses nothing and gains its last one again.
        out.extend(text.chars().last());
        return out;
    };
    for mut next in characters {
        match (is_connector(pending), is_connector(next)) {
            (true, true) => out.push(pending),
            (true, false) => {
                in_capitals = is_upper(next);
                next = upper(next);
            }
            (false, _) => {
                out.push(pending);
                if in_capitals && is_upper(next) {
                    next = lower(next);
                } else {
                    in_capitals = false;
                }
            }
        }
        pending = next;
    }
    out.push(pending);
    out
}

pub(super) fn snakecase(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(connected(&args.str(0), '_').into())
}

pub(super) fn kebabcase(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(connected(&args.str(0), '-').into())
}

/// What a run of characters is, for [`connected`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    End,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// Small words with a connector between them. Digits belong to the word before them unless letters follow.
fn connected(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_lower(&mut out, kind, word, connector);
        }
        let (previous, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::End | Word::Punctuation | Word::Connector) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, previous, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let digits = word;
                (kind, word, rest) = next_word(rest);
                if kind != Word::Alphabet {
                    push_lower(&mut out, Word::Number, digits, connector);
                    if !matches!(kind, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                push_lower(&mut out, Word::Number, digits, connector);
                while matches!(kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::End | Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
        }
    }
    push_lower(&mut out, kind, word, connector);
    out
}

/// A letter of an alphabet, which Chinese characters are not.
fn is_alphabet(character: char) -> bool {
    is_letter(character)
        && !matches!(character, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

/// The first run of characters of a kind, and the rest.
fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else {
        return (Word::End, "", "");
    };
    let small = |c: char| is_alphabet(c) && !is_upper(c);
    let (kind, end) = if is_connector(first) {
        (Word::Connector, run(text, is_connector))
    } else if is_punct(first) {
        (Word::Punctuation, run(text, is_punct))
    } else if is_upper(first) {
        (Word::Upper, upper_run(text, first.len_utf8(), small))
    } else if is_alphabet(first) {
        (Word::Alphabet, run(text, small))
    } else if is_number(first) {
        (Word::Number, run(text, is_number))
    } else {
        let other = |c| !(is_connector(c) || is_alphabet(c) || is_number(c) || is_punct(c));
        (Word::Other, run(text, other))
    };
    let (word, rest) = text.split_at(end);
    (kind, word, rest)
}

/// Where a run of characters ends; the first belongs to it in any case.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.char_indices()
        .skip(1)
        .find(|(_, c)| !belongs(*c))
        .map_or(text.len(), |(at, _)| at)
}

/// `Word`, `ABC`, or `AB` of `ABCd`: the last capital before a small letter begins the next word.
fn upper_run(text: &str, first: usize, small: impl Fn(char) -> bool) -> usize {
    let capitals = run(text, is_upper);
    let Some(next) = text[capitals..].chars().next() else {
        return capitals;
    };
    if capitals == first {
        return if small(next) {
            first + run(&text[first..], small)
        } else {
            first
        };
    }
    if !is_alphabet(next) {
        return capitals;
    }
    let last = text[..capitals]
        .chars()
        .next_back()
        .map_or(0, char::len_utf8);
    capitals - last
}

fn push_lower(out: &mut String, kind: Word, word: &str, connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        out.push_str(word);
        return;
    }
    out.extend(word.chars().map(|c| match c {
        _ if is_connector(c) => connector,
        _ if is_upper(c) => lower(c),
        _ => c,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_as_the_original_finds_them() {
        assert_eq!(pascal("HTTPServer"), "Httpserver");
        assert_eq!(pascal("_complex__case_"), "_Complex_Case_");
        assert_eq!(pascal("___"), "____");
        assert_eq!(connected("HTTPServer", '_'), "http_server");
        assert_eq!(connected("FirstName2Go", '_'), "first_name2_go");
        assert_eq!(connected("http2xx", '-'), "http-2xx");
    }
}
