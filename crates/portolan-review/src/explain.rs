//! Which file, patch, value or substitution produced an object or one of its fields.
//!
//! ```text
//! object ──▶ its origin, step by step
//! field  ──▶ candidates (lines of the files it is made of) ──▶ experiment: the line changed, rendered again
//!                                                          ──▶ the lines on which the field depends
//! ```
//!
//! A field is explained by experiment, not by guessing: a line is named only if a render with that line changed gives
//! another value. So it works through templates, patches, generators and variables.

mod candidate_lines;
mod causes;
mod deciding;
mod field_query;
mod named_object;
mod value_path;

use std::sync::Arc;

use portolan_flux::{Cluster, Depth, Emitter};
use portolan_object::Step;

pub use causes::{CauseLine, ObjectExplanation};
pub use field_query::FieldQuery;
pub use named_object::NamedObject;

use crate::inventory::{self, PlacedObject};
use crate::{FluxRepository, RenderedRepository, Runner};
use candidate_lines::Role;

/// A field that is explained.
pub struct ExplainedField<'a> {
    /// Its path.
    pub path: &'a FieldQuery,
    /// Its value as it may be shown.
    pub shown: String,
    /// Whether lines of Secrets may be shown.
    pub show_secrets: bool,
}

/// Renders the repository as far as an object takes: charts are fetched only if nothing else gives it.
pub fn render_for<R: Runner>(
    repository: &FluxRepository,
    what: &str,
    namespace: Option<&str>,
    runner: &R,
) -> Result<RenderedRepository, R::Error> {
    let rendered = repository.at_hand().render(Depth::Releases, runner)?;
    let is_found = NamedObject::find(what, namespace, &inventory::objects(&rendered)).is_ok();
    if is_found {
        Ok(rendered)
    } else {
        repository.render(Depth::Releases, runner)
    }
}

/// How an object came about.
pub fn explain_object(
    placed: &PlacedObject<'_>,
    rendered: &RenderedRepository,
) -> ObjectExplanation {
    ObjectExplanation::of_object(placed, &made_of(placed, rendered))
}

/// On which lines a field of an object depends; rendered must be of the repository's files as they are now.
pub fn explain_field<R: Runner>(
    repository: &FluxRepository,
    rendered: &RenderedRepository,
    placed: &PlacedObject<'_>,
    field: ExplainedField<'_>,
    runner: &R,
) -> Result<ObjectExplanation, R::Error> {
    let value = field.path.find(placed.object.node())?;
    let (candidates, substitutions) =
        candidate_lines::candidates(placed, field.path, value, rendered);
    let mut deciding =
        deciding::deciding(placed, field.path, value, candidates, repository, runner)?;
    let is_variable = |line: &candidate_lines::CandidateLine| line.role == Role::Variable;
    if deciding.iter().any(is_variable) {
        deciding.extend(substitutions);
    }
    Ok(ObjectExplanation::of_field(
        placed,
        field.shown,
        deciding,
        field.show_secrets,
    ))
}

/// What the release that gave an object is made of; nothing for objects of others.
fn made_of(placed: &PlacedObject<'_>, rendered: &RenderedRepository) -> Vec<Step> {
    let mut clusters = rendered.clusters.iter();
    let of_this =
        |(cluster, _): &&(Arc<Cluster>, _)| std::ptr::eq(cluster.as_ref(), placed.cluster);
    match (&placed.owner, clusters.find(of_this)) {
        (Emitter::Release(id), Some((_, rendering))) => {
            let release = rendering.releases.get(id);
            release.map_or_else(Vec::new, |release| release.made_of(&rendering.walk.index))
        }
        _ => Vec::new(),
    }
}
