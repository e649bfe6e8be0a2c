//! Limits on the work that one input may cause, and on attempts that are repeated.
//!
//! ```text
//! Limits ──▶ Budget ──step, allocate, enter──▶ Ok, or Exceeded: which limit, and how to raise it
//!               ▲
//!            Stop: set from outside by Ctrl-C
//! ```
//!
//! A repository, a chart or a rule can be written to run forever or to fill the memory. Code that works on such input
//! takes a [`Budget`] and charges it *before* it does the work: before each round of a loop, before memory is
//! allocated, before a call goes one level deeper. A clone of a budget shares what is left, so the parts of one unit
//! are limited together.
//!
//! A [`RetryPolicy`] limits how often something that fails is tried again, and says how long to wait in between; every
//! crate that repeats something uses it.
//!
//! This crate reads no clock: the function passed to [`Budget::timed`] gives the elapsed time.

#![warn(missing_docs)]

mod budget;
mod exceeded;
mod limits;
mod retry;

pub use budget::{Budget, Clock, Level, Stop};
pub use exceeded::Exceeded;
pub use limits::Limits;
pub use retry::{Backoff, RetryPolicy};
