//! Small repositories in memory: what is built, what is shared, what is made by templates, and what is said of mistakes.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

mod bad;
mod charts;
mod demand;
mod equal_inputs;
mod flux;
mod lookup;
mod operator;
mod pair;
mod sharing;
mod skipping;
mod stream;
