//! Kustomizations that a comparison does not build, because their inputs are equal on both sides.
//!
//! ```text
//! found on a walk ──▶ Outline? ──no──▶ built
//!                       └──yes──▶ skipped, until something that differs is found to be named in it
//! ```
//!
//! A skipped Kustomization gives the same result on both sides as long as its files, its variables, and everything
//! that its releases name are the same. All these names are in its [outline](crate::compare::outline). So if
//! something differs, every Kustomization that mentions it is built. A mention without effect costs time, but never
//! changes the result.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use parking_lot::Mutex;
use portolan_object::Digest;

use crate::api::{Kustomization, NamespacedName, SourceRef};
use crate::cluster::Cluster;
use crate::compare::outline::{Excerpts, Outline};
use crate::compare::tree_charts::TreeCharts;
use crate::demand::Demand;
use crate::kustomization::build;
use crate::session::Session;
use crate::source::artifact::Artifact;
use crate::walk::{Phase, Walker};

/// Two trees, and what is known of their Kustomizations without building them.
pub(crate) struct SkipPlan {
    pub(crate) before: Arc<Artifact>,
    pub(crate) after: Arc<Artifact>,
    source: SourceRef,
    outlines: Mutex<HashMap<Digest, Option<Arc<Outline>>>>,
    excerpts: Excerpts,
    charts: OnceLock<TreeCharts>,
}

/// A Kustomization that is not built.
#[derive(Debug, Clone)]
pub(crate) struct Skipped {
    pub(crate) spec: Arc<Kustomization>,
    /// What decides its build, but for files and data.
    pub(crate) digest: Digest,
    pub(crate) outline: Arc<Outline>,
}

/// The Kustomizations that a walk skips, by name.
pub(crate) type SkippedByName = BTreeMap<NamespacedName, Skipped>;

impl SkipPlan {
    /// Between two states of a cluster, if everything is asked for and it is known where their files differ.
    pub(crate) fn between(before: &Cluster, after: &Cluster, demand: &Demand) -> Option<Self> {
        let (one, other) = (before.own()?, after.own()?);
        let is_same = before.root.source == after.root.source
            && before.profile == after.profile
            && before.kubernetes.value == after.kubernetes.value
            && one.has_rules_of(other)
            && one.is_stamped()
            && other.is_stamped();
        (is_same && demand.is_everything()).then(|| Self {
            before: Arc::clone(one),
            after: Arc::clone(other),
            source: after.root.source.clone(),
            outlines: Mutex::default(),
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
    fn outline(&self, spec: &Kustomization, digest: Digest) -> Option<Arc<Outline>> {
        if let Some(known) = self.outlines.lock().get(&digest) {
            return known.clone();
        }
        let is_untouched =
            |path: &Utf8Path| self.before.identity(path) == self.after.identity(path);
        let is_own = spec.source == self.source;
        let outline = is_own
            .then(|| Outline::of(spec, self.after.tree(), &self.excerpts, is_untouched))
            .flatten()
            .map(Arc::new);
        self.outlines.lock().insert(digest, outline.clone());
        outline
    }
}

impl Walker<'_> {
    /// A Kustomization that is skipped so far.
    pub(crate) fn skipped(&self, id: &NamespacedName) -> Option<&Skipped> {
        let is_unbuilt = self.states.get(id)?.phase == Phase::Found;
        self.skipped.get(id).filter(|_| is_unbuilt)
    }

    /// Every Kustomization that is skipped so far.
    pub(crate) fn all_skipped(&self) -> impl Iterator<Item = (&NamespacedName, &Skipped)> {
        let skipped = self.skipped.iter();
        skipped.filter(|(id, _)| self.skipped(id).is_some())
    }

    fn unbuilt(&self) -> Vec<(NamespacedName, Arc<Kustomization>)> {
        let states = self.states.iter();
        let found = states.filter(|(_, state)| state.phase == Phase::Found);
        found
            .map(|(id, state)| (id.clone(), Arc::clone(&state.spec)))
            .collect()
    }

    /// Wants what was found and has to be built; says how many that are.
    pub(crate) fn want_unskipped(&mut self, skip_plan: &SkipPlan) -> usize {
        let mut wanted = Vec::new();
        for (id, spec) in self.unbuilt() {
            let is_known = |skipped: &Skipped| Arc::ptr_eq(&skipped.spec, &spec);
            if self.skipped.get(&id).is_some_and(is_known) {
                continue;
            }
            let digest = build::digest_of_spec(&spec);
            match skip_plan.outline(&spec, digest) {
                Some(outline) => {
                    let skipped = Skipped {
                        spec,
                        digest,
                        outline,
                    };
                    self.skipped.insert(id, skipped);
                }
                None => wanted.push(id),
            }
        }
        wanted.iter().filter(|id| self.want(id)).count()
    }
}
