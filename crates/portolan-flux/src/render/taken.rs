//! Takes in what a release gave: what it changes for others, and what is kept of it after it was handed out.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_object::Object;

use super::kept_objects::KeptObjects;
use super::{RenderedRelease, Renderer};
use crate::api::NamespacedName;
use crate::release::Released;
use crate::release::loaded_chart::{LoadedChart, add_defined};
use crate::release::release_unit::AllKinds;
use crate::stream::{Retention, Stream};
use crate::walk::index::{DataId, Emitter, Index, data_id, data_of};

impl Renderer<'_> {
    /// Has a release handed out, if something takes it and its turn has come.
    pub(super) fn finish(&mut self, id: &NamespacedName, kept: &KeptObjects) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let given = stream.finish(id, &self.releases, &self.walker.walk.index);
        if !given.contains(id) {
            self.pack(id, kept);
        }
        if self.walker.retention == Retention::Keep {
            return;
        }
        for id in given {
            if let Some(release) = self.releases.get_mut(&id) {
                release.forget();
            }
            // The rest goes with the list.
            let index = &mut self.walker.walk.index;
            index.reduce(&Emitter::Release(id), |object| kept.includes(object));
        }
    }

    /// Packs what a release gave, if that is forgotten in the end anyway.
    ///
    /// Not before the Kustomizations were handed out: as long as they may change, so may what others want to know.
    pub(super) fn pack(&mut self, id: &NamespacedName, kept: &KeptObjects) {
        let is_settled = self.stream.as_ref().is_some_and(Stream::has_given_walk);
        if !is_settled || self.walker.retention == Retention::Keep {
            return;
        }
        let Some(release) = self.releases.get_mut(id) else {
            return;
        };
        if let Some(shelved) = release.shelve(|object| kept.includes(object)) {
            let index = &mut self.walker.walk.index;
            index.replace_packed(&Emitter::Release(id.clone()), shelved);
        }
    }

    /// Takes in what a release gave; says whether it is new and may change something else.
    pub(super) fn take(
        &mut self,
        id: &NamespacedName,
        released: Option<Arc<Released>>,
        referenced: &BTreeSet<DataId>,
        all_kinds: Option<&AllKinds>,
    ) -> bool {
        let Some(release) = self.releases.get_mut(id) else {
            return false;
        };
        let is_known = |(before, now): (&Arc<Released>, &Arc<Released>)| Arc::ptr_eq(before, now);
        let both = release.released.as_ref().zip(released.as_ref());
        if both.is_some_and(is_known) {
            release.refusals = released.map_or_else(Vec::new, |now| now.refusals.clone());
            return false;
        }
        let refusals = released.as_ref().map(|released| released.refusals.clone());
        release.refusals = refusals.unwrap_or_default();
        let objects = released.as_ref().and_then(|released| released.objects());
        release.released = released;
        let is_same = match (&release.objects, &objects) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        let before = std::mem::replace(&mut release.objects, objects);
        if is_same {
            return false;
        }
        let objects = release.objects.clone().unwrap_or_default();
        let news = News {
            before: before.as_ref().map_or(&[], |before| before.as_slice()),
            referenced,
            index: &self.walker.walk.index,
            known_kinds: all_kinds.map(|all| &all.capabilities.api_versions),
        };
        let changed = objects.iter().filter(|object| news.includes(object));
        release.unsettled = changed
            .map(|object| object.id().short().to_string())
            .collect();
        let is_news = !release.unsettled.is_empty();
        self.walker.emitted(&Emitter::Release(id.clone()), &objects);
        is_news
    }
}

impl RenderedRelease {
    /// Whether its chart, or a template in the values that it may run, looks objects up.
    pub(super) fn may_look_up(&self, chart: &LoadedChart) -> bool {
        !chart.looked_up().is_empty() || !self.hints.looked_up.is_empty()
    }

    /// Keeps the objects in little memory until their turn comes; gives those that the condition accepts, unless this was
    /// done before.
    fn shelve(&mut self, condition: impl Fn(&Object) -> bool) -> Option<Vec<Object>> {
        self.objects = None;
        self.rendered_for = None;
        let dictionaries = &self.chart.as_ref()?.dictionaries;
        self.released.as_ref()?.shelve(dictionaries, condition)
    }

    /// Lets go of the objects, which nobody will ask for again.
    fn forget(&mut self) {
        self.objects = None;
        self.rendered_for = None;
        if let Some(released) = &self.released {
            released.forget();
        }
    }
}

/// What tells whether an object that a release gives changes what else is rendered.
struct News<'a> {
    /// What the release gave before.
    before: &'a [Object],
    /// The data that variables and values come from.
    referenced: &'a BTreeSet<DataId>,
    /// What was emitted before.
    index: &'a Index,
    /// Every kind that charts were told of, when some ask.
    known_kinds: Option<&'a Vec<String>>,
}

impl News<'_> {
    fn includes(&self, object: &Object) -> bool {
        let is_same = || {
            self.before
                .iter()
                .any(|before| before.node() == object.node())
        };
        let is_flux = object.gvk().group.ends_with("fluxcd.io");
        (is_flux && !is_same()) || self.changes_data(object) || self.defines_more(object)
    }

    fn changes_data(&self, object: &Object) -> bool {
        let Some(id) = data_id(object).filter(|id| self.referenced.contains(id)) else {
            return false;
        };
        // A clone is read, so that a packed object stays packed.
        self.index.data(&id) != data_of(&object.clone()).map(|(_, data)| data)
    }

    /// Kinds that were defined before all were collected are among them.
    fn defines_more(&self, object: &Object) -> bool {
        self.known_kinds.is_some_and(|known| {
            let mut defined = BTreeSet::new();
            // A clone is read, so that a packed definition stays packed.
            add_defined(&mut defined, &object.clone());
            defined.iter().any(|kind| !known.contains(kind))
        })
    }
}
