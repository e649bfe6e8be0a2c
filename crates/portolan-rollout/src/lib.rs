//! Moves an application from one revision to the next, and back when the new one is worse.
#![warn(missing_docs)]

mod time;

mod config;
mod crd;
mod phase;
mod revision;
mod spec;
mod tokens;

pub use config::{
    ConfigKind, ConfigRef, ConfigVersion, MISSING, NOT_TRACKED, config_refs, content_hash, copy_of,
    use_copies,
};
pub use crd::crd_yaml;
pub use phase::{HoldReason, Outcome, Phase};
pub use revision::{Revision, canonical_json};
pub use spec::*;
pub use time::{Span, SpanError, Time};
pub use tokens::{ANNOTATION_PREFIX, ActedOn, Command, Tokens};
