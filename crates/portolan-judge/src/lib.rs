//! Decides by counts whether a canary is worse than what runs beside it.
//!
//! ```text
//! Interval (requests and bad ones of both arms) ──observe──▶ Evidence (a few numbers) ──▶ rollback, promote or hold
//!                                                                 ▲
//!                                   Settings: error rates, tolerated and harmful odds, corrections
//! ```
//!
//! Each interval is looked at given how many bad requests *both* arms had together. The error rate of that interval
//! cancels out, so an incident that hits both arms says nothing against the canary. What is left is a likelihood ratio
//! of "worse" against "not worse"; the products of such ratios are e-processes. By Ville's inequality a canary that is
//! not worse is rolled back with at most the stated probability, however often anybody looks.
//!
//! [`Settings`] without [`Corrections`] are the plain test. The corrections make it fit for what real traffic does:
//! releases without any error, noise of one arm, arms measured at different moments, regressions after a healthy hour.
//!
//! The promised rates hold when bad requests of one arm are independent of each other, beyond what
//! [`Corrections::noise`] allows for, and when that noise is independent from interval to interval. Errors that come in
//! bursts longer than an interval and hit one arm only break the promise; longer intervals keep it.
//!
//! Between the tolerated and the harmful odds neither error is promised: a canary with odds of 1.6, by the defaults, is rolled
//! back about as often as it is promoted.
//!
//! The crate knows counts. It does not know Kubernetes, Prometheus or the clock.

#![warn(missing_docs)]

mod counts;
mod odds;

mod settings;

mod evidence;
mod noise;
mod pods;
mod rows;
mod slo;
mod threshold;
mod verdict;

pub mod simulate;

pub use counts::{Counts, CountsError, Interval};
pub use evidence::{Evidence, Explanation};
pub use noise::{LEAST_INTERVALS, NoiseEstimate};
pub use pods::{Arm, PodCounts, Pods, WarmUp};
pub use rows::{Judgement, RowEvidence, RowsError, judge_rows};
pub use settings::{Corrections, Settings, SettingsError};
pub use slo::SloEvidence;
pub use threshold::{Threshold, ThresholdState};
pub use verdict::Verdict;
