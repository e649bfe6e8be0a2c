//! Decrypts YAML files in place: the text stays as it is, except for what was encrypted.
//!
//! sops prints the encrypted and the decrypted file by the same rules, so the decrypted file is the encrypted file
//! without its `sops` map and with every encrypted value and comment replaced. That keeps comments, which trees do
//! not have. If another program has printed the file since, and an encrypted value is not a plain scalar on one line,
//! the file is printed from its tree, without comments.

use std::collections::{BTreeMap, BTreeSet};

use portolan_yaml::{Emitter, Entry, Node, Scalar, Tag, Value};

use crate::cipher::{Cipher, SealedValue};
use crate::document::METADATA_KEY;
use crate::error::SopsError;

/// How far sops indents.
const INDENT: usize = 4;
/// A sealed comment does not say which map it stands in, so all of them are tried, but no more than this in all.
const MAX_COMMENT_TRIES: usize = 10_000;

/// Writes the decrypted file.
pub(crate) fn write(
    source: &str,
    encrypted: &[Node],
    plain: &[Node],
    cipher: &Cipher,
) -> Result<String, SopsError> {
    let mut found = Found::default();
    for (sealed, opened) in encrypted.iter().zip(plain) {
        found.node(sealed, opened, None);
    }
    match found.replace(source, cipher) {
        Some(text) => Ok(text),
        None => print_anew(plain),
    }
}

/// A sealed scalar of the source and what to put in its place.
struct Replacement<'a> {
    column: u32,
    indent: usize,
    plain: &'a Scalar,
}

#[derive(Default)]
struct Found<'a> {
    /// By line.
    replacements: BTreeMap<u32, Vec<Replacement<'a>>>,
    /// The lines of the `sops` keys.
    metadata: BTreeSet<u32>,
    /// The authenticated form of every map's path.
    paths: BTreeSet<String>,
    path: Vec<&'a str>,
}

impl<'a> Found<'a> {
    /// Walks both trees at once; the depth is what decryption allowed. `key` is where the value's key begins.
    fn node(&mut self, sealed: &'a Node, plain: &'a Node, key: Option<u32>) {
        match (&sealed.value, &plain.value) {
            (Value::Map(sealed), Value::Map(plain)) => {
                self.paths.insert(format!("{}:", self.path.join(":")));
                for Entry { key, value } in sealed {
                    if self.path.is_empty() && key.as_str() == METADATA_KEY {
                        self.metadata.insert(key.at.line);
                    } else if let Some(plain) = plain.get(key.as_str()) {
                        self.path.push(key.as_str());
                        self.node(value, plain, Some(key.at.column));
                        self.path.pop();
                    }
                }
            }
            (Value::List(sealed), Value::List(plain)) => {
                for (sealed, plain) in sealed.iter().zip(plain) {
                    self.node(sealed, plain, None);
                }
            }
            (Value::Scalar(from), Value::Scalar(to)) if from != to => {
                // Below a key the text of a block goes to the next stop; in a list, beside the dash.
                let indent = match key {
                    Some(column) => (column as usize - 1 + INDENT) / INDENT * INDENT,
                    None => sealed.at.column as usize - 1,
                };
                self.replacements
                    .entry(sealed.at.line)
                    .or_default()
                    .push(Replacement {
                        column: sealed.at.column,
                        indent,
                        plain: to,
                    });
            }
            _ => {}
        }
    }

    fn replace(&self, source: &str, cipher: &Cipher) -> Option<String> {
        let mut text = String::with_capacity(source.len());
        let mut tries = MAX_COMMENT_TRIES;
        let mut cut = false;
        for (line, number) in source.split_inclusive('\n').zip(1..) {
            if line.trim_end() == "---" {
                cut = false;
            } else if self.metadata.contains(&number) {
                cut = true;
            }
            if cut {
                continue;
            }
            match self.replacements.get(&number).map(Vec::as_slice) {
                None => text.push_str(&self.comment(line, cipher, &mut tries)),
                Some([place]) => text.push_str(&place.apply(line)?),
                Some(_) => return None,
            }
        }
        Some(text)
    }

    /// The line with its sealed comment opened.
    fn comment(&self, line: &str, cipher: &Cipher, tries: &mut usize) -> String {
        let mut opened = || {
            let (before, sealed) = line.split_once("#ENC[")?;
            let sealed = format!("ENC[{sealed}");
            let sealed =
                SealedValue::parse(sealed.trim_end()).filter(|sealed| sealed.kind == "comment")?;
            let mut candidates = self.paths.iter().take_while(|_| {
                *tries = tries.saturating_sub(1);
                *tries > 0
            });
            let plain = candidates.find_map(|path| cipher.open(&sealed, path))?;
            Some(format!("{before}#{}\n", std::str::from_utf8(&plain).ok()?))
        };
        opened().unwrap_or_else(|| line.to_owned())
    }
}

impl Replacement<'_> {
    /// The line with the plain value; `None` when the sealed one is not there as a plain scalar.
    fn apply(&self, line: &str) -> Option<String> {
        let start = line.char_indices().nth(self.column as usize - 1)?.0;
        let (before, sealed) = line.split_at_checked(start)?;
        let end = sealed.strip_prefix("ENC[")?.find(']')? + "ENC[]".len();
        let after = sealed.get(end..)?;
        let printed = print_scalar(self.plain, self.indent)?;
        let multiline = printed.contains('\n');
        (!multiline || after.trim().is_empty()).then(|| {
            let after = if multiline { "\n" } else { after };
            format!("{before}{printed}{after}")
        })
    }
}

/// A scalar as the value of a key, without the line break after it; blocks are indented.
fn print_scalar(scalar: &Scalar, indent: usize) -> Option<String> {
    if scalar.tag != Tag::Str {
        return Some(scalar.text.to_string());
    }
    let mut text = String::new();
    let mut emitter = Emitter::v3_pretty(&mut text);
    emitter.begin_map();
    emitter.key("k");
    emitter.string(&scalar.text);
    emitter.end();
    emitter.finish().ok()?;
    let mut lines = text.strip_prefix("k:")?.strip_suffix('\n')?.split('\n');
    // A block whose first line begins with a space says how far it is indented.
    let first = lines.next()?.trim_start().to_owned();
    let mut printed = if first.starts_with('|') {
        first.replace('2', "4")
    } else {
        first
    };
    for line in lines {
        printed.push('\n');
        if !line.is_empty() {
            printed.extend(std::iter::repeat_n(' ', indent));
            printed.push_str(line.strip_prefix("  ").unwrap_or(line));
        }
    }
    Some(printed)
}

fn print_anew(plain: &[Node]) -> Result<String, SopsError> {
    let print = |document: &Node| {
        portolan_yaml::write_v3_pretty(document).map_err(|error| SopsError::Format {
            format: "YAML",
            line: 0,
            problem: error.to_string(),
        })
    };
    let documents = plain.iter().map(print).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}
