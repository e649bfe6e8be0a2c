//! Finds deprecated and removed Kubernetes APIs in objects of any origin.
//!
//! ```text
//! lifecycle table + rules ─┐
//! target releases ─────────┴▶ Checker ◀── objects of files, charts, releases, clusters
//!                                │
//!                                ▼
//!                  findings ──merge──▶ one per object ──baseline──▶ Report ──▶ JSON, SARIF, …
//! ```
//!
//! The entry points are [`Checker::check`] for one object and [`plan_scan`] for files. The crate knows objects and
//! texts; other crates fetch them from a cluster or render them from a repository. It reads files, but no clock:
//! today's date is passed in as a [`Day`].

mod level;
mod lifecycle;
mod release;
mod target;

mod deprecation;
mod migration;
mod table;

mod baseline;
mod rules;
mod settings;

mod checker;
mod finding;
mod merge;

mod chart;
mod files;
mod manifest;

mod fix;
mod patch;

mod report;

pub use baseline::Baseline;
pub use checker::{Checker, Site, head};
pub use files::{ScanPlan, Scanned, plan_scan};
pub use finding::{Evidence, Finding, Subject};
pub use level::{BadLevel, Level};
pub use lifecycle::{Api, Basis, KUBERNETES, Lifecycle, Stage, Str};
pub use manifest::{Checked, DocumentLimits, unreadable};
pub use merge::merge;
pub use patch::Patch;
pub use portolan_object::{BadDay, Day};
pub use release::{BadRelease, Release};
pub use report::{Counts, Format, Report};
pub use rules::Rules;
pub use settings::SettingsError;
pub use table::{NEWEST, Table};
pub use target::{BadTarget, LOOK_AHEAD, Target, TargetWord};
