//! What a plain scalar means: null, boolean, number, time or text, by the rules of the two libraries.

use crate::Dialect;
use crate::value::binary;
use crate::value::node::{Scalar, Style, Tag};
use crate::value::number::{self, Number};
use crate::value::text::Text;
use crate::value::timestamp;

/// The prefix that `!!` stands for.
const LONG_PREFIX: &str = "tag:yaml.org,2002:";

/// The length of `false`, the longest word that is no text.
const LONGEST_WORD: usize = 5;

/// The type of a plain scalar without a tag.
#[inline]
pub(crate) fn plain(dialect: Dialect, text: &str) -> Tag {
    let Some(first) = text.as_bytes().first() else {
        return Tag::Null;
    };
    match first {
        b'~' if text.len() == 1 => Tag::Null,
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => word(dialect, text),
        b'0'..=b'9' if timestamp::parse(text).is_some() => Tag::Timestamp,
        b'0' if dialect == Dialect::Helm && number::is_octal_with_sign(text) => Tag::Str,
        b'0'..=b'9' | b'+' | b'-' | b'.' => numeric(text),
        _ => Tag::Str,
    }
}

fn word(dialect: Dialect, text: &str) -> Tag {
    match text {
        "null" | "Null" | "NULL" => Tag::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Tag::Bool,
        _ if dialect == Dialect::Helm && is_old_bool(text) => Tag::Bool,
        _ => Tag::Str,
    }
}

/// The booleans of YAML 1.1 that only v2 reads as such.
pub(crate) fn is_old_bool(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

fn numeric(text: &str) -> Tag {
    match number::parse(text) {
        Some(Number::Float(_)) => Tag::Float,
        Some(_) => Tag::Int,
        None => Tag::Str,
    }
}

/// The type of a scalar without a tag: what is in quotes or a block is text, and so are times in v2.
#[inline]
pub(crate) fn untagged(dialect: Dialect, text: &Text, style: Style) -> Tag {
    match text.as_bytes() {
        _ if style != Style::Plain => Tag::Str,
        [b'a'..=b'z' | b'A'..=b'Z', ..] if text.len() > LONGEST_WORD => Tag::Str,
        b"<<" => Tag::Merge,
        _ => match plain(dialect, text) {
            Tag::Timestamp if dialect == Dialect::Helm => Tag::Str,
            tag => tag,
        },
    }
}

/// The scalar that v2 makes of a text: dates are text, `!!binary` is decoded, unknown tags are dropped.
#[inline]
pub(crate) fn helm(text: Text, style: Style, tag: Option<&str>) -> Result<Scalar, String> {
    let tag = match tag {
        None => untagged(Dialect::Helm, &text, style),
        Some("!") if text == "<<" => Tag::Merge,
        Some(tag) => match tag.strip_prefix(LONG_PREFIX) {
            Some("binary") => return decode_binary(text, style),
            Some("merge") if text == "<<" => Tag::Merge,
            Some(name) => explicit(Dialect::Helm, name, &text)?,
            None => Tag::Str,
        },
    };
    Ok(Scalar { text, tag, style })
}

fn decode_binary(text: Text, style: Style) -> Result<Scalar, String> {
    let bytes = binary::decode(&text).ok_or("!!binary value contains invalid base64 data")?;
    let (text, tag) = match String::from_utf8(bytes) {
        Ok(decoded) => (decoded.into(), Tag::Str),
        Err(_) => (text, Tag::Binary),
    };
    Ok(Scalar { text, tag, style })
}

/// The scalar that v3 makes of a text: the tag is kept as written, whether or not the text fits it.
pub(crate) fn kustomize(text: Text, style: Style, tag: Option<&str>) -> Scalar {
    let tag = match tag {
        Some(tag) if tag != "!" => named(tag),
        _ => untagged(Dialect::Kustomize, &text, style),
    };
    Scalar { text, tag, style }
}

/// A tag with `!!` in place of YAML's own prefix.
pub(crate) fn shorten(tag: &str) -> String {
    match tag.strip_prefix(LONG_PREFIX) {
        Some(name) => format!("!!{name}"),
        None => tag.to_owned(),
    }
}

fn named(tag: &str) -> Tag {
    let Some(name) = tag.strip_prefix(LONG_PREFIX) else {
        return Tag::Other;
    };
    match name {
        "null" => Tag::Null,
        "bool" => Tag::Bool,
        "int" => Tag::Int,
        "float" => Tag::Float,
        "str" => Tag::Str,
        "timestamp" => Tag::Timestamp,
        "binary" => Tag::Binary,
        "merge" => Tag::Merge,
        _ => Tag::Other,
    }
}

/// The type of a scalar with one of YAML's own tags, which its text must fit.
pub(crate) fn explicit(dialect: Dialect, name: &str, text: &str) -> Result<Tag, String> {
    let wanted = match name {
        "null" => Tag::Null,
        "bool" => Tag::Bool,
        "int" => Tag::Int,
        "float" => Tag::Float,
        "timestamp" => Tag::Timestamp,
        _ => return Ok(Tag::Str),
    };
    let found = match plain(dialect, text) {
        Tag::Timestamp if wanted != Tag::Timestamp => numeric(text),
        found => found,
    };
    let whole = matches!(number::parse(text), Some(Number::Int(_)));
    if found == wanted && wanted == Tag::Timestamp {
        // v2 keeps times as text.
        return Ok(Tag::Str);
    }
    if found == wanted || wanted == Tag::Float && found == Tag::Int && whole {
        return Ok(wanted);
    }
    let found = short_name(found);
    Err(format!("cannot decode {found} `{text}` as a !!{name}"))
}

/// A tag as it is written: `!!int`.
pub(crate) fn short_name(tag: Tag) -> &'static str {
    match tag {
        Tag::Null => "!!null",
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Str | Tag::Other => "!!str",
        Tag::Timestamp => "!!timestamp",
        Tag::Binary => "!!binary",
        Tag::Merge => "!!merge",
    }
}
