//! Values and variables that changed, each with its place and with the result of a render without the change.
//!
//! ```text
//! values before ─┐                                  ┌─▶ where it is written: release, ConfigMap, values file, variable
//!                ├─▶ leaves that differ ──one by one─┤
//! values now ────┘                                  └─▶ rendered with this one as it was ──▶ what comes of it
//! ```
//!
//! The effect of a value is found by experiment, so it is right whatever a chart does with its values.

use std::sync::Arc;

use portolan_budget::Budget;
use portolan_helm::values::{Table, Tree};
use portolan_object::{FieldPath, FieldSegment, Object, Place};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node, Text};

use crate::api::{HelmRelease, Kustomization, NamespacedName, SourceRef};
use crate::problem::written::{Written, written, written_in_text};
use crate::release;
use crate::release::lookup::Asking;
use crate::render::{RenderedRelease, Rendering};
use crate::walk::index::Emitter;

/// The most values that are tried; a change of more is told by its place alone.
const MAX_TRIED: usize = 16;

/// How deep values are compared.
const MAX_DEPTH: usize = 64;

/// A value or a variable, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// `image.tag` of a release, or the name of a variable.
    pub name: Text,
    /// Where it is written.
    pub place: Place,
}

/// A value of a release that is not what it was.
#[derive(Debug)]
pub struct ChangedValue {
    /// What is to blame: the value, or the variables that stand in it.
    pub causes: Vec<Named>,
    /// What the release would give if the value were still as it was.
    pub without: Arc<Vec<Object>>,
}

/// A rendering, and another one that came before.
#[derive(Clone, Copy)]
pub struct BeforeAfter<'a> {
    /// What was.
    pub before: &'a Rendering,
    /// What is to be.
    pub after: &'a Rendering,
    /// The repository's files that are to be.
    pub files: &'a dyn Vfs,
    /// The source that stands for the repository itself.
    pub source: &'a SourceRef,
}

/// A leaf of the values that differs.
struct Leaf<'a> {
    path: FieldPath,
    before: Option<&'a Tree>,
}

