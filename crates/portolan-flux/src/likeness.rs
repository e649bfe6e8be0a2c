//! What both sides of a comparison make of the same, told without rendering it; and what matters to the other side.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use portolan_object::{Digest, Object};
use portolan_yaml::{Node, Value};

use crate::api::{HelmRelease, NamespacedName};
use crate::chart::Location;
use crate::index::{DataId, name_of};
use crate::loaded_chart::{FLUX_GROUPS, add_defined};
use crate::release_unit::ChartUnit;
use crate::render::{RELEASE_GROUP, Renderer};
use crate::walk::Walked;

/// Two sides, and which charts they were found to have in common.
pub(crate) struct Likeness<'a, 'r> {
    one: &'a Renderer<'r>,
    other: &'a Renderer<'r>,
    charts: HashMap<Location, Option<Arc<ChartUnit>>>,
}

impl<'a, 'r> Likeness<'a, 'r> {
    pub(crate) fn new(one: &'a Renderer<'r>, other: &'a Renderer<'r>) -> Self {
        Self {
            one,
            other,
            charts: HashMap::new(),
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

    /// What loads the chart of a release, if it is made of the same on both sides: the same object, with equal data for
    /// its values and the same chart, as long as both sides serve the same kinds.
    pub(crate) fn chart_of(&mut self, id: &NamespacedName) -> Option<Arc<ChartUnit>> {
        let definition = self.one.definition(id)?;
        let is_same = std::ptr::eq(definition, self.other.definition(id)?);
        if !is_same || self.one.cluster.profile != self.other.cluster.profile {
            return None;
        }
        let spec = HelmRelease::read(definition.node()).ok()?;
        let values = spec.values.as_ref();
        if values.is_some_and(mentions_flux) || !self.has_same_data(&spec) {
            return None;
        }
        self.common_chart(&spec)
    }

    /// Whether the data that values come from is the same on both sides, and holds no objects of Flux.
    fn has_same_data(&self, release: &HelmRelease) -> bool {
        release.values_from.iter().all(|reference| {
            let name = NamespacedName::new(release.id.namespace.clone(), reference.name.clone());
            let id: DataId = (reference.kind, name);
            let data = |side: &Renderer<'_>| side.walker.walk.index.data(&id).cloned();
            let (mine, theirs) = (data(self.one), data(self.other));
            let mut texts = mine.iter().flat_map(|data| data.values());
            let leads_on = |text: &Vec<u8>| memchr::memmem::find(text, FLUX_GROUPS.as_bytes());
            mine == theirs && texts.find_map(leads_on).is_none()
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
    fn definition(&self, id: &NamespacedName) -> Option<&Object> {
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
        let charts = |side: &Self| -> HashMap<Digest, _> {
            let charts = side.releases.values();
            let charts = charts.filter_map(|release| release.chart.clone());
            charts.map(|chart| (chart.digest(), chart)).collect()
        };
        let known: HashSet<Digest> = charts(other).into_keys().collect();
        for (digest, chart) in charts(self) {
            if !known.contains(&digest) {
                kinds.extend(chart.crds().iter().cloned());
            }
        }
        kinds
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

/// Whether values hold an object of Flux, for charts that print what they are given.
fn mentions_flux(values: &Node) -> bool {
    match &values.value {
        Value::Scalar(scalar) => scalar.text.contains(FLUX_GROUPS),
        Value::List(list) => list.iter().any(mentions_flux),
        Value::Map(map) => map.iter().any(|entry| mentions_flux(&entry.value)),
    }
}
