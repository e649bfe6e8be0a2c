//! The text that stands for a value which is not known here: a sealed value without its key, or data that only the
//! cluster makes.
//!
//! A placeholder is a word of lower-case letters and digits. It may be put into a name, a host or a line of YAML without
//! breaking it, it survives the usual changes of separators and case, and it is recognised wherever it ends up, so that
//! no check judges a value that nobody knows.

use crate::canonical::Digest;

/// How every placeholder begins.
const WORD: &str = "placeholder";
/// How many hexadecimal digits follow, which tell placeholders apart.
const DIGITS: usize = 8;
/// How every placeholder begins in base64: the letters that the first ten bytes and a half of [`WORD`] give.
const ENCODED_WORD: &str = "cGxhY2Vob2xkZX";

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

/// Whether a text is, or contains, a placeholder: as it was made, in capital letters, or in base64.
pub fn holds_placeholder(text: &str) -> bool {
    // Nearly every text is shorter, or has no such word in it.
    text.len() >= WORD.len() + DIGITS && (text.contains(ENCODED_WORD) || holds_plain(text))
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
    fn the_word_alone_is_no_placeholder() {
        assert!(!holds_placeholder("placeholder"));
        assert!(!holds_placeholder("a-placeholder-for-later"));
        assert!(!holds_placeholder("PLACEHOLDER_VALUE_OF_MINE"));
    }
}
