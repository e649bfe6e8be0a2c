//! Files written where they belong, whole or not at all.
//!
//! ```text
//! OutputDir::write(path) ──▶ every name checked ──▶ directories opened one by one, links refused
//!                                                        └▶ new file with a random name ──▶ sync ──▶ rename
//! ```
//!
//! Names of files come out of repositories and charts. Whatever writes such files does it through an [`OutputDir`]: no
//! name leads out of it, no symbolic link below it is followed, and a reader sees the old file or the new one, never a
//! part. What has a name only when it is written, such as a blob named by its digest, is [`Staged`]. A path that the user typed goes to [`write_file`]. [`file_name`] makes one safe name out of any text.
//!
//! This crate knows nothing of what is in the files.

#![warn(missing_docs)]

mod error;
mod name;
mod output;
mod place;
mod staged;

pub use error::{WriteError, advice};
pub use name::file_name;
pub use output::OutputDir;
pub use place::write_file;
pub use staged::Staged;