impl BeforeAfter<'_> {
    /// The values of a release that differ and whose places are known; nothing when there are too many.
    pub fn changed_values(&self, id: &NamespacedName) -> Vec<ChangedValue> {
        let was = self.before.releases.get(id);
        let Some((was, is)) = was.zip(self.after.releases.get(id)) else {
            return Vec::new();
        };
        let mut leaves = Vec::new();
        differing(
            &was.composed.values,
            &is.composed.values,
            &FieldPath::root(),
            &mut leaves,
        );
        if leaves.len() > MAX_TRIED {
            return Vec::new();
        }
        let changed = leaves.iter().filter_map(|leaf| {
            let causes = self.causes(is, leaf);
            if causes.is_empty() {
                return None;
            }
            let values = reverted(&is.composed.values, leaf.path.segments(), leaf.before);
            let without = is.with_values(&values, was)?;
            Some(ChangedValue { causes, without })
        });
        changed.collect()
    }

    /// The place of a field of an object that a Kustomization gives, or the variables that stand in it and differ.
    pub fn written(&self, owner: &NamespacedName, object: &Object, path: &FieldPath) -> Vec<Named> {
        let emitter = Emitter::Kustomization(owner.clone());
        let value = path.find(object.node()).filter(|_| self.is_own(&emitter));
        let written = value.and_then(|value| written(object, path, value, self.files));
        match written {
            Some(written) => self.blamed(&Text::default(), &written, &emitter),
            None => Vec::new(),
        }
    }

    /// What a value of a release comes from: what stands in the release wins over what it refers to.
    fn causes(&self, release: &RenderedRelease, leaf: &Leaf<'_>) -> Vec<Named> {
        let name = Text::from(leaf.path.dotted().to_string());
        let path = FieldPath::from_keys(["spec", "values"]).join(&leaf.path);
        if let Some(value) = path.find(release.definition.node()) {
            let own = self.is_own(&release.emitter).then_some(&release.definition);
            let written = own.and_then(|own| written(own, &path, value, self.files));
            let blamed = written.map(|written| self.blamed(&name, &written, &release.emitter));
            return blamed.unwrap_or_default();
        }
        let place = release.spec.as_ref().ok();
        let place = place.and_then(|spec| self.referenced(spec, leaf));
        let named = place.map(|place| Named { name, place });
        named.into_iter().collect()
    }

    /// Where a value stands in the last reference of a release that has it.
    fn referenced(&self, spec: &HelmRelease, leaf: &Leaf<'_>) -> Option<Place> {
        let index = &self.after.walk.index;
        let mut references = spec.values_from.iter().rev();
        let (reference, text, at) = references.find_map(|reference| {
            let data = index.data(&reference.data_id(&spec.id.namespace))?;
            let text = std::str::from_utf8(data.get(reference.key.as_str())?).ok()?;
            let text = text.to_owned();
            let at = match &reference.target_path {
                Some(target) => {
                    (*target == leaf.path.dotted().to_string().as_str()).then_some(None)?
                }
                None => {
                    let values = portolan_yaml::parse_one(text.clone(), Dialect::Helm).ok()?;
                    Some(leaf.path.find(&values)?.at)
                }
            };
            Some((reference, text, at))
        })?;
        let (_, id) = reference.data_id(&spec.id.namespace);
        let (emitter, object) = index.named("", reference.kind.as_str(), &id)?;
        let object = self.is_own(emitter).then_some(object)?;
        let Some(at) = at else {
            let path = FieldPath::from_keys(["data", reference.key.as_str()]);
            return Some(written(object, &path, &Node::string(text), self.files)?.place);
        };
        written_in_text(object, &reference.key, &text, at, self.files)
    }

    /// The variables in a text that differ, each where its value is written; without any, the text itself.
    fn blamed(&self, name: &Text, written: &Written, emitter: &Emitter) -> Vec<Named> {
        let itself = || Named {
            name: name.clone(),
            place: written.place.clone(),
        };
        let Emitter::Kustomization(id) = emitter else {
            return vec![itself()];
        };
        let differing = written.variables.iter().filter(|variable| {
            variable_of(self.before, id, variable) != variable_of(self.after, id, variable)
        });
        let mut differing = differing.peekable();
        if differing.peek().is_none() {
            return vec![itself()];
        }
        let places = differing.filter_map(|variable| {
            let place = self.variable_place(id, variable)?;
            Some(Named {
                name: variable.clone(),
                place,
            })
        });
        places.collect()
    }

    /// Where a variable of a Kustomization gets its value.
    fn variable_place(&self, id: &NamespacedName, variable: &str) -> Option<Place> {
        let value = Node::string(String::from_utf8(variable_of(self.after, id, variable)?).ok()?);
        let walked = self.after.walk.kustomizations.get(id)?;
        let post_build = walked.spec.as_ref().ok()?.post_build.as_ref()?;
        if post_build
            .substitute
            .iter()
            .any(|(name, _)| *name == variable)
        {
            let path = FieldPath::from_keys(["spec", "postBuild", "substitute", variable]);
            let own = walked
                .emitter
                .as_ref()
                .is_some_and(|emitter| self.is_own(emitter));
            let definition = walked.definition.as_ref().filter(|_| own)?;
            return Some(written(definition, &path, &value, self.files)?.place);
        }
        let index = &self.after.walk.index;
        let name = |name: &Text| NamespacedName::new(id.namespace.clone(), name.clone());
        let mut references = post_build.from.iter().rev();
        let reference = references.find(|reference| {
            let data = index.data(&(reference.kind, name(&reference.name)));
            data.is_some_and(|data| data.contains_key(variable))
        })?;
        let (emitter, object) = index.named("", reference.kind.as_str(), &name(&reference.name))?;
        let object = self.is_own(emitter).then_some(object)?;
        let path = FieldPath::from_keys(["data", variable]);
        Some(written(object, &path, &value, self.files)?.place)
    }

    /// Whether what emits something is built of the repository's own files.
    fn is_own(&self, emitter: &Emitter) -> bool {
        let Emitter::Kustomization(id) = emitter else {
            return false;
        };
        let walked = self.after.walk.kustomizations.get(id);
        let spec = walked.and_then(|walked| walked.spec.as_ref().ok());
        // Places in an artifact that is composed of the repository's files are places of those.
        let is_composed = |spec: &Kustomization| spec.source.kind == "ExternalArtifact";
        spec.is_some_and(|spec| spec.source == *self.source || is_composed(spec))
    }
}

