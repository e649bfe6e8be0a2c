//! PEM: binary data in base 64 between two lines that name it.

use crate::functions::encoding::{base64_decode, base64_encode};

/// A decoded block.
pub(super) struct Block {
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// Lines of 64 characters between `BEGIN` and `END`.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let text = base64_encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

/// The first block of a text.
pub(super) fn decode(text: &str) -> Option<Block> {
    let start = text.find("-----BEGIN ")?;
    let at_line_start = start == 0 || text[..start].ends_with('\n');
    let (label, rest) = text[start..]
        .strip_prefix("-----BEGIN ")?
        .split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    // Lines with a colon are headers.
    let body: String = body
        .lines()
        .filter(|line| !line.contains(':'))
        .flat_map(str::split_whitespace)
        .collect();
    let bytes = base64_decode(body.as_bytes()).ok()?;
    at_line_start.then(|| Block {
        label: label.to_owned(),
        bytes,
    })
}
