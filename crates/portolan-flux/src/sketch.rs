//! What a release is made of, told without loading its chart; and what of a side matters to the other.
//!
//! Releases with equal sketches give equal objects, as long as both sides serve the same kinds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use portolan_engine::Context;
use portolan_object::{Digest, Object};

use crate::api::NamespacedName;
use crate::fingerprint::Fingerprint;
use crate::index::Emitter;
use crate::loaded_chart::add_defined;
use crate::release;
use crate::release_unit::{ChartUnit, mentions_flux};
use crate::render::Renderer;
use crate::walk::Walked;

impl Renderer<'_> {
    pub(crate) fn context(&self) -> &Context {
        self.cx
    }

    /// The sketches of all releases that are asked for, with the units that would load their charts.
    pub(crate) fn sketches(&self) -> Vec<(NamespacedName, ChartUnit, Digest)> {
        let ids = self.releases.keys();
        ids.filter_map(|id| {
            let (unit, sketch) = self.sketch(id)?;
            Some((id.clone(), unit, sketch))
        })
        .collect()
    }

    /// What a release is made of; nothing when that is not right, or when its values may lead to more of Flux's objects.
    pub(crate) fn sketch(&self, id: &NamespacedName) -> Option<(ChartUnit, Digest)> {
        let release = self.releases.get(id)?;
        let (Ok(spec), Some(location)) = (&release.spec, &release.location) else {
            return None;
        };
        let values = &release.composed.values;
        if mentions_flux(values) {
            return None;
        }
        let index = &self.walker.walk.index;
        let unit = ChartUnit::new(self.cx, self.cluster, index, spec, location);
        let mut sketch = Fingerprint::of("HelmRelease before its chart is loaded");
        release::fingerprint_spec(spec, &mut sketch);
        sketch.flag(self.cluster.profile.helm4);
        sketch.tree(values);
        sketch.text(unit.key.as_str());
        Some((unit, sketch.finish()))
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
        let theirs: HashMap<&Emitter, &Arc<Vec<Object>>> =
            other.walker.walk.index.emitted().collect();
        let mine = self.walker.walk.index.emitted();
        let own = mine.filter(move |(emitter, objects)| {
            let shared = theirs.get(emitter);
            !shared.is_some_and(|shared| Arc::ptr_eq(shared, objects))
        });
        own.flat_map(|(_, objects)| objects.iter())
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
                !release.composed.missing.is_empty() && !is_same && !self.left_out.contains_key(id)
            })
    }
}