impl RenderedRelease {
    /// What it would give with other values; where that is all it was made of before, what it gave then.
    fn with_values(&self, values: &Tree, before: &Self) -> Option<Arc<Vec<Object>>> {
        let (spec, chart) = (self.spec.as_ref().ok()?, self.chart.as_ref()?);
        let surroundings = self.rendered_for.as_ref()?;
        let (capabilities, profile) = (&surroundings.capabilities, surroundings.profile);
        let digest = release::fingerprint(spec, chart, values, capabilities, profile);
        if before.digest == Some(digest) {
            return before.objects.clone();
        }
        // A trial fetches nothing: where a schema lies elsewhere, nothing is said.
        let view = surroundings.view.clone();
        let asking = view.map(|view| Arc::new(Asking::new(view)));
        let budget = Budget::default();
        let released = release::render(
            spec,
            chart,
            values.clone(),
            surroundings,
            asking,
            None,
            &budget,
        );
        released.ok()?.objects()
    }
}

/// What a variable of a Kustomization stands for.
fn variable_of(rendering: &Rendering, id: &NamespacedName, variable: &str) -> Option<Vec<u8>> {
    let walked = rendering.walk.kustomizations.get(id)?;
    let post_build = walked.spec.as_ref().ok()?.post_build.as_ref()?;
    let mut own = post_build.substitute.iter();
    if let Some((_, value)) = own.find(|(name, _)| *name == variable) {
        return Some(value.as_bytes().to_vec());
    }
    post_build.from.iter().rev().find_map(|reference| {
        let name = NamespacedName::new(id.namespace.clone(), reference.name.clone());
        let data = rendering.walk.index.data(&(reference.kind, name))?;
        data.get(variable).cloned()
    })
}

/// The leaves in which two values differ. Lists of different lengths are leaves.
fn differing<'a>(before: &'a Tree, after: &'a Tree, path: &FieldPath, leaves: &mut Vec<Leaf<'a>>) {
    let is_near = path.segments().len() < MAX_DEPTH;
    match (before, after) {
        _ if before == after => {}
        (Tree::Table(was), Tree::Table(is)) if is_near => {
            for (key, after) in is.iter() {
                let path = path.then(FieldSegment::Key(key.clone()));
                match was.get(key) {
                    Some(before) => differing(before, after, &path, leaves),
                    None => leaves.push(Leaf { path, before: None }),
                }
            }
            for (key, before) in was.iter().filter(|(key, _)| is.get(key).is_none()) {
                leaves.push(Leaf {
                    path: path.then(FieldSegment::Key(key.clone())),
                    before: Some(before),
                });
            }
        }
        (Tree::List(was), Tree::List(is)) if is_near && was.len() == is.len() => {
            for (index, (before, after)) in was.iter().zip(is.iter()).enumerate() {
                let path = path.then(FieldSegment::Index(index));
                differing(before, after, &path, leaves);
            }
        }
        _ => leaves.push(Leaf {
            path: path.clone(),
            before: Some(before),
        }),
    }
}

/// Values with one of them as it was.
fn reverted(values: &Tree, path: &[FieldSegment], before: Option<&Tree>) -> Tree {
    let Some((segment, rest)) = path.split_first() else {
        return before.cloned().unwrap_or_default();
    };
    match (values, segment) {
        (Tree::Table(table), FieldSegment::Key(key)) => {
            let mut table = Table::clone(table);
            let below = table.remove(key).unwrap_or_default();
            let value = match rest {
                [] => before.cloned(),
                rest => Some(reverted(&below, rest, before)),
            };
            if let Some(value) = value {
                table.insert(key.clone(), value);
            }
            Tree::Table(Arc::new(table))
        }
        (Tree::List(items), FieldSegment::Index(index)) => {
            let mut items = Vec::clone(items);
            if let Some(item) = items.get_mut(*index) {
                *item = reverted(item, rest, before);
            }
            Tree::List(Arc::new(items))
        }
        _ => values.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Tree {
        Tree::read_table(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_leaf_that_differs_is_found_and_put_back() {
        let before = values("a: {b: 1, gone: x}\nl: [{k: 1}, 2]\nshort: [1]\nsame: {s: 1}\n");
        let after =
            values("a: {b: 2, 'new.key': y}\nl: [{k: 3}, 2]\nshort: [1, 2]\nsame: {s: 1}\n");
        let mut leaves = Vec::new();
        differing(&before, &after, &FieldPath::root(), &mut leaves);
        let names: Vec<String> = leaves
            .iter()
            .map(|leaf| leaf.path.dotted().to_string())
            .collect();
        assert_eq!(names, ["a.b", "a.\"new.key\"", "a.gone", "l[0].k", "short"]);
        let back = leaves.iter().fold(after.clone(), |values, leaf| {
            reverted(&values, leaf.path.segments(), leaf.before)
        });
        assert_eq!(back, before);
    }
}
