//! What the charts of a cluster's releases look up during a render: which of them would get another answer by now,
//! and whether something that was not rendered may contain what they do not find.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_engine::Key;
use portolan_helm::values::Tree;

use crate::api::NamespacedName;
use crate::demand::Wanted;
use crate::release;
use crate::release::loaded_chart::LoadedChart;
use crate::release::lookup::{EmittedObjects, Question, View};
use crate::release::release_unit;
use crate::render::{RenderedRelease, Renderer};
use crate::stream::Retention;
use crate::walk::index::Emitter;

impl Renderer<'_> {
    /// Notes releases that would find something else now than they did; says whether there are any.
    pub(crate) fn note_outdated_answers(&mut self) -> bool {
        let objects = Arc::new(EmittedObjects::of(&self.walker.walk.index));
        let mut is_outdated = false;
        for (id, release) in &mut self.releases {
            let Some(answers) = &release.answers else {
                continue;
            };
            let emitter = Emitter::Release(id.clone());
            let view = View::new(&objects, emitter, release.given_objects().as_ref());
            let outdated: Vec<String> = answers.outdated(&view).map(ToString::to_string).collect();
            is_outdated |= !outdated.is_empty();
            release.unsettled.extend(outdated);
        }
        is_outdated
    }

    /// Has everything rendered that may give objects which a release looks up in vain; says whether that is news. When
    /// two sides are compared, that is for the comparison to say.
    pub(crate) fn seek_objects(&mut self) -> bool {
        if self.walker.is_skipping() || self.demand.releases == Wanted::All {
            return false;
        }
        let asked = self.releases.iter();
        let asked = asked.filter(|(id, _)| self.demand.releases.includes(id));
        let sought = asked.flat_map(|(_, release)| release.open_questions());
        let sought: BTreeSet<String> = sought.map(|question| question.kind().to_owned()).collect();
        let is_news = !sought.is_subset(&self.sought_kinds);
        if is_news {
            self.sought_kinds.extend(sought);
            self.walker.want_everything();
        }
        is_news
    }

    /// Whether a release that looks something up in vain may find it in what was not rendered.
    pub(crate) fn lacks_objects(&self, other: &Self) -> bool {
        let differing = self.differing_kinds(other);
        self.releases.iter().any(|(id, release)| {
            let theirs = other.releases.get(id).and_then(|theirs| theirs.digest);
            let differs = release.digest.is_none() || release.digest != theirs;
            let may_differ = || {
                let chart = release.chart.as_ref();
                let may_find =
                    |chart: &Arc<LoadedChart>| chart.looked_up().includes_any(&differing);
                chart.is_some_and(may_find)
            };
            (differs || may_differ()) && release.open_questions().next().is_some()
        })
    }

    /// Notes what a release looked up; says whether nothing that is rendered later can change what it found.
    pub(crate) fn note_answers(&mut self, id: &NamespacedName, unit: &Key) -> bool {
        let Some(release) = self.releases.get_mut(id) else {
            return true;
        };
        let answers = match &release.released {
            Some(released) => Some(Arc::clone(&released.answers)),
            None => self.cluster.session.asked_by(unit),
        };
        release.answers = answers.filter(|answers| !answers.is_empty());
        let Some(answers) = &release.answers else {
            return true;
        };
        // Digests are for comparisons, which keep everything.
        if self.walker.retention == Retention::Keep
            && let Some(surroundings) = &release.rendered_for
            && let (Ok(spec), Some(chart)) = (&release.spec, &release.chart)
        {
            let values = &release.composed.values;
            let (capabilities, profile) = (&surroundings.capabilities, surroundings.profile);
            let digest = release::fingerprint(spec, chart, values, capabilities, profile);
            release.digest = Some(release::with_answers(digest, answers));
        }
        answers.are_own(&release.given_objects().unwrap_or_default())
    }
}

impl RenderedRelease {
    /// What it looked up and did not find, or found as far as it was rendered.
    fn open_questions(&self) -> impl Iterator<Item = &Question> {
        let own = self.objects.as_ref().map_or(&[][..], |own| own);
        let answers = self.answers.as_ref();
        answers.into_iter().flat_map(|answers| answers.open(own))
    }
}

/// Whether a chart or the values that it may print give objects of one of some kinds.
pub(crate) fn may_print(chart: &LoadedChart, values: &Tree, kinds: &BTreeSet<String>) -> bool {
    let mut kinds = kinds.iter();
    kinds.any(|kind| chart.mentions(kind) || release_unit::mentions(values, kind))
}
