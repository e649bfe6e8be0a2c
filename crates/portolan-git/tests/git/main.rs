//! Everything against repositories that the real `git` made.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod mirror;
mod repository;
mod tree;
mod work_tree;
mod workshop;
