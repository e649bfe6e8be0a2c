//! Long lines: `wrap`, `wrapWith`, `abbrev`, `abbrevboth`. Widths count bytes.

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn wrap(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.check_text(args.bytes(1).len().saturating_mul(2))?;
    Ok(wrapped(args.bytes(1), args.int(0), b"\n", LongWords::Stay))
}

pub(super) fn wrap_with(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let separator = match args.bytes(1) {
        b"" => b"\n",
        separator => separator,
    };
    let text = args.bytes(2);
    ctx.check_text(wrapped_size(text, args.int(0), separator))?;
    Ok(wrapped(text, args.int(0), separator, LongWords::Break))
}

/// How long a text is at most once it is broken: no part but those before a space is shorter than the width.
fn wrapped_size(text: &[u8], width: i64, separator: &[u8]) -> usize {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let spaces = text.iter().filter(|byte| **byte == b' ').count();
    let breaks = (text.len() / width + spaces).min(text.len());
    text.len()
        .saturating_add(breaks.saturating_mul(separator.len()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LongWords {
    Stay,
    Break,
}

/// Breaks a line at spaces so that its parts fit a width, where they can.
fn wrapped(text: &[u8], width: i64, separator: &[u8], long_words: LongWords) -> Value {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut out = Vec::with_capacity(text.len() + text.len() / width * separator.len());
    let mut rest = text;
    while rest.len() > width {
        if let Some(stripped) = rest.strip_prefix(b" ") {
            rest = stripped;
            continue;
        }
        let space_before = rest[..=width].iter().rposition(|byte| *byte == b' ');
        let (line, skip) = match space_before {
            Some(space) => (space, 1),
            None if long_words == LongWords::Break => (width, 0),
            None => match rest[width..].iter().position(|byte| *byte == b' ') {
                Some(space) => (width + space, 1),
                None => break,
            },
        };
        out.extend_from_slice(&rest[..line]);
        out.extend_from_slice(separator);
        rest = &rest[line + skip..];
    }
    out.extend_from_slice(rest);
    Value::str_from_bytes(&out)
}

pub(super) fn abbrev(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (width, text) = (args.int(0), args.bytes(1));
    if width < 4 {
        return Ok(args.get(1).clone());
    }
    Ok(Value::str_from_bytes(&abbreviated(text, 0, width as usize)))
}

pub(super) fn abbrevboth(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (left, right, text) = (args.int(0), args.int(1), args.bytes(2));
    if right < 4 || left > 0 && right < 7 {
        return Ok(args.get(2).clone());
    }
    let offset = left.clamp(i64::MIN, text.len() as i64);
    Ok(Value::str_from_bytes(&abbreviated(
        text,
        offset,
        right as usize,
    )))
}

/// At most `width` bytes of a text around an offset, with `...` where something is missing.
fn abbreviated(text: &[u8], offset: i64, width: usize) -> Vec<u8> {
    const MARK: &[u8] = b"...";
    if text.len() <= width {
        return text.to_vec();
    }
    let shown = width - MARK.len();
    let last = text.len() - shown;
    let offset = usize::try_from(offset).unwrap_or(0).min(last);
    if offset <= 4 {
        return [&text[..shown], MARK].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + shown < text.len() {
        return [MARK, &abbreviated(&text[offset..], 0, shown)].concat();
    }
    [MARK, &text[last..]].concat()
}
