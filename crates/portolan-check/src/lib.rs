//! Finds problems of the objects of a cluster before they are applied.
//!
//! ```text
//! objects with their owners ──▶ api, schema, admission ┐
//!                           ──▶ owner                  ├─▶ findings ──settings──▶ what counts
//!                           ──▶ reference              ┘        └─ each with the line that caused it
//! ```
//!
//! The entry point is [`check`]. Every finding names a [`Rule`](portolan_object::Rule) with a stable id, a severity
//! and help; a rule can be switched off for an object by an annotation or in `portolan.yaml` ([`Settings`]).
//!
//! This crate knows objects, not what rendered them; no message contains a value of an object.

#![warn(missing_docs)]

mod finding;
mod rule;

mod admission;
mod api;
mod embedded;
mod locate;
mod owner;
mod places;
mod reference;
mod schema;

mod follow_on;
mod settings;

use portolan_object::{FieldPath, Finding, Object, Place};
use portolan_schema::Catalogue;
use portolan_vfs::Vfs;

use places::Places;

pub use api::Apis;
pub use finding::Subject;
pub use follow_on::{Unrendered, lower_follow_ons};
pub use rule::{MISSING_REFERENCE, RULES};
pub use settings::{
    IGNORE_ANNOTATION, Settings, SettingsError, has_kind, parse_producers, parse_settings,
};

/// Everything wrong with the objects of one cluster, in their order; what the settings switch off is left out.
///
/// `files` is the tree the objects were rendered from; lines are looked up there. What `unrendered` may bring is not
/// called unknown.
pub fn check(
    subjects: &[Subject<'_>],
    catalogue: &Catalogue,
    settings: &Settings,
    unrendered: &[Unrendered],
    files: &dyn Vfs,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let places = Places::new(files, subjects);
    let parts = owner::parts(subjects);
    let apis = Apis::of(catalogue.asked());
    for (index, subject) in subjects.iter().enumerate() {
        match api::check(subject, index, &apis) {
            Some(gone) => findings.push(gone),
            // What others bring of it is not here: only the whole has all fields.
            None if parts.contains(&index) => {}
            None => {
                schema::check(subject, index, (catalogue, &apis), &places, &mut findings);
                admission::check(subject, index, &places, &mut findings);
            }
        }
    }
    schema::tell_unjudged_once(subjects, &mut findings);
    owner::check(subjects, &mut findings);
    let known = reference::Known::of(subjects, settings.producers());
    reference::check(subjects, &known, unrendered, &places, &mut findings);
    findings.sort_by_key(|found| found.subject);
    let judged = findings.into_iter().filter_map(|found| {
        let subject = subjects.get(found.subject)?;
        let is_wanted = settings.wants(found.rule, subject);
        is_wanted.then(|| found.about(subject))
    });
    judged.collect()
}

/// Returns the line that a field of an object was written at, or the nearest thing above it that was: for checks of kinds
/// that this crate does not know.
pub fn place_of(files: &dyn Vfs, object: &Object, field: &str) -> Option<Place> {
    locate::locate(files, object, &FieldPath::parse(field))
}
