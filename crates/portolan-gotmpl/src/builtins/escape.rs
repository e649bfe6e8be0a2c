//! Escapes texts for HTML, JavaScript and URLs.

#![expect(clippy::unnecessary_wraps, reason = "a function of the table may fail")]

use std::fmt::Write;

use super::Answer;
use crate::fmt::{display, is_print, raw, sprint};
use crate::function::{Args, Ctx};
use crate::value::Value;

/// The arguments as one text; what is missing prints as in an action.
fn joined(args: Args<'_>) -> Value {
    let printable: Vec<Value> = args
        .all()
        .iter()
        .map(|value| {
            if value.is_nil() {
                Value::str(crate::exec::NO_VALUE)
            } else {
                value.clone()
            }
        })
        .collect();
    sprint(&printable)
}

pub(super) fn html(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let joined = joined(args);
    let text = raw::mark(joined.as_bytes().unwrap_or_default());
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\0' => out.push('\u{FFFD}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    Ok(raw::value(out))
}

pub(super) fn js(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let text = display(&joined(args));
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let code = u32::from(character);
        match character {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' | '\0'..='\x1f' => {
                let _ = write!(out, "\\u{code:04X}");
            }
            _ if character.is_ascii() || is_print(character) => out.push(character),
            _ => {
                let _ = write!(out, "\\u{code:04X}");
            }
        }
    }
    Ok(Value::str(out))
}

pub(super) fn urlquery(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let text = joined(args);
    let mut out = String::new();
    for &byte in text.as_bytes().unwrap_or_default() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte.into());
            }
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    Ok(Value::str(out))
}
