//! Writes files inside one directory, whole or not at all.
//!
//! ```text
//! OutputDir::write(path) ──▶ every name checked ──▶ directories opened one by one, links refused
//!                                                        └▶ new file with a random name ──▶ sync ──▶ rename
//! ```
//!
//! File names can come from repositories and charts. Such files are written through an [`OutputDir`]: no name leads
//! out of it, no symbolic link below it is followed, and a reader sees the old file or the new one, never a part.
//! [`Staged`] is a file whose name is known only after it is written, such as a blob named by its digest.
//! [`write_file`] writes to a path that the user typed. [`file_name`] makes one safe name from any text.
//!
//! This crate does not know what the files contain.

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
