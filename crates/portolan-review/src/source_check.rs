//! Refuses mappings for sources that no cluster has: they are mistakes of the user.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_flux::api::SourceRef;
use portolan_flux::{Rendering, SourcePattern};
use portolan_object::nearest;
use portolan_vfs::Vfs;

use crate::ReviewError;

/// Refuses a mapping for a source that no cluster has; where not everything was looked at, it may have.
pub(crate) fn refuse_unknown_sources<'a>(
    sources: &[(SourcePattern, Arc<dyn Vfs>)],
    renderings: impl Iterator<Item = &'a Rendering>,
) -> Result<(), ReviewError> {
    if sources.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    for rendering in renderings {
        if !rendering.walk.is_complete {
            return Ok(());
        }
        known.extend(rendering.sources());
    }
    let mut patterns = sources.iter().map(|(pattern, _)| pattern);
    let unknown = patterns.find(|pattern| !known.iter().any(|source| pattern.matches(source)));
    unknown.map_or(Ok(()), |pattern| Err(unknown_source(pattern, &known)))
}

fn unknown_source(pattern: &SourcePattern, known: &BTreeSet<SourceRef>) -> ReviewError {
    let error = ReviewError::refused(format!("--source {pattern}: there is no such source"));
    let wanted = [pattern.name.to_string()];
    match nearest(&wanted, known.iter(), |source| source.id.name.as_str()) {
        Some(near) => error.hint(format!(
            "there is `{}/{}`; `portolan get sources` lists all {}",
            near.kind,
            near.id,
            known.len()
        )),
        None => error.hint("the repository refers to no source at all"),
    }
}
