//! Helm releases of a cluster: installed, upgraded, rolled back and uninstalled in Helm's own storage, so that `helm`
//! reads what this crate writes and this crate goes on with what `helm` wrote.
//!
//! ```text
//! chart, values ──render with the live cluster──▶ manifest, hooks
//!                                                   └▶ record `pending-…`, which is the lock
//!                                                        └▶ definitions ─▶ hooks ─▶ objects, awaited ─▶ hooks
//!                                                             └▶ record `deployed`, older ones `superseded`
//! ```
//!
//! Begin at [`ReleaseTarget::deploy`], [`ReleaseTarget::try_deploy`] and [`ReleaseTarget::uninstall`].

#![warn(missing_docs)]

mod error;
mod news;
mod target;

mod deploy;
mod hooks;
mod live;
mod lock;
mod managed_fields;
mod objects;
mod record;
mod rollback;
mod trial;
mod uninstall;

pub use deploy::{ChartInstall, ReleaseDone};
pub use error::HelmReleaseError;
pub use live::{EditObject, parse_objects};
pub use news::{ObjectState, ReleaseNews};
pub use target::{OnFailure, ReleaseTarget};
pub use trial::ReleaseTrial;
