//! Container images made of files: the same bytes from the same files, everywhere.
//!
//! ```text
//! Source ──scan──▶ entries ──▶ key
//! ```
//!
//! This crate opens no connection, starts no process and reads no clock. Files come through [`Source`].

#![warn(missing_docs)]

mod copy;
mod entry;
mod ignore;
mod key;
mod memo;
mod memory;
mod notice;
mod scan;
mod source;

pub use copy::{CopySpec, Keep};
pub use entry::{Entry, Node, Owner};
pub use ignore::{Ignore, IgnoreError, IgnoreFileError, MAX_PATTERNS, Matched, read_patterns};
pub use key::Key;
pub use memo::{Memo, YOUNG};
pub use memory::Memory;
pub use notice::{Notice, Refusal};
pub use scan::{MAX_ENTRIES, MAX_PATH_BYTES, Scan, ScanError, ScanOptions, ignore_patterns, scan};
pub use source::{Listed, ListedKind, OpenFile, Source, Stamp};
