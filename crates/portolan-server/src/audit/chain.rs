//! Reads an audit log: the chain of its lines, over one file or all of them.
//!
//! A log is `audit.log` and, before it, files that were full: `audit-NUMBER.log`, named for their last entry. A start
//! reads the newest file only, which is small, so that it takes the same time after years; `verify_audit` reads all.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use portolan_digest::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{AuditError, AuditHead};

/// The file that entries are written to.
pub(super) const NEWEST_FILE: &str = "audit.log";

/// The name of a file that is full.
pub(super) fn full_file(last: u64) -> String {
    format!("audit-{last}.log")
}

/// The digest that the line after this one names.
pub(super) fn digest_of(line: &str) -> String {
    hex(&Sha256::digest(line.as_bytes()))
}

/// Reads the newest file and finds the last entry. A last line that is cut off was never answered, and is removed.
///
/// `known` is the newest entry that the store knows of.
pub(super) fn read_newest(
    directory: &Path,
    known: Option<&AuditHead>,
) -> Result<AuditHead, AuditError> {
    let path = directory.join(NEWEST_FILE);
    let before = match full_files(directory)?.pop() {
        Some((_, full)) => last_entry(&full)?,
        None => AuditHead::default(),
    };
    if !path.exists() {
        return at_least(before, known);
    }
    let mut chain = Chain::new(before);
    let torn = chain.read(&path, known)?;
    if torn {
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|file| {
            file.set_len(chain.bytes)?;
            file.sync_all()
        })
        .map_err(failed(&path))?;
    }
    at_least(chain.head, known)
}

/// Checks the audit log of a data directory from its oldest file to its newest; returns the number of its last entry.
/// `known` is the number and digest of the newest entry that the store knows of.
///
/// # Errors
/// When a line was changed or removed, or the log does not have the entry that the store knows of.
pub fn verify_audit(directory: &Path, known: Option<(u64, &str)>) -> Result<u64, AuditError> {
    let known = known.map(|(number, digest)| AuditHead {
        number,
        digest: digest.to_owned(),
    });
    let mut chain: Option<Chain> = None;
    let full = full_files(directory)?.into_iter().map(|(_, path)| path);
    for path in full.chain([directory.join(NEWEST_FILE)]) {
        if !path.exists() {
            continue;
        }
        // Old files may have been moved away: the oldest that is there begins the chain.
        let chain = match &mut chain {
            Some(chain) => chain,
            None => chain.insert(Chain::new(start_of(&path)?)),
        };
        chain.read(&path, known.as_ref())?;
    }
    let head = chain.map_or_else(AuditHead::default, |chain| chain.head);
    at_least(head, known.as_ref()).map(|head| head.number)
}

/// Follows a chain through its files.
struct Chain {
    head: AuditHead,
    /// The length of the whole lines of the last file.
    bytes: u64,
}

impl Chain {
    fn new(head: AuditHead) -> Self {
        Self { head, bytes: 0 }
    }

    /// Reads a file that goes on where the chain is; returns whether its last line is cut off.
    fn read(&mut self, path: &Path, known: Option<&AuditHead>) -> Result<bool, AuditError> {
        let mut reader = BufReader::new(File::open(path).map_err(failed(path))?);
        let mut text = String::new();
        self.bytes = 0;
        for count in 1.. {
            text.clear();
            let length = reader.read_line(&mut text).map_err(failed(path))?;
            let Some(line) = text.strip_suffix('\n') else {
                break;
            };
            let broken = || AuditError::Broken {
                path: path.to_owned(),
                line: count,
            };
            let (number, before) = link(line).ok_or_else(broken)?;
            if before != self.head.digest || number != self.head.number + 1 {
                return Err(broken());
            }
            self.head = AuditHead {
                number,
                digest: digest_of(line),
            };
            // A chain that was made anew from its middle fits together, but not with what the store knows.
            if known.is_some_and(|known| known.number == number && *known != self.head) {
                return Err(AuditError::Replaced { number });
            }
            self.bytes += length as u64;
        }
        Ok(!text.is_empty())
    }
}

/// The number of a line, and the digest of the line before it.
fn link(line: &str) -> Option<(u64, String)> {
    let entry: Value = serde_json::from_str(line).ok()?;
    Some((
        entry["number"].as_u64()?,
        entry["before"].as_str()?.to_owned(),
    ))
}

fn at_least(head: AuditHead, known: Option<&AuditHead>) -> Result<AuditHead, AuditError> {
    match known {
        Some(known) if head.number < known.number => Err(AuditError::Short {
            found: head.number,
            known: known.number,
        }),
        _ => Ok(head),
    }
}

/// The files that are full, the oldest first, by the numbers of their last entries.
fn full_files(directory: &Path) -> Result<Vec<(u64, PathBuf)>, AuditError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name
            .and_then(|name| name.strip_prefix("audit-")?.strip_suffix(".log"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The last entry of a file that is full.
fn last_entry(path: &Path) -> Result<AuditHead, AuditError> {
    let text = std::fs::read_to_string(path).map_err(failed(path))?;
    let entry = text.lines().last().and_then(|line| {
        let (number, _) = link(line)?;
        let digest = digest_of(line);
        Some(AuditHead { number, digest })
    });
    entry.ok_or_else(|| AuditError::Broken {
        path: path.to_owned(),
        line: text.lines().count() as u64,
    })
}

/// What the first line of a file says of the entry before it.
fn start_of(path: &Path) -> Result<AuditHead, AuditError> {
    let mut line = String::new();
    let file = File::open(path).map_err(failed(path))?;
    BufReader::new(file)
        .read_line(&mut line)
        .map_err(failed(path))?;
    let start = link(line.trim_end()).map(|(number, digest)| AuditHead {
        number: number.saturating_sub(1),
        digest,
    });
    // An empty file, or one whose first line is cut off, begins a log.
    Ok(start.unwrap_or_default())
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> AuditError + '_ {
    |source| AuditError::File {
        path: path.to_owned(),
        source,
    }
}
