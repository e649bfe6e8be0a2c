//! Hands out the objects of a cluster while the rest is still being rendered.
//!
//! The order is always the same: Kustomizations, ResourceSets, releases, each by name. An item is handed out as soon
//! as it cannot change any more and everything before it has been handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use portolan_object::{Object, Step};

use crate::api::NamespacedName;
use crate::render::{RenderedRelease, Rendering};
use crate::walk::Walk;
use crate::walk::index::{Emitter, Index};

/// What a Kustomization, ResourceSet or release gives.
pub struct EmitterOutput<'a> {
    /// Whose it is.
    pub emitter: Emitter,
    /// The objects.
    pub objects: Arc<Vec<Object>>,
    release: Option<(&'a RenderedRelease, &'a Index)>,
}

/// Takes what is ready.
pub type OutputSink = Box<dyn Fn(EmitterOutput<'_>) + Send + Sync>;

/// What becomes of objects after they were handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// They are kept, for others may ask for them.
    #[default]
    Keep,
    /// Those of releases are forgotten, and until then everything takes as little memory as possible: what waits is
    /// packed, values are composed again when they are needed, and no result is kept for another render.
    Forget,
}

/// What has been handed out so far.
pub(crate) struct Stream {
    sink: OutputSink,
    pub(crate) retention: Retention,
    has_given_walk: bool,
    finished: BTreeSet<NamespacedName>,
    last_given: Option<NamespacedName>,
}

impl Stream {
    pub(crate) fn new(sink: OutputSink, retention: Retention) -> Self {
        Self {
            sink,
            retention,
            has_given_walk: false,
            finished: BTreeSet::new(),
            last_given: None,
        }
    }

    /// Hands out what Kustomizations and ResourceSets gave; they must not change any more.
    pub(crate) fn give_walk(&mut self, walk: &Walk) {
        if !self.has_given_walk {
            self.has_given_walk = true;
            for mut output in walk.outputs() {
                if self.retention == Retention::Forget {
                    // Reading unpacks objects; with this list, what was unpacked goes.
                    output.objects = Arc::new(output.objects.to_vec());
                }
                (self.sink)(output);
            }
        }
    }

    /// Whether what Kustomizations and ResourceSets gave was handed out, so that it cannot change any more.
    pub(crate) fn has_given_walk(&self) -> bool {
        self.has_given_walk
    }

    /// Whether a release was handed out, or would have been if it had given something.
    pub(crate) fn has_given(&self, id: &NamespacedName) -> bool {
        self.last_given.as_ref().is_some_and(|last| id <= last)
    }

    /// Notes that a release will not change any more, and hands out those whose turn it is: which they are.
    pub(crate) fn finish(
        &mut self,
        id: &NamespacedName,
        releases: &BTreeMap<NamespacedName, RenderedRelease>,
        index: &Index,
    ) -> Vec<NamespacedName> {
        self.finished.insert(id.clone());
        self.give_releases(releases, index, |finished, id, release| {
            // What has no chart is not rendered at all.
            finished.contains(id) || release.chart.is_none()
        })
    }

    /// Hands out everything that is left.
    pub(crate) fn give_rest(&mut self, rendering: &Rendering) {
        self.give_walk(&rendering.walk);
        let index = &rendering.walk.index;
        self.give_releases(&rendering.releases, index, |_, _, _| true);
    }

    fn give_releases(
        &mut self,
        releases: &BTreeMap<NamespacedName, RenderedRelease>,
        index: &Index,
        is_final: impl Fn(&BTreeSet<NamespacedName>, &NamespacedName, &RenderedRelease) -> bool,
    ) -> Vec<NamespacedName> {
        if !self.has_given_walk {
            return Vec::new();
        }
        let begin = match self.last_given.clone() {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let left = releases.range((begin, Bound::Unbounded));
        let mut given = Vec::new();
        for (id, release) in left.take_while(|(id, release)| is_final(&self.finished, id, release))
        {
            if let Some(ready) = release.output(id, index) {
                (self.sink)(ready);
            }
            given.push(id.clone());
        }
        self.last_given = given.last().cloned().or_else(|| self.last_given.take());
        given
    }
}

impl EmitterOutput<'_> {
    fn new(emitter: Emitter, objects: Arc<Vec<Object>>) -> Self {
        Self {
            emitter,
            objects,
            release: None,
        }
    }

    /// What a release is made of besides its chart; nothing for others, whose objects say it themselves.
    pub fn made_of(&self) -> Vec<Step> {
        let release = self.release;
        release.map_or_else(Vec::new, |(release, index)| release.made_of(index))
    }
}

impl RenderedRelease {
    /// What it gave, also if that is packed.
    pub(crate) fn given_objects(&self) -> Option<Arc<Vec<Object>>> {
        let released = || self.released.as_ref()?.objects();
        self.objects.clone().or_else(released)
    }

    fn output<'a>(&'a self, id: &NamespacedName, index: &'a Index) -> Option<EmitterOutput<'a>> {
        Some(EmitterOutput {
            release: Some((self, index)),
            ..EmitterOutput::new(Emitter::Release(id.clone()), self.given_objects()?)
        })
    }
}

impl Walk {
    /// What Kustomizations and ResourceSets gave, in order.
    fn outputs(&self) -> impl Iterator<Item = EmitterOutput<'_>> {
        let kustomizations = self.kustomizations.iter().filter_map(|(id, walked)| {
            let objects = Arc::clone(&walked.built.as_ref()?.objects);
            Some(EmitterOutput::new(
                Emitter::Kustomization(id.clone()),
                objects,
            ))
        });
        let sets = self.expansions.iter().filter_map(|(emitter, expansion)| {
            let is_set = matches!(emitter, Emitter::ResourceSet(_));
            let objects = expansion.objects.clone().filter(|_| is_set)?;
            Some(EmitterOutput::new(emitter.clone(), objects))
        });
        kustomizations.chain(sets)
    }
}

impl Rendering {
    /// What every Kustomization, ResourceSet and release gave, in the order in which it is handed out.
    pub fn outputs(&self) -> impl Iterator<Item = EmitterOutput<'_>> {
        let index = &self.walk.index;
        let releases = self.releases.iter();
        let releases = releases.filter_map(move |(id, release)| release.output(id, index));
        self.walk.outputs().chain(releases)
    }
}
