//! Kustomizations that a comparison does not build, for both sides would make them of the same.
//!
//! ```text
//! found on a walk ──▶ Sketch? ──no──▶ built
//!                       └──yes──▶ spared, until something that differs is found to be named in it
//! ```
//!
//! A spared Kustomization gives the same on both sides as long as its files, its variables, and whatever its releases name
//! are the same. All of that is found by name in its [sketch](crate::compare::sketch), so that what differs draws in whoever
//! mentions it. Nothing is lost where a mention means nothing: then more is built than needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use parking_lot::Mutex;
use portolan_object::Digest;

use crate::api::{Kustomization, NamespacedName, SourceRef};
use crate::cluster::Cluster;
use crate::compare::sketch::{Excerpts, Sketch};
use crate::compare::tree_charts::TreeCharts;
use crate::demand::Demand;
use crate::kustomization::build;
use crate::session::Session;
use crate::source::artifact::Artifact;
use crate::walk::{Phase, Walker};

/// Two trees, and what is known of their Kustomizations without building them.
pub(crate) struct Sparing {
    pub(crate) before: Arc<Artifact>,
    pub(crate) after: Arc<Artifact>,
    source: SourceRef,
    sketches: Mutex<HashMap<Digest, Option<Arc<Sketch>>>>,
    excerpts: Excerpts,
    charts: OnceLock<TreeCharts>,
}

/// A Kustomization that is not built.
#[derive(Debug, Clone)]
pub(crate) struct Spared {
    pub(crate) spec: Arc<Kustomization>,
    /// What decides its build, but for files and data.
    pub(crate) digest: Digest,
    pub(crate) sketch: Arc<Sketch>,
}

/// The Kustomizations that a walk spares, by name.
pub(crate) type SparedByName = BTreeMap<NamespacedName, Spared>;

impl Sparing {
    /// Between two states of a cluster, if everything is asked for and it is known where their files differ.
    pub(crate) fn between(before: &Cluster, after: &Cluster, demand: &Demand) -> Option<Self> {
        let (one, other) = (before.own()?, after.own()?);
        let is_same = before.root.source == after.root.source
            && before.profile == after.profile
            && one.has_rules_of(other)
            && one.is_stamped()
            && other.is_stamped();
        (is_same && demand.is_everything()).then(|| Self {
            before: Arc::clone(one),
            after: Arc::clone(other),
            source: after.root.source.clone(),
            sketches: Mutex::default(),
            excerpts: Excerpts::default(),
            charts: OnceLock::new(),
        })
    }

    /// The charts of both trees.
    pub(crate) fn charts(&self, session: &Session) -> &TreeCharts {
        self.charts
            .get_or_init(|| TreeCharts::of(&self.before, &self.after, session))
    }

    /// What can be told of a Kustomization; nothing when it has to be built.
    fn sketch(&self, spec: &Kustomization, digest: Digest) -> Option<Arc<Sketch>> {
        if let Some(known) = self.sketches.lock().get(&digest) {
            return known.clone();
        }
        let is_untouched =
            |path: &Utf8Path| self.before.identity(path) == self.after.identity(path);
        let is_own = spec.source == self.source;
        let sketch = is_own
            .then(|| Sketch::of(spec, self.after.tree(), &self.excerpts, is_untouched))
            .flatten()
            .map(Arc::new);
        self.sketches.lock().insert(digest, sketch.clone());
        sketch
    }
}

impl Walker<'_> {
    /// A Kustomization that is spared so far.
    pub(crate) fn spared(&self, id: &NamespacedName) -> Option<&Spared> {
        let is_unbuilt = self.states.get(id)?.phase == Phase::Found;
        self.spared.get(id).filter(|_| is_unbuilt)
    }

    /// Every Kustomization that is spared so far.
    pub(crate) fn all_spared(&self) -> impl Iterator<Item = (&NamespacedName, &Spared)> {
        let spared = self.spared.iter();
        spared.filter(|(id, _)| self.spared(id).is_some())
    }

    fn unbuilt(&self) -> Vec<(NamespacedName, Arc<Kustomization>)> {
        let states = self.states.iter();
        let found = states.filter(|(_, state)| state.phase == Phase::Found);
        found
            .map(|(id, state)| (id.clone(), Arc::clone(&state.spec)))
            .collect()
    }

    /// Wants what was found and has to be built; says how many that are.
    pub(crate) fn want_unspared(&mut self, sparing: &Sparing) -> usize {
        let mut wanted = Vec::new();
        for (id, spec) in self.unbuilt() {
            let is_known = |spared: &Spared| Arc::ptr_eq(&spared.spec, &spec);
            if self.spared.get(&id).is_some_and(is_known) {
                continue;
            }
            let digest = build::digest_of_spec(&spec);
            match sparing.sketch(&spec, digest) {
                Some(sketch) => {
                    let spared = Spared {
                        spec,
                        digest,
                        sketch,
                    };
                    self.spared.insert(id, spared);
                }
                None => wanted.push(id),
            }
        }
        wanted.iter().filter(|id| self.want(id)).count()
    }
}
