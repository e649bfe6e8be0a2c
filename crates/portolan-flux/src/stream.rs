//! What a cluster gives, handed out while the rest is still being rendered.
//!
//! The order is always the same: Kustomizations, ResourceSets, releases, each by name. Something is handed out as soon
//! as it cannot change any more and everything before it has been handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use portolan_object::Object;

use crate::api::NamespacedName;
use crate::index::Emitter;
use crate::render::{RenderedRelease, Rendering};
use crate::walk::Walk;

/// Takes what is ready: whose it is, and the objects.
pub type Outlet = Box<dyn Fn(Emitter, &Arc<Vec<Object>>) + Send + Sync>;

/// What has been handed out so far.
pub(crate) struct Stream {
    outlet: Outlet,
    has_given_walk: bool,
    finished: BTreeSet<NamespacedName>,
    last_given: Option<NamespacedName>,
}

impl Stream {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self {
            outlet,
            has_given_walk: false,
            finished: BTreeSet::new(),
            last_given: None,
        }
    }

    /// Hands out what Kustomizations and ResourceSets gave; they must not change any more.
    pub(crate) fn give_walk(&mut self, walk: &Walk) {
        if !self.has_given_walk {
            self.has_given_walk = true;
            walk.given()
                .for_each(|(emitter, objects)| (self.outlet)(emitter, objects));
        }
    }

    /// Notes that a release will not change any more, and hands out those whose turn it is.
    pub(crate) fn finish(
        &mut self,
        id: &NamespacedName,
        releases: &BTreeMap<NamespacedName, RenderedRelease>,
    ) {
        self.finished.insert(id.clone());
        self.give_releases(releases, |finished, id, release| {
            // What has no chart is not rendered at all.
            finished.contains(id) || release.chart.is_none()
        });
    }

    /// Hands out everything that is left.
    pub(crate) fn give_rest(&mut self, rendering: &Rendering) {
        self.give_walk(&rendering.walk);
        self.give_releases(&rendering.releases, |_, _, _| true);
    }

    fn give_releases(
        &mut self,
        releases: &BTreeMap<NamespacedName, RenderedRelease>,
        is_final: impl Fn(&BTreeSet<NamespacedName>, &NamespacedName, &RenderedRelease) -> bool,
    ) {
        if !self.has_given_walk {
            return;
        }
        let begin = match self.last_given.clone() {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let left = releases.range((begin, Bound::Unbounded));
        for (id, release) in left.take_while(|(id, release)| is_final(&self.finished, id, release))
        {
            if let Some(objects) = &release.objects {
                (self.outlet)(Emitter::Release(id.clone()), objects);
            }
            self.last_given = Some(id.clone());
        }
    }
}

impl Walk {
    /// What Kustomizations and ResourceSets gave, in order.
    fn given(&self) -> impl Iterator<Item = (Emitter, &Arc<Vec<Object>>)> {
        let kustomizations = self.kustomizations.iter().filter_map(|(id, walked)| {
            let built = walked.built.as_ref()?;
            Some((Emitter::Kustomization(id.clone()), &built.objects))
        });
        let sets = self.expansions.iter().filter_map(|(emitter, expansion)| {
            let is_set = matches!(emitter, Emitter::ResourceSet(_));
            let objects = expansion.objects.as_ref().filter(|_| is_set)?;
            Some((emitter.clone(), objects))
        });
        kustomizations.chain(sets)
    }
}

impl Rendering {
    /// What every Kustomization, ResourceSet and release gave, in the order in which it is handed out.
    pub fn given(&self) -> impl Iterator<Item = (Emitter, &Arc<Vec<Object>>)> {
        let releases = self.releases.iter().filter_map(|(id, release)| {
            let objects = release.objects.as_ref()?;
            Some((Emitter::Release(id.clone()), objects))
        });
        self.walk.given().chain(releases)
    }
}
