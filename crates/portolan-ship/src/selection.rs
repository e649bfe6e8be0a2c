//! A part of a project: some artifacts, and the deploy steps and verifications that have to do with them.

use std::collections::BTreeSet;

use portolan_object::similar;

use crate::document::Ship;
use crate::render::RenderedStep;

/// A name that is not that of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no artifact `{name}`")]
pub struct UnknownArtifact {
    /// The name.
    pub name: String,
    /// Which may be meant, or which there are.
    pub hint: String,
}

/// The artifacts of this name, sorted; all of the document in its order if none is named.
///
/// # Errors
/// When a name is not that of an artifact.
pub fn choose_artifacts<'a>(
    ship: &Ship,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<Vec<String>, UnknownArtifact> {
    let mut chosen = BTreeSet::new();
    for name in names {
        let artifact = ship.artifact(name);
        chosen.insert(&artifact.ok_or_else(|| ship.unknown_artifact(name))?.name);
    }
    let all = || ship.artifacts.iter().map(|it| it.name.clone());
    Ok(if chosen.is_empty() {
        all().collect()
    } else {
        chosen.into_iter().cloned().collect()
    })
}

impl Ship {
    /// Says of a name that no artifact has which may be meant.
    pub fn unknown_artifact(&self, name: &str) -> UnknownArtifact {
        let names = || self.artifacts.iter().map(|artifact| artifact.name.as_str());
        let hint = match similar(name, names(), |name| name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        UnknownArtifact {
            name: name.to_owned(),
            hint,
        }
    }
}

/// The steps that name the image of one of these artifacts; all if no artifact is named.
///
/// They need only each other. Nothing is pruned by them: only a whole deployment may delete what is no longer there.
pub fn select_steps(steps: Vec<RenderedStep>, artifacts: &[String]) -> Vec<RenderedStep> {
    if artifacts.is_empty() {
        return steps;
    }
    let is_named = |step: &RenderedStep| artifacts.iter().any(|it| step.artifacts.contains(it));
    let mut selected: Vec<RenderedStep> = steps.into_iter().filter(is_named).collect();
    let names: BTreeSet<String> = selected.iter().map(|it| it.step.name.clone()).collect();
    for rendered in &mut selected {
        rendered.step.needs.retain(|need| names.contains(need));
        rendered.step.prune = false;
    }
    selected
}

/// The document with the verifications alone that need none but these steps.
#[must_use]
pub fn select_verifications(ship: &Ship, steps: &[RenderedStep]) -> Ship {
    let is_there = |need: &String| steps.iter().any(|step| step.step.name == *need);
    let mut selected = ship.clone();
    selected
        .verify
        .retain(|check| check.needs.iter().all(is_there));
    selected
}
