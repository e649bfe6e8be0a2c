//! Releases whose inputs are equal on both sides of a comparison, found without rendering them; and which of them
//! must be rendered because the other side needs them.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use portolan_helm::values::Tree;
use portolan_object::{Digest, Object};
use portolan_vfs::Vfs;
use portolan_yaml::{Node, Text, Value};

use crate::api::{HelmRelease, NamespacedName};
use crate::compare::inputs::input_differences;
use crate::compare::not_rendered::fail_alike;
use crate::compare::skip_check::differing_kinds;
use crate::release::chart::{self, Location};
use crate::release::loaded_chart::{FLUX_GROUPS, add_defined};
use crate::release::release_unit::{self, ChartUnit};
use crate::render::{RELEASE_GROUP, Renderer};
use crate::walk::Walked;
use crate::walk::index::{DataId, name_of};

/// Two sides, and which charts they were found to have in common.
pub(crate) struct EqualInputs<'a, 'r> {
    one: &'a Renderer<'r>,
    other: &'a Renderer<'r>,
    charts: HashMap<Location, Option<Arc<ChartUnit>>>,
    /// Whether what is not emitted is the same on both sides; asked for once.
    is_whole: OnceCell<bool>,
}

impl<'a, 'r> EqualInputs<'a, 'r> {
    pub(crate) fn new(one: &'a Renderer<'r>, other: &'a Renderer<'r>) -> Self {
        Self {
            one,
            other,
            charts: HashMap::new(),
            is_whole: OnceCell::new(),
        }
    }

    /// The releases that are asked for and that both sides make of the same, each with what loads its chart.
    pub(crate) fn releases(&mut self) -> Vec<(NamespacedName, Arc<ChartUnit>)> {
        let one = self.one;
        let declared = one.walker.walk.index.of_kind(RELEASE_GROUP, "HelmRelease");
        let asked = declared.map(|(_, object)| name_of(object));
        let asked = asked.filter(|id| one.demand.releases.includes(id));
        asked
            .filter_map(|id| {
                let unit = self.chart_of(&id)?;
                Some((id, unit))
            })
            .collect()
    }

    /// What loads the chart of a release, if its inputs are equal on both sides and its values hold no objects of Flux.
    /// The kinds that the two clusters serve are compared elsewhere.
    pub(crate) fn chart_of(&mut self, id: &NamespacedName) -> Option<Arc<ChartUnit>> {
        let (mine, theirs) = (self.one.definition(id)?, self.other.definition(id)?);
        let (one, other) = (&self.one.cluster, &self.other.cluster);
        if one.profile != other.profile || one.kubernetes.value != other.kubernetes.value {
            return None;
        }
        let spec = HelmRelease::read(mine.node()).ok()?;
        let values = spec.values.as_ref();
        if values.is_some_and(mentions_flux) {
            return None;
        }
        // An object that both sides share says the same; comparing the data it names is all that is left to do.
        let is_same = if std::ptr::eq(mine, theirs) {
            self.has_same_data(&spec)
        } else {
            self.has_same_inputs(id)
        };
        if is_same {
            self.common_chart(&spec)
        } else {
            None
        }
    }

    /// Whether all inputs of a release are known and equal, and its values hold no objects of Flux.
    fn has_same_inputs(&self, id: &NamespacedName) -> bool {
        let values = self.one.values_of(id).unwrap_or_default();
        let other = self.other.release_inputs(id, self.is_whole());
        let inputs = self.one.release_inputs(id, self.is_whole()).zip(other);
        let is_same = inputs.is_some_and(|(one, other)| input_differences(&other, &one).is_empty());
        is_same && !release_unit::mentions(&values, FLUX_GROUPS)
    }

    /// Whether a release's values name a directory of the repository, which its chart may tell Flux to apply.
    pub(crate) fn leads_into_repository(&self, id: &NamespacedName) -> bool {
        let values = self.one.values_of(id).unwrap_or_default();
        let own = self.one.cluster.own();
        own.is_some_and(|own| names_directory(&values, "", own.tree()))
    }

    /// Whether data that neither side emits is the same on both.
    fn is_whole(&self) -> bool {
        let fail_alike = || fail_alike(self.other, self.one);
        *self.is_whole.get_or_init(fail_alike)
    }

    /// Whether the data that values come from is the same on both sides, and holds no objects of Flux.
    fn has_same_data(&self, release: &HelmRelease) -> bool {
        release.values_from.iter().all(|reference| {
            let name = NamespacedName::new(release.id.namespace.clone(), reference.name.clone());
            let id: DataId = (reference.kind, name);
            let data = |side: &Renderer<'_>| side.walker.walk.index.data(&id);
            let (mine, theirs) = (data(self.one), data(self.other));
            let mut texts = mine.iter().flat_map(|data| data.values());
            let leads_on = |text: &Vec<u8>| memchr::memmem::find(text, FLUX_GROUPS.as_bytes());
            let is_known = mine.is_some() || reference.optional || self.is_whole();
            mine == theirs && is_known && texts.find_map(leads_on).is_none()
        })
    }

