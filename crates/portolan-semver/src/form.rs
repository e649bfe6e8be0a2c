//! The syntax of a version in a text: numbers, `-` and words, `+` and words.
//!
//! The original uses regular expressions. The text after a part can never belong to that part, so greedy reading
//! without backtracking finds the same, and no expression has to be compiled at program start.

/// A version as it stands in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'t> {
    /// All of it, a `v` in front included.
    pub(crate) whole: &'t str,
    /// The numbers; empty where one is not given.
    pub(crate) numbers: [&'t str; 3],
    /// What follows `-`; empty for none.
    pub(crate) prerelease: &'t str,
    /// What follows `+`; empty for none.
    pub(crate) metadata: &'t str,
}

/// Reads a version at the beginning of a text and returns it with what follows.
pub(crate) fn read(text: &str, is_digit: fn(u8) -> bool) -> Option<(Form<'_>, &str)> {
    let unprefixed = text.strip_prefix('v').unwrap_or(text);
    let (major, mut rest) = run(unprefixed, is_digit)?;
    let mut numbers = [major, "", ""];
    for number in &mut numbers[1..] {
        if let Some((digits, after)) = rest.strip_prefix('.').and_then(|rest| run(rest, is_digit)) {
            (*number, rest) = (digits, after);
        }
    }
    let mut prerelease = "";
    if let Some((found, after)) = rest.strip_prefix('-').and_then(words) {
        (prerelease, rest) = (found, after);
    }
    let mut metadata = "";
    if let Some((found, after)) = rest.strip_prefix('+').and_then(words) {
        (metadata, rest) = (found, after);
    }
    let whole = &text[..text.len() - rest.len()];
    let form = Form {
        whole,
        numbers,
        prerelease,
        metadata,
    };
    Some((form, rest))
}

/// One or more letters of a kind, and what follows.
fn run(text: &str, is_wanted: fn(u8) -> bool) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(|byte| is_wanted(*byte)).count();
    (length > 0).then(|| text.split_at(length))
}

/// Words with points between them.
fn words(text: &str) -> Option<(&str, &str)> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let (_, mut rest) = run(text, is_letter)?;
    while let Some((_, after)) = rest.strip_prefix('.').and_then(|rest| run(rest, is_letter)) {
        rest = after;
    }
    Some(text.split_at(text.len() - rest.len()))
}
