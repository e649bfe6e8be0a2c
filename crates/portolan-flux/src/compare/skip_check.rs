//! Skipped Kustomizations that must still be built, because something else differs.
//!
//! ```text
//! objects that differ, data that is missing ──▶ names ──▶ Kustomizations that mention one are built ──▶ more names …
//! charts that differ                        ──▶ names ──▶ Kustomizations that have releases and mention one are built
//! ```

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use portolan_object::{Object, ObjectId};
use portolan_yaml::{Node, Text, Value};

use crate::api::{Kustomization, NamespacedName, SourceRef};
use crate::compare::skip_plan::{SkipPlan, Skipped};
use crate::release::loaded_chart::FLUX_GROUPS;
use crate::walk::goal_search;
use crate::walk::index::{Index, SOURCE_GROUP, data_id, name_of};
use crate::walk::{self, Walker, data_ids};

/// Two walks that skip Kustomizations.
pub(crate) struct SkipCheck<'a, 'w> {
    pub(crate) skip_plan: &'a SkipPlan,
    pub(crate) before: &'a Walker<'w>,
    pub(crate) after: &'a Walker<'w>,
}

impl SkipCheck<'_, '_> {
    /// The skipped Kustomizations that are not the same on both sides, or may not be.
    pub(crate) fn affected(&self) -> BTreeSet<NamespacedName> {
        let names = self.names();
        let skipped = self.skipped();
        let charts = if skipped.values().any(|skipped| skipped.outline.has_releases) {
            let session = &self.after.cluster.session;
            let charts = self.skip_plan.charts(session);
            let mut mattering = charts.mattering();
            mattering.extend(self.foreign_sources());
            let (one, other) = (&self.before.walk.index, &self.after.walk.index);
            mattering.extend(charts.looking_up(&differing_kinds(one, other)));
            mattering
        } else {
            BTreeSet::new()
        };
        let affected = skipped.into_iter().filter(|(id, skipped)| {
            !self.is_same(id) || self.mentions(skipped, &names) || self.uses(skipped, &charts)
        });
        affected.map(|(id, _)| id.clone()).collect()
    }

    /// The skipped Kustomizations with releases of charts that may define kinds of some groups.
    pub(crate) fn defining(&self, groups: &BTreeSet<String>) -> BTreeSet<NamespacedName> {
        let session = &self.after.cluster.session;
        let charts = self.skip_plan.charts(session).defining(groups);
        let skipped = self.skipped().into_iter();
        let using = skipped.filter(|(_, skipped)| self.uses(skipped, &charts));
        using.map(|(id, _)| id.clone()).collect()
    }

    fn skipped(&self) -> BTreeMap<&NamespacedName, &Skipped> {
        let both = self.before.all_skipped().chain(self.after.all_skipped());
        both.collect()
    }

    /// Whether both sides skip it, and build it of the same spec and data.
    fn is_same(&self, id: &NamespacedName) -> bool {
        let both = self.before.skipped(id).zip(self.after.skipped(id));
        both.is_some_and(|(one, other)| {
            one.digest == other.digest && self.has_same_data(&other.spec)
        })
    }

    /// Whether its variables come from data that is the same on both sides, and holds no objects of Flux.
    fn has_same_data(&self, spec: &Kustomization) -> bool {
        data_ids(spec).all(|id| {
            let (one, other) = (
                self.before.walk.index.data(&id),
                self.after.walk.index.data(&id),
            );
            let mut texts = other.iter().flat_map(|data| data.values());
            let leads_on = |text: &Vec<u8>| memmem::find(text, FLUX_GROUPS.as_bytes()).is_some();
            one == other && !texts.any(leads_on)
        })
    }

    fn uses(&self, skipped: &Skipped, charts: &BTreeSet<String>) -> bool {
        skipped.outline.has_releases && self.mentions(skipped, charts)
    }

    fn mentions(&self, skipped: &Skipped, names: &BTreeSet<String>) -> bool {
        let filling = || walk::filling(&skipped.spec, &self.after.walk.index);
        skipped.outline.mentions(names, filling)
    }

    /// The names of everything that differs or is missing and may be part of something else.
    fn names(&self) -> BTreeSet<String> {
        let (one, other) = (&self.before.walk.index, &self.after.walk.index);
        let differing = differing(one, other).chain(differing(other, one));
        let mut names: BTreeSet<String> = differing.collect();
        names.extend(goal_search::needed_names(self.before));
        names.extend(goal_search::needed_names(self.after));
        while self.add_dependent_sources(&mut names) {}
        names
    }

    /// Adds sources that name something of these; says whether there are any.
    fn add_dependent_sources(&self, names: &mut BTreeSet<String>) -> bool {
        let before = names.len();
        for walker in [self.before, self.after] {
            let objects = walker
                .walk
                .index
                .emitted()
                .flat_map(|(_, objects)| objects.iter());
            let sources = objects.filter(|object| is_source(object));
            let dependent: Vec<String> = sources
                .filter(|source| names_any(source.node(), names))
                .map(|source| source.name().to_owned())
                .collect();
            names.extend(dependent);
        }
        names.len() > before
    }

    /// The names of git repositories that are not this one: charts in them are not at hand.
    fn foreign_sources(&self) -> impl Iterator<Item = String> {
        [self.before, self.after].into_iter().flat_map(|walker| {
            let declared = walker.walk.index.of_kind(SOURCE_GROUP, "GitRepository");
            let foreign = declared.filter(|(_, object)| {
                let source = SourceRef {
                    kind: object.gvk().kind.clone(),
                    id: name_of(object),
                };
                !walker.cluster.is_own(&source, &walker.walk.index)
            });
            foreign.map(|(_, object)| object.name().to_owned())
        })
    }
}

/// The names of objects that one side has and the other has not, or otherwise, and that others may be made of.
fn differing<'a>(one: &'a Index, other: &'a Index) -> impl Iterator<Item = String> + 'a {
    let influential = differing_objects(one, other).filter(|object| is_influential(object));
    influential.map(|object| object.name().to_owned())
}

/// The kinds of objects that only one side has, or that the sides have otherwise.
pub(crate) fn differing_kinds(one: &Index, other: &Index) -> BTreeSet<Text> {
    differing_objects(one, other)
        .chain(differing_objects(other, one))
        .map(|object| object.gvk().kind.clone())
        .collect()
}

/// The objects that one side has and the other has not, or otherwise.
fn differing_objects<'a>(one: &'a Index, other: &'a Index) -> impl Iterator<Item = &'a Object> {
    let own = one.emitted_otherwise(other);
    own.flat_map(|(objects, theirs)| {
        let theirs = theirs.iter().map(|object| (object.id(), object.node()));
        let theirs: BTreeMap<&ObjectId, &Node> = theirs.collect();
        let differs = move |object: &&Object| theirs.get(object.id()) != Some(&object.node());
        objects.iter().filter(differs)
    })
}

/// Whether something else may be made of an object: data, sources, and whatever Flux acts on.
fn is_influential(object: &Object) -> bool {
    object.gvk().group.contains("fluxcd.") || data_id(object).is_some()
}

fn is_source(object: &Object) -> bool {
    object.gvk().group.starts_with("source.") && is_influential(object)
}

/// Whether one of some names stands in a tree.
fn names_any(node: &Node, names: &BTreeSet<String>) -> bool {
    match &node.value {
        Value::Scalar(scalar) => names.contains(scalar.text.as_str()),
        Value::List(list) => list.iter().any(|item| names_any(item, names)),
        Value::Map(map) => map.iter().any(|entry| names_any(&entry.value, names)),
    }
}
