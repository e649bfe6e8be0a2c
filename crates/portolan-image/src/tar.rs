//! Entries as tar, in one form only.
//!
//! The `tar` crate writes long names in GNU format and leaves the choice of fields to its caller. Here every field
//! has one fixed form: plain ustar headers, a PAX header only where a value does not fit, no user names, no device
//! numbers.

use crate::entry::{Entry, Node};

/// The unit of a tar file.
pub(crate) const BLOCK: usize = 512;

/// The largest number of eleven and of seven octal digits.
const MAX_SIZE: u64 = 0o777_7777_7777;
const MAX_ID: u64 = 0o777_7777;

/// Writes the header of an entry, the content of a file must follow.
pub(crate) fn header(entry: &Entry, modified: u64, out: &mut Vec<u8>) {
    let mut path = entry.path.clone();
    if entry.node == Node::Directory {
        path.push('/');
    }
    let (kind, size, target) = match &entry.node {
        Node::Directory => (b'5', 0, ""),
        Node::File { size, .. } => (b'0', *size, ""),
        Node::Link(target) => (b'2', 0, target.as_str()),
    };
    let mut records = Vec::new();
    let (prefix, name) = split(&path).unwrap_or_else(|| {
        record(&mut records, "path", path.as_bytes());
        ("", &path)
    });
    if target.len() > 100 || !target.is_ascii() {
        record(&mut records, "linkpath", target.as_bytes());
    }
    let fitting = |records: &mut Vec<u8>, keyword, number: u64, most| {
        if number <= most {
            return number;
        }
        record(records, keyword, number.to_string().as_bytes());
        0
    };
    let size = fitting(&mut records, "size", size, MAX_SIZE);
    let user = fitting(&mut records, "uid", u64::from(entry.owner.user), MAX_ID);
    let group = fitting(&mut records, "gid", u64::from(entry.owner.group), MAX_ID);
    let modified = fitting(&mut records, "mtime", modified, MAX_SIZE);
    if let Some(capability) = &entry.capability {
        record(&mut records, "SCHILY.xattr.security.capability", capability);
    }
    let plain = Header {
        prefix,
        name,
        mode: u64::from(entry.mode),
        user,
        group,
        size,
        modified,
        kind,
        target,
    };
    if !records.is_empty() {
        let extended = Header {
            prefix: "",
            name: "PaxHeaders.0",
            mode: 0o644,
            user: 0,
            group: 0,
            size: records.len() as u64,
            modified: 0,
            kind: b'x',
            target: "",
        };
        extended.write(out);
        out.extend_from_slice(&records);
        pad(records.len() as u64, out);
    }
    plain.write(out);
}

/// Fills up to the next block after a content of some length.
pub(crate) fn pad(length: u64, out: &mut Vec<u8>) {
    out.resize(out.len() + padding(length), 0);
}

/// The bytes from the end of a content of some length to the next block.
pub(crate) fn padding(length: u64) -> usize {
    (BLOCK - (length % BLOCK as u64) as usize) % BLOCK
}

/// Two empty blocks: the end.
pub(crate) fn end(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * BLOCK, 0);
}

struct Header<'a> {
    prefix: &'a str,
    name: &'a str,
    mode: u64,
    user: u64,
    group: u64,
    size: u64,
    modified: u64,
    kind: u8,
    target: &'a str,
}

impl Header<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        text(out, self.name, 100);
        octal(out, self.mode, 8);
        octal(out, self.user, 8);
        octal(out, self.group, 8);
        octal(out, self.size, 12);
        octal(out, self.modified, 12);
        let sum_at = out.len();
        out.extend_from_slice(b"        ");
        out.push(self.kind);
        text(out, self.target, 100);
        out.extend_from_slice(b"ustar\x0000");
        text(out, "", 64);
        octal(out, 0, 8);
        octal(out, 0, 8);
        text(out, self.prefix, 155);
        text(out, "", 12);
        let sum: u64 = out[start..].iter().map(|byte| u64::from(*byte)).sum();
        let mut digits = Vec::with_capacity(8);
        octal(&mut digits, sum, 7);
        digits.push(b' ');
        out[sum_at..sum_at + 8].copy_from_slice(&digits);
    }
}

/// A field of text; what does not fit or is not ASCII stands in a PAX header as well.
fn text(out: &mut Vec<u8>, value: &str, length: usize) {
    let end = out.len() + length;
    let ascii = value
        .chars()
        .map(|c| if c.is_ascii() { c as u8 } else { b'_' });
    out.extend(ascii.take(length));
    out.resize(end, 0);
}

fn octal(out: &mut Vec<u8>, number: u64, length: usize) {
    let digits = format!("{number:0width$o}\0", width = length - 1);
    out.extend_from_slice(digits.as_bytes());
}

/// A path as prefix and name; `None` if it does not fit into them.
fn split(path: &str) -> Option<(&str, &str)> {
    if !path.is_ascii() {
        return None;
    }
    if path.len() <= 100 {
        return Some(("", path));
    }
    // The slash of a directory's end does not part anything.
    let cut = path.len().checked_sub(101)?;
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let at = slashes
        .filter(|at| (cut..=155).contains(at) && *at > 0 && *at + 1 < path.len())
        .min()?;
    Some((&path[..at], &path[at + 1..]))
}

/// A record of a PAX header: its own length in digits, a keyword and a value.
fn record(out: &mut Vec<u8>, keyword: &str, value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} {keyword}=").as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_record_counts_its_own_digits() {
        let mut out = Vec::new();
        record(&mut out, "path", &[b'a'; 91]);
        assert_eq!(out.len(), 101);
        assert!(out.starts_with(b"101 path=a"));
        out.clear();
        record(&mut out, "path", b"abc");
        assert_eq!(out, b"12 path=abc\n");
    }

    #[test]
    fn a_long_path_is_parted_at_a_slash_or_not_at_all() {
        let long = format!("{}/{}", "a".repeat(99), "b".repeat(99));
        assert_eq!(
            split(&long).map(|(a, b)| (a.len(), b.len())),
            Some((99, 99))
        );
        assert_eq!(split(&"a".repeat(101)), None);
        assert_eq!(split(&format!("{}/", "a".repeat(101))), None);
        assert_eq!(split("é"), None);
    }
}
