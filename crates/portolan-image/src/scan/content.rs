//! The contents of files: read by several threads, or known from an earlier scan.

use std::sync::atomic::{AtomicUsize, Ordering};

use portolan_digest::Hasher;

use crate::entry::Node;
use crate::memo::Memo;
use crate::notice::Refusal;
use crate::scan::ScanOptions;
use crate::scan::walk::Found;
use crate::source::{Source, Stamp};

/// How often a file that changes while it is read is read anew.
const ATTEMPTS: usize = 3;

/// How much is read at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// The state of a file in which it had a content.
struct Content {
    stamp: Stamp,
    digest: [u8; 32],
}

/// Fills the digests of all files in, and says of which files that failed.
pub(super) fn read(
    source: &dyn Source,
    found: &mut Found,
    options: &ScanOptions<'_>,
    memo: &mut Memo,
) {
    let mut unknown = Vec::new();
    for (entry, stamp) in &found.files {
        match options.memo.get(stamp) {
            Some(digest) => {
                let content = Content {
                    stamp: *stamp,
                    digest,
                };
                fill(&mut found.entries[*entry].node, &content);
                memo.insert(*stamp, digest, options.now);
            }
            None => unknown.push(*entry),
        }
    }
    let paths: Vec<&str> = unknown
        .iter()
        .map(|entry| match &found.entries[*entry].node {
            Node::File { source, .. } => source.as_str(),
            _ => "",
        })
        .collect();
    let contents = read_all(source, &paths, options.threads.max(1));
    for (entry, content) in unknown.into_iter().zip(contents) {
        match content {
            Ok(content) => {
                memo.insert(content.stamp, content.digest, options.now);
                fill(&mut found.entries[entry].node, &content);
            }
            Err(refusal) => found.refusals.push(refusal),
        }
    }
}

fn fill(node: &mut Node, found: &Content) {
    if let Node::File { size, content, .. } = node {
        *size = found.stamp.size;
        *content = found.digest;
    }
}

/// Reads files with several threads; the answers are in the order of the paths.
fn read_all(source: &dyn Source, paths: &[&str], threads: usize) -> Vec<Result<Content, Refusal>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else {
                return done;
            };
            done.push((at, read_one(source, path, &mut buffer)));
        }
    };
    let mut all: Vec<(usize, Result<Content, Refusal>)> = std::thread::scope(|scope| {
        let others = threads.min(paths.len()).saturating_sub(1);
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, content)| content).collect()
}

fn read_one(source: &dyn Source, path: &str, buffer: &mut [u8]) -> Result<Content, Refusal> {
    let refused = |why: String| Refusal {
        path: path.to_owned(),
        why,
    };
    for _ in 0..ATTEMPTS {
        let content = read_once(source, path, buffer)
            .map_err(|error| refused(format!("cannot be read: {error}")))?;
        if let Some(content) = content {
            return Ok(content);
        }
    }
    Err(refused(format!(
        "changed while it was read, {ATTEMPTS} times"
    )))
}

/// Returns `None` if the file changed meanwhile.
fn read_once(
    source: &dyn Source,
    path: &str,
    buffer: &mut [u8],
) -> std::io::Result<Option<Content>> {
    let mut file = source.open(path)?;
    let stamp = file.stamp()?;
    let mut hasher = Hasher::default();
    let mut size = 0;
    loop {
        let length = match file.read(buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..length]);
        size += length as u64;
        // A file that grows for ever is not read for ever.
        if size > stamp.size {
            return Ok(None);
        }
    }
    let is_same = file.stamp()? == stamp && size == stamp.size;
    Ok(is_same.then(|| Content {
        stamp,
        digest: hasher.finish_bytes(),
    }))
}
