//! The `format` keyword: what a text must look like, and what is wrong with one that does not.
//!
//! Unknown formats accept every text.

mod address;
mod time;

use portolan_gotmpl::fmt;
use portolan_gotmpl::functions::GoRegex;

/// Checks a text; the error says what is wrong.
pub(super) fn check(format: &str, text: &str) -> Result<(), String> {
    match format {
        "regex" => GoRegex::new(text).map(|_| ()),
        "json-pointer" => json_pointer(text),
        "relative-json-pointer" => relative_json_pointer(text),
        "uuid" => uuid(text),
        "semver" => semver(text),
        "duration" => time::duration(text),
        "period" => time::period(text),
        "date" => time::date(text),
        "time" => time::clock(text),
        "date-time" => time::date_time(text),
        "ipv4" => address::ipv4(text),
        "ipv6" => address::ipv6(text),
        "hostname" => address::hostname(text),
        "email" => address::email(text),
        "uri" | "iri" => address::uri(text),
        "uri-reference" | "iri-reference" => address::uri_reference(text),
        "uri-template" => address::uri_template(text),
        _ => Ok(()),
    }
}

/// A text in quotes, as Go prints it.
fn quoted(text: &str) -> String {
    fmt::quote(text.as_bytes(), false)
}

/// A character in quotes, as Go prints it.
fn quoted_char(letter: char) -> String {
    fmt::quote_rune(letter, false)
}

/// What is wrong, as an error.
fn wrong<T>(what: impl Into<String>) -> Result<T, String> {
    Err(what.into())
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { wrong(what) }
}

/// How many ASCII digits a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn json_pointer(text: &str) -> Result<(), String> {
    const BAD_ESCAPE: &str = "~ must be followed by 0 or 1";
    if text.is_empty() {
        return Ok(());
    }
    ensure(text.starts_with('/'), "not starting with /")?;
    for part in text.split('/') {
        let mut after = part.split('~').skip(1);
        ensure(after.all(|rest| rest.starts_with(['0', '1'])), BAD_ESCAPE)?;
    }
    Ok(())
}

fn relative_json_pointer(text: &str) -> Result<(), String> {
    let count = digits(text);
    ensure(count > 0, "must start with non-negative integer")?;
    ensure(count == 1 || !text.starts_with('0'), "starts with zero")?;
    match text.get(count..).unwrap_or_default() {
        "#" => Ok(()),
        rest => json_pointer(rest),
    }
}

fn uuid(text: &str) -> Result<(), String> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<_> = text.split('-').collect();
    ensure(groups.len() == LENGTHS.len(), "must have 5 elements")?;
    for (index, (group, length)) in groups.iter().zip(LENGTHS).enumerate() {
        if group.len() != length {
            let place = index + 1;
            return wrong(format!("element {place} must be {length} characters long"));
        }
        if let Some(letter) = group.chars().find(|letter| !letter.is_ascii_hexdigit()) {
            return wrong(format!("non-hex character {}", quoted_char(letter)));
        }
    }
    Ok(())
}

fn semver(text: &str) -> Result<(), String> {
    let (text, build) = split(text, '+');
    if let Some(build) = build {
        ensure(!build.is_empty(), "build is empty")?;
        for part in build.split('.') {
            ensure(!part.is_empty(), "build identifier is empty")?;
            identifier(part, "build")?;
        }
    }
    let (core, pre_release) = split(text, '-');
    for part in pre_release.into_iter().flat_map(|text| text.split('.')) {
        ensure(!part.is_empty(), "pre-release identifier is empty")?;
        identifier(part, "pre-release")?;
        let numeric = digits(part) == part.len();
        ensure(
            !(numeric && part.len() > 1 && part.starts_with('0')),
            "pre-release numeric identifier starts with zero",
        )?;
    }
    let numbers: Vec<_> = core.split('.').collect();
    ensure(
        numbers.len() == 3,
        "versionCore must have 3 numbers separated by dot",
    )?;
    for (number, name) in numbers.into_iter().zip(["major", "minor", "patch"]) {
        ensure(!number.is_empty(), &format!("{name} is empty"))?;
        let leading_zero = number.len() > 1 && number.starts_with('0');
        ensure(!leading_zero, &format!("{name} starts with zero"))?;
        let numeric = digits(number) == number.len();
        ensure(numeric, &format!("{name} contains non-digit"))?;
    }
    Ok(())
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn identifier(part: &str, kind: &str) -> Result<(), String> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    match part.chars().find(|letter| !legal(*letter)) {
        Some(letter) => {
            let letter = quoted_char(letter);
            wrong(format!("invalid character {letter} in {kind} identifier"))
        }
        None => Ok(()),
    }
}
