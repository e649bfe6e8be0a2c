//! Cuts text to a maximum length.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// As much of the text as fits; what was cut off leaves `…`.
pub fn clip(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        clipped.push(letter);
    }
    clipped.push('…');
    clipped
}
