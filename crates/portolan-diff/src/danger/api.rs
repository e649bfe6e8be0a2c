//! API versions that the cluster does not serve: the caller knows which.

use super::{Finder, Level, Rule};
use crate::report::Unserved;

pub(super) const REMOVED: Rule = Rule {
    id: "removed-api",
    level: Level::Error,
    explanation: "the API server refuses an object whose API version it no longer serves",
};

pub(super) fn lint(finder: &mut Finder<'_, '_>, unserved: Option<&Unserved>) {
    let reason = finder
        .after()
        .zip(unserved)
        .and_then(|(new, unserved)| unserved(new.object));
    if let Some(reason) = reason {
        finder.report(REMOVED, reason);
    }
}
