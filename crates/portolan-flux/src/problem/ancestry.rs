//! The parts of a release, each with its place: its declaration, what changed the declaration, and where its values
//! are set.

use portolan_object::{Act, Object, Place, Step};

use crate::api::{HelmRelease, NamespacedName};
use crate::render::RenderedRelease;
use crate::walk::index::Index;

impl RenderedRelease {
    /// The history of the object that declares it, then the sources of its values, later ones over earlier ones.
    pub fn made_of(&self, index: &Index) -> Vec<Step> {
        let origin = self.definition.origin();
        let declared = origin.steps();
        let mut steps: Vec<Step> = declared.into_iter().cloned().collect();
        if let Ok(spec) = &self.spec {
            steps.extend(references(spec, index));
            steps.extend(inline(&self.definition));
        }
        steps
    }
}

fn references(spec: &HelmRelease, index: &Index) -> impl Iterator<Item = Step> {
    spec.values_from.iter().map(|reference| {
        let kind = reference.kind.as_str();
        let id = NamespacedName {
            namespace: spec.id.namespace.clone(),
            name: reference.name.clone(),
        };
        let step = Step::new(Act::Read, format!("values of {kind} {id}"));
        let found = index.named("", kind, &id);
        let place = found.and_then(|(_, object)| object.place());
        match place {
            Some(place) => step.at(place),
            None => step,
        }
    })
}

/// The values that stand in the declaration itself; their line is not known when a patch brought them.
fn inline(definition: &Object) -> Option<Step> {
    // A clone is read, so that a packed definition stays packed.
    let definition = definition.clone();
    let values = definition.node().at_path(&["spec", "values"])?;
    let place = Place::new(definition.place()?.file, values.at);
    Some(Step::new(Act::Read, "values").at(place))
}
