//! The texts to search for: which parts of a secret reveal something wherever they occur, and in which other forms
//! they may be written.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::HIDDEN;
use crate::escape::{MAX_ESCAPES, Unescaped, has_escapes, with_single_spaces};

/// Where a text must stand to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Between letters and digits it is chance: it must be a word of its own.
    Word,
    /// Wherever it stands.
    Anywhere,
}

/// Shorter texts are in everything.
const SHORTEST: usize = 4;

/// From this length on a text is not found by chance inside of another.
const LONG: usize = 8;

/// The same for texts of letters and digits mixed.
const LONG_IF_MIXED: usize = 6;

/// Numbers up to this length are ports, sizes and times far oftener than secrets.
const LONGEST_PLAIN_NUMBER: usize = 5;

/// Plain words up to this length (`postgres`, `monitoring`) are names far oftener than secrets.
const LONGEST_WORD: usize = 11;

/// Where a value under a key is looked for; `None` if it would be found by chance.
pub(crate) fn reach(value: &str, key: &str) -> Option<Reach> {
    let letters = value.chars().count();
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = value.parse::<f64>().is_ok();
    let says_nothing = matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "none" | "disabled" | "enabled"
    );
    if letters < SHORTEST
        || says_nothing
        || HIDDEN.contains(value)
        || (is_number && letters <= LONGEST_PLAIN_NUMBER)
        || (is_word && letters <= LONGEST_WORD && !names_secret(key))
    {
        return None;
    }
    let is_short_word = is_word && letters <= LONGEST_WORD;
    let is_long = letters >= LONG || (letters >= LONG_IF_MIXED && is_mixed(value));
    Some(if is_long && !is_short_word {
        Reach::Anywhere
    } else {
        Reach::Word
    })
}

/// Whether a key says that its value is secret.
pub(crate) fn names_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["pass", "pwd", "secret", "token", "key", "cred", "auth"]
        .iter()
        .any(|word| key.contains(word))
}

/// Letters and digits, and not a version or an address.
fn is_mixed(value: &str) -> bool {
    let letters = value.chars().filter(|letter| letter.is_alphabetic());
    let digits = value.chars().filter(char::is_ascii_digit);
    letters.count() > 1 && digits.count() > 0
}

/// A value and all that it may be written as, escapes apart.
pub(crate) fn forms(value: &str, reach: Reach) -> Vec<(String, Reach)> {
    let mut forms = vec![(value.to_owned(), reach)];
    let spaced = with_single_spaces(value);
    if spaced.contains(' ') {
        // In the query of an address.
        forms.push((spaced.replace(' ', "+"), reach));
        forms.push((spaced, reach));
    }
    forms.extend(unescaped(value).into_iter().map(|form| (form, reach)));
    let encoded = STANDARD.encode(value);
    if encoded.len() >= LONG {
        forms.push((encoded, reach));
    }
    for inner in inner_base64(value.as_bytes()) {
        let is_telling = inner.len() >= LONG;
        if is_telling && inner.contains(['+', '/']) {
            let safe = inner.replace('+', "-").replace('/', "_");
            forms.push((safe, Reach::Anywhere));
        }
        if is_telling {
            forms.push((inner, Reach::Anywhere));
        }
    }
    forms
}

/// What becomes of a value that itself looks escaped, such as `100%41`, when a text is unescaped with it in it.
fn unescaped(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    for _ in 0..MAX_ESCAPES {
        let source = forms.last().map_or(value, String::as_str).as_bytes();
        if !has_escapes(source) {
            break;
        }
        match String::from_utf8(Unescaped::of(source).bytes) {
            Ok(form) => forms.push(form),
            Err(_) => break,
        }
    }
    forms.retain(|form| form.trim().chars().count() >= SHORTEST);
    forms
}

/// What bytes look like in the base64 of a text that contains them, at each of the three ways they can fall. The
/// letters that depend on what stands before and after are left out.
fn inner_base64(bytes: &[u8]) -> [String; 3] {
    [0, 1, 2].map(|shift: usize| {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(bytes);
        let encoded = STANDARD.encode(&padded);
        let start = (shift * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        encoded.get(start..end).unwrap_or_default().to_owned()
    })
}

/// The bytes of base64 in any of its usual spellings; line breaks in it do not count.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let compact: String = text.split_ascii_whitespace().collect();
    STANDARD
        .decode(&compact)
        .or_else(|_| URL_SAFE.decode(&compact))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_by_chance_is_not_looked_for() {
        for value in [
            "",
            "1",
            "8080",
            "true",
            "abc",
            "postgres",
            "monitoring",
            "hidden",
        ] {
            assert_eq!(reach(value, "name"), None, "{value}");
        }
    }

    #[test]
    fn short_values_and_words_under_a_telling_key_count_as_words() {
        assert_eq!(reach("PLANT", "p"), Some(Reach::Word));
        assert_eq!(reach("1.2.34", "p"), Some(Reach::Word));
        assert_eq!(reach("swordfish", "adminPassword"), Some(Reach::Word));
        assert_eq!(reach("123456", "pin"), Some(Reach::Word));
    }

    #[test]
    fn long_and_mixed_values_count_everywhere() {
        for value in ["hunter2", "correct horse", "12345678", "app.example.org"] {
            assert_eq!(reach(value, ""), Some(Reach::Anywhere), "{value}");
        }
    }
}
