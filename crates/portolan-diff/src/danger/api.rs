//! API versions that the cluster does not serve; the caller says which these are.

use portolan_object::{Rule, Severity};

use super::Finder;
use crate::report::Unserved;

pub(super) static REMOVED: Rule = Rule {
    id: "removed-api",
    severity: Severity::Error,
    summary: "the API server refuses an object whose API version it no longer serves",
    help: "Flux stops at the object and keeps what it applied before. Use the API version that the message names.",
};

pub(super) fn lint(finder: &mut Finder<'_, '_>, unserved: Option<&Unserved>) {
    let reason = finder
        .after()
        .zip(unserved)
        .and_then(|(new, unserved)| unserved(new.object));
    if let Some(reason) = reason {
        finder.report(&REMOVED, reason);
    }
}
