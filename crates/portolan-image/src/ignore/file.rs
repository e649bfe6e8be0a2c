//! The text of a `.dockerignore` file.

use portolan_go::path::clean;

/// The longest line: where Go's scanner gives up.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// An ignore file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreFileError {
    /// Longer than Docker reads.
    #[error("line {0} is longer than 65536 bytes")]
    LongLine(usize),
    /// Not text.
    #[error("line {0} is not UTF-8")]
    NotUtf8(usize),
}

/// Reads the patterns of a `.dockerignore` file: comments and empty lines left out, paths cleaned, a leading `/` taken off.
pub fn read_patterns(content: &[u8]) -> Result<Vec<String>, IgnoreFileError> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut patterns = Vec::new();
    for (at, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.len() >= MAX_LINE_BYTES {
            return Err(IgnoreFileError::LongLine(at + 1));
        }
        let line = std::str::from_utf8(line).map_err(|_| IgnoreFileError::NotUtf8(at + 1))?;
        patterns.extend(pattern_of(line));
    }
    Ok(patterns)
}

fn pattern_of(line: &str) -> Option<String> {
    let trimmed = line.trim();
    if line.starts_with('#') || trimmed.is_empty() {
        return None;
    }
    let (sign, text) = match trimmed.strip_prefix('!') {
        Some(text) => ("!", text.trim()),
        None => ("", trimmed),
    };
    if text.is_empty() {
        return Some(sign.to_owned());
    }
    let cleaned = clean(text);
    let relative = match cleaned.strip_prefix('/') {
        Some(relative) if !relative.is_empty() => relative,
        _ => &cleaned,
    };
    Some(format!("{sign}{relative}"))
}
