//! The text in place of an unknown value: an encrypted value without its key, or data that only the cluster creates.
//!
//! A placeholder is a word of lower-case letters and digits. It is valid in a name, a host or a line of YAML, it
//! survives the usual changes of separators and case, and it is recognised wherever it ends up, so no check judges an
//! unknown value. Where a number is needed, the placeholder is a number with digits that no other number has.

use crate::canonical::Digest;

/// How every placeholder begins.
const WORD: &str = "placeholder";
/// How many hexadecimal digits follow, which tell placeholders apart.
const DIGITS: usize = 8;
/// How every placeholder begins in base64: the letters that the first ten bytes and a half of [`WORD`] give.
const ENCODED_WORD: &str = "cGxhY2Vob2xkZX";
/// How every placeholder for a number begins. With [`DIGITS`] more it is still exact as a floating-point number.
const NUMBER: &str = "86420975";
/// The same in a number with an exponent, as Go's templates print one.
const NUMBER_WITH_POINT: &str = "8.6420975";

/// Returns the placeholder for a value: always the same for the same identity, and another for any other.
///
/// ```
/// use portolan_object::{holds_placeholder, placeholder};
///
/// let domain = placeholder("Secret/flux-system/cluster/DOMAIN");
/// assert_ne!(domain, placeholder("Secret/flux-system/cluster/REGION"));
/// assert!(holds_placeholder(&format!("app.{domain}")));
/// ```
pub fn placeholder(identity: &str) -> String {
    let digest = Digest::of(identity.as_bytes()).to_string();
    format!("{WORD}{}", digest.get(..DIGITS).unwrap_or(&digest))
}

/// Returns the placeholder for a number, by the same rule.
///
/// ```
/// use portolan_object::{holds_placeholder, placeholder_number};
///
/// let port = placeholder_number("ConfigMap/apps/web/port");
/// assert!(holds_placeholder(&port.to_string()));
/// ```
pub fn placeholder_number(identity: &str) -> u64 {
    let digest = Digest::of(identity.as_bytes()).to_string();
    let number = u64::from_str_radix(digest.get(..DIGITS).unwrap_or_default(), 16);
    // The last digit is never 0, which an exponent would swallow.
    let told_apart = number.unwrap_or_default() % 9_999_999 * 10 + 1;
    NUMBER.parse::<u64>().unwrap_or_default() * 10_u64.pow(DIGITS as u32) + told_apart
}

/// A placeholder for a number as Go's templates print it when it came through a chart's values.
pub fn with_exponent(number: u64) -> String {
    let digits = number.to_string();
    let (first, rest) = digits.split_at(1.min(digits.len()));
    format!("{first}.{rest}e+{}", rest.len())
}

/// Whether a text is, or contains, a placeholder: as it was made, in capital letters, in base64, or a number.
pub fn holds_placeholder(text: &str) -> bool {
    // Nearly every text is shorter, or has no such word in it.
    text.len() >= NUMBER.len() + DIGITS
        && (text.contains(ENCODED_WORD) || holds_plain(text) || holds_number(text))
}

fn holds_number(text: &str) -> bool {
    let goes_on = |after: &str| {
        let digits = after.as_bytes().get(..DIGITS);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    let begins = [NUMBER, NUMBER_WITH_POINT];
    begins.iter().any(|begin| {
        let mut found = text.match_indices(begin);
        found.any(|(at, _)| text.get(at + begin.len()..).is_some_and(goes_on))
    })
}

fn holds_plain(text: &str) -> bool {
    text.as_bytes().windows(WORD.len() + DIGITS).any(|window| {
        let (word, digits) = window.split_at(WORD.len());
        word.eq_ignore_ascii_case(WORD.as_bytes()) && digits.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_a_valid_label_of_a_host() {
        let word = placeholder("a");
        assert!(word.starts_with(|letter: char| letter.is_ascii_lowercase()));
        assert!(
            word.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        );
        assert!(word.len() < 20);
    }

    #[test]
    fn a_placeholder_is_found_in_every_form_that_templates_give_it() {
        let word = placeholder("a");
        assert!(holds_placeholder(&format!("https://x.{word}:80/")));
        assert!(holds_placeholder(&word.to_uppercase()));
        assert!(holds_placeholder("cGxhY2Vob2xkZXIxYTJiM2M0ZA=="));
    }

    #[test]
    fn a_number_is_found_in_every_form_that_templates_give_it() {
        for identity in ["a", "b", "c", "d", "e"] {
            let number = placeholder_number(identity);
            assert_eq!(number as f64 as u64, number, "exact as a float");
            assert!(holds_placeholder(&number.to_string()));
            assert!(holds_placeholder(&format!(
                "port {}",
                with_exponent(number)
            )));
            assert!(holds_placeholder(&(number + 1).to_string()));
            assert_ne!(number, placeholder_number("other"));
        }
        assert_eq!(
            with_exponent(8_642_097_500_000_011),
            "8.642097500000011e+15"
        );
        assert!(!holds_placeholder("8642097"));
    }

    #[test]
    fn the_word_alone_is_no_placeholder() {
        assert!(!holds_placeholder("placeholder"));
        assert!(!holds_placeholder("a-placeholder-for-later"));
        assert!(!holds_placeholder("PLACEHOLDER_VALUE_OF_MINE"));
    }
}
