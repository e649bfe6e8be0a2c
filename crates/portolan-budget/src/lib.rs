//! Limits on the work that one input may cause.
//!
//! ```text
//! Limits ──▶ Budget ──step, allocate, enter──▶ Ok, or Exceeded: which limit, and how to raise it
//!               ▲
//!            Stop: set from outside by Ctrl-C
//! ```
//!
//! A repository, a chart or a rule can be written to run for ever or to fill the memory. Whatever works on such input
//! takes a [`Budget`] and charges it *before* it does the work: before a loop goes round, before memory is taken, before
//! a call goes one level deeper. A clone of a budget shares what is left, so the parts of one unit are bounded together.
//!
//! This crate reads no clock: the time that has passed comes from the function given to [`Budget::timed`].

#![warn(missing_docs)]

mod budget;
mod exceeded;
mod limits;

pub use budget::{Budget, Clock, Level, Stop};
pub use exceeded::Exceeded;
pub use limits::Limits;
