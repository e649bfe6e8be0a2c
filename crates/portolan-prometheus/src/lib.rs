//! Counts requests by what Prometheus answers.
//!
//! ```text
//! Metric of an analysis ──measure──▶ queries ──Prometheus──▶ Answer: series of raw samples, nothing, or why not
//! series of counters ──Window::increase──▶ requests between two moments, resets and gaps seen
//! series of Istio ──compare──▶ all and bad requests of both arms by one reporter, by pod where that is known
//! ```
//!
//! Prometheus' own `increase()` extrapolates and gives fractions; a test on counts needs counts. So raw samples are asked
//! for (`metric[2m]`), and the differences are taken here.
//!
//! "Nothing found", "not a number", "did not answer" and "refused" are different answers, because they mean different
//! things: no requests, no value, patience, and a mistake in a query. This crate reads no clock.

#![warn(missing_docs)]

mod answer;
mod scrape;
mod series;
mod window;

mod arm;
mod latency;
mod requests;

mod arms;
mod compare;
mod http_counts;
mod measure;
mod replay;
mod selector;
mod server;
mod server_files;

pub use answer::{Answer, Limits, parse_answer};
pub use arms::{ArmLabels, Arms};
pub use compare::{Compared, NotCompared, same_revision};
pub use latency::{Edge, count_slow};
pub use measure::{Measured, Question, measure};
pub use replay::{MAX_REPLAYED_INTERVALS, ReplayError, Replayed, replay};
pub use requests::{Reporter, count_requests, is_bad_request, see_nearly_all};
pub use scrape::{Scrapes, scrape_interval};
pub use series::{Sample, Series, one_per_replica};
pub use server::{Authorization, Prometheus, ServerError, ServerSettings};
pub use server_files::{FileServer, ServerFiles};
pub use window::{Increase, Window};
