//! Makes one safe file name from any text.

/// Longest name that is made; file systems allow 255 bytes, and a number or an ending may follow.
const MAX_BYTES: usize = 200;

/// Returns a text as the name of one file or directory: separators, `:` and control characters become `_`, and so do
/// the names that mean a directory (`.`, `..` and the empty one). A long text is cut. Different texts can give the same
/// name.
pub fn file_name(text: &str) -> String {
    let is_unsafe = |letter: char| matches!(letter, '/' | '\\' | ':') || letter.is_control();
    let mut name: String = text
        .chars()
        .map(|letter| if is_unsafe(letter) { '_' } else { letter })
        .collect();
    if name.len() > MAX_BYTES {
        let end = name.floor_char_boundary(MAX_BYTES);
        name.truncate(end);
    }
    match name.as_str() {
        "" | "." | ".." => "_".repeat(name.len().max(1)),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leads_to_another_directory() {
        let check = |text: &str, expected: &str| assert_eq!(file_name(text), expected, "{text:?}");
        check("web", "web");
        check("../../x", ".._.._x");
        check("..", "__");
        check(".", "_");
        check("", "_");
        check("a:b\\c\0d\n", "a_b_c_d_");
        assert_eq!(file_name(&"ä".repeat(300)).len(), 200);
    }
}