    /// What loads a release's chart, if it is the same on both sides.
    fn common_chart(&mut self, release: &HelmRelease) -> Option<Arc<ChartUnit>> {
        let location = |side: &Renderer<'_>| {
            let index = &side.walker.walk.index;
            side.cluster.locate_chart(release, index).ok()
        };
        let (mine, theirs) = (location(self.one)?, location(self.other)?);
        if mine != theirs {
            return None;
        }
        // How a chart elsewhere is reached is for each release to say.
        let is_in_tree = matches!(mine, Location::Tree { .. });
        if is_in_tree && let Some(known) = self.charts.get(&mine) {
            return known.clone();
        }
        let unit = |side: &Renderer<'_>| {
            let index = &side.walker.walk.index;
            ChartUnit::new(side.cx, side.cluster, index, release, &mine)
        };
        let (one, other) = (unit(self.one), unit(self.other));
        let common = (one.key == other.key).then(|| Arc::new(one));
        self.charts.insert(mine, common.clone());
        common
    }
}

impl Renderer<'_> {
    pub(crate) fn definition(&self, id: &NamespacedName) -> Option<&Object> {
        let index = &self.walker.walk.index;
        let (_, object) = index.named(RELEASE_GROUP, "HelmRelease", id)?;
        Some(object)
    }

    /// The kinds that are defined by what the other side does not have in the same way.
    pub(crate) fn own_kinds(&self, other: &Self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for object in self.own_objects(other) {
            add_defined(&mut kinds, object);
        }
        // A chart that the other side could not load says nothing about what differs.
        let charts = |side: &Self, other: &Self| -> HashMap<Digest, _> {
            let is_unloaded = |id: &NamespacedName| {
                let release = other.releases.get(id);
                release.is_some_and(|release| release.chart.is_none())
            };
            let releases = side.releases.iter().filter(|(id, _)| !is_unloaded(id));
            let charts = releases.filter_map(|(_, release)| release.chart.clone());
            charts.map(|chart| (chart.digest(), chart)).collect()
        };
        let known: HashSet<Digest> = charts(other, self).into_keys().collect();
        for (digest, chart) in charts(self, other) {
            if !known.contains(&digest) {
                kinds.extend(chart.crds().iter().cloned());
            }
        }
        kinds
    }

    /// The kinds of objects that the other side does not have, or has otherwise.
    pub(crate) fn differing_kinds(&self, other: &Self) -> BTreeSet<Text> {
        differing_kinds(&self.walker.walk.index, &other.walker.walk.index)
    }

    /// The objects of emitters that give something else on the other side.
    fn own_objects<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a Object> {
        let (mine, theirs) = (&self.walker.walk.index, &other.walker.walk.index);
        let own = mine.emitted_otherwise(theirs);
        own.flat_map(|(objects, _)| objects)
    }

    /// Whether something that differs from the other side, or fails, wants data that nothing emits so far.
    pub(crate) fn lacks_data(&self, other: &Self) -> bool {
        let is_shared = |id: &NamespacedName, walked: &Walked| {
            let theirs = other.walker.walk.kustomizations.get(id);
            let theirs = theirs.and_then(|theirs| theirs.built.as_ref());
            let both = walked.built.as_ref().zip(theirs);
            both.is_some_and(|(mine, theirs)| Arc::ptr_eq(mine, theirs))
        };
        let mut kustomizations = self.walker.walk.kustomizations.iter();
        let mut releases = self.releases.iter();
        kustomizations.any(|(id, walked)| !walked.missing.is_empty() && !is_shared(id, walked))
            || releases.any(|(id, release)| {
                let theirs = other.releases.get(id).and_then(|theirs| theirs.digest);
                let is_same = release.digest.is_some() && release.digest == theirs;
                !release.composed.missing.is_empty() && !is_same
            })
    }
}

/// Whether a text in values names a directory; a word without a slash only does so where a path is asked for.
fn names_directory(values: &Tree, key: &str, files: &dyn Vfs) -> bool {
    match values {
        Tree::Text(text) => {
            let is_path = text.contains('/') || key == "path";
            let is_relative = !text.starts_with('/') && !text.contains("://");
            let place = chart::in_tree(text);
            is_path && is_relative && place != "/" && files.is_directory(&place)
        }
        Tree::List(items) => items.iter().any(|item| names_directory(item, key, files)),
        Tree::Table(table) => {
            let mut entries = table.iter();
            entries.any(|(key, value)| names_directory(value, key, files))
        }
        _ => false,
    }
}

/// Whether values hold an object of Flux, for charts that print what they are given.
fn mentions_flux(values: &Node) -> bool {
    match &values.value {
        Value::Scalar(scalar) => scalar.text.contains(FLUX_GROUPS),
        Value::List(list) => list.iter().any(mentions_flux),
        Value::Map(map) => map.iter().any(|entry| mentions_flux(&entry.value)),
    }
}
