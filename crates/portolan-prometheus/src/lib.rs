//! Counts requests from what Prometheus answers.
//!
//! ```text
//! body of an answer ──parse_answer──▶ Answer: series of raw samples, nothing, or why not
//! series of counters ──Window::increase──▶ requests between two moments, resets and gaps seen
//! series of Istio ──count_requests, count_slow──▶ all and bad requests of an arm, by pod where that is known
//! ```
//!
//! Prometheus' own `increase()` extrapolates and gives fractions; a test on counts needs counts. So raw samples are asked
//! for (`metric[2m]`), and the differences are taken here.
//!
//! "Nothing found", "not a number", "did not answer" and "refused" are different answers, because they mean different
//! things: no requests, no value, patience, and a mistake in a query. This crate opens no connection and reads no clock.

#![warn(missing_docs)]

mod answer;
mod arm;
mod latency;
mod requests;
mod series;
mod window;

pub use answer::{Answer, Limits, parse_answer};
pub use latency::{Edge, count_slow};
pub use requests::{Reporter, choose_reporter, count_requests, is_bad_request};
pub use series::{Sample, Series, one_per_replica};
pub use window::{Increase, Window};
