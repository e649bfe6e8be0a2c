//! A part of a project: some artifacts, and the deploy steps and verifications that have to do with them.

use std::collections::BTreeSet;

use crate::document::Ship;
use crate::render::RenderedStep;

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
