//! Characters as Go's `unicode` package sees them: categories and one-to-one case mappings.

use std::sync::LazyLock;

use regex::Regex;

/// Upper case by Go's simple mapping: `ß` stays, as its upper case is two letters.
pub(crate) fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        _ => upper_of_several(character),
    }
}

/// Greek letters with an iota below have a single upper case letter beside the two that the full mapping gives.
fn upper_of_several(character: char) -> char {
    let step = match character {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => 0,
    };
    char::from_u32(u32::from(character) + step).unwrap_or(character)
}

/// Lower case by Go's simple mapping.
pub(crate) fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

/// Title case: upper case but for the letters that are two in one and for Georgian.
pub(crate) fn title(character: char) -> char {
    match character {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        '\u{10d0}'..='\u{10ff}' => character,
        _ => upper(character),
    }
}

/// A Unicode category; ASCII is answered without a table.
macro_rules! category {
    ($name:ident, $class:literal, $ascii:expr, $doc:literal) => {
        #[doc = $doc]
        pub(crate) fn $name(character: char) -> bool {
            static CLASS: LazyLock<Regex> =
                LazyLock::new(|| Regex::new($class).expect("a constant expression"));
            let ascii: fn(char) -> bool = $ascii;
            if character.is_ascii() {
                return ascii(character);
            }
            CLASS.is_match(character.encode_utf8(&mut [0; 4]))
        }
    };
}

category!(
    is_letter,
    r"\p{L}",
    |c| c.is_ascii_alphabetic(),
    "`unicode.IsLetter`"
);
category!(
    is_upper,
    r"\p{Lu}",
    |c| c.is_ascii_uppercase(),
    "`unicode.IsUpper`"
);
category!(
    is_lower,
    r"\p{Ll}",
    |c| c.is_ascii_lowercase(),
    "`unicode.IsLower`"
);
category!(is_title, r"\p{Lt}", |_| false, "`unicode.IsTitle`");
category!(
    is_digit,
    r"\p{Nd}",
    |c| c.is_ascii_digit(),
    "`unicode.IsDigit`"
);
category!(
    is_number,
    r"\p{N}",
    |c| c.is_ascii_digit(),
    "`unicode.IsNumber`"
);
category!(
    is_punct,
    r"\p{P}",
    |c| c.is_ascii_punctuation()
        && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~'),
    "`unicode.IsPunct`"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_map_to_single_letters() {
        assert_eq!((upper('ß'), upper('ᾳ'), lower('İ')), ('ß', 'ᾼ', 'i'));
        assert_eq!((title('ǆ'), upper('ǆ'), title('ა')), ('ǅ', 'Ǆ', 'ა'));
    }
}
