//! Renders the releases of one stage: a limited number at a time, in the order in which they are handed out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use portolan_engine::{Key, WaitError};
use portolan_helm::values::Tree;
use portolan_object::Digest;

use super::kept_objects::KeptObjects;
use super::{Choice, RenderedRelease, Renderer, available};
use crate::api::{HelmRelease, NamespacedName};
use crate::release::loaded_chart::LoadedChart;
use crate::release::lookup::{EmittedObjects, View};
use crate::release::release_lookups;
use crate::release::release_unit::{self, AllKinds, Known, ReleaseInputs, Rendered, Visible};
use crate::release::{self, Surroundings};
use crate::stream::{Retention, Stream};
use crate::walk::index::Emitter;

/// How many releases are rendered at a time, counted from the first that is not done: enough for all cores while one of
/// them takes long, and not more, for each has its values and objects in memory.
const MAX_BEGUN_RELEASES: usize = 32;

/// How many charts may have their templates parsed at a time where memory is saved. A repository with more charts is
/// rendered chart by chart: a chart is packed except while its releases are rendered, and what they give before their
/// turn waits, packed. With fewer charts the releases are rendered in the order in which they are handed out.
pub(super) const MAX_PARSED_CHARTS: usize = 32;

/// Releases that are rendered together.
pub(super) enum Stage {
    /// Those that may define kinds which others ask for, and ask for none themselves.
    Definers,
    /// All others; with every kind that there is, when some ask.
    Others(Option<AllKinds>),
    /// Those that look objects up; with every kind that there is, when some ask.
    LookingUp(Option<AllKinds>),
}

impl Stage {
    /// Whether a release is rendered at this stage.
    fn is_for(&self, defines: bool, looks_up: bool) -> bool {
        match self {
            Self::Definers => defines,
            Self::Others(_) => !defines && !looks_up,
            Self::LookingUp(_) => looks_up,
        }
    }

    /// Every kind that there is, when some ask.
    fn kinds(&self) -> Option<&AllKinds> {
        match self {
            Self::Definers => None,
            Self::Others(kinds) | Self::LookingUp(kinds) => kinds.as_ref(),
        }
    }

    pub(super) fn into_kinds(self) -> Option<AllKinds> {
        match self {
            Self::Definers => None,
            Self::Others(kinds) | Self::LookingUp(kinds) => kinds,
        }
    }
}

/// The releases of a stage in the order in which they are rendered.
struct RenderOrder {
    ids: Vec<NamespacedName>,
    grouping: Grouping,
}

/// Whether the releases of one chart are rendered one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    None,
    ByChart,
}

impl Grouping {
    /// Packs a chart after the last release of its group; `next` is the one that ends next.
    fn ended(self, ended: &Begun, next: Option<&Begun>) {
        let is_followed = next.is_some_and(|next| Arc::ptr_eq(&next.chart, &ended.chart));
        if self == Self::ByChart && !is_followed {
            ended.chart.pack();
        }
    }
}

/// A release whose unit was added.
struct Begun {
    id: NamespacedName,
    chart: Arc<LoadedChart>,
    unit: Key<Rendered>,
    /// Whether all that its chart wants to know of the cluster is known from what Kubernetes itself serves.
    needs_only_base: bool,
}

/// What decides whether a release of a stage changes others, and whether it is done.
struct StageEffects<'a> {
    /// Which objects others may want to know of.
    kept: Arc<KeptObjects>,
    /// Whether a chart that asks for kinds may define some itself.
    may_ask_again: bool,
    /// Every kind that charts were told of, when some ask.
    all_kinds: Option<&'a AllKinds>,
}

impl Renderer<'_> {
    /// Renders the chosen releases of a stage. Says whether what they gave may change something else.
    pub(super) async fn render(
        &mut self,
        choice: &Choice<'_>,
        stage: &Stage,
    ) -> Result<bool, WaitError> {
        let visible = matches!(stage, Stage::LookingUp(_))
            .then(|| Arc::new(EmittedObjects::of(&self.walker.walk.index)));
        let effects = StageEffects {
            kept: Arc::new(self.kept_objects()),
            may_ask_again: self.may_ask_again(),
            all_kinds: stage.kinds(),
        };
        let mut is_news = false;
        let mut begun = VecDeque::new();
        let order = self.render_order();
        for id in order.ids {
            if begun.len() >= MAX_BEGUN_RELEASES
                && let Some(first) = begun.pop_front()
            {
                is_news |= self.end(&first, &effects).await?;
                order.grouping.ended(&first, begun.front());
            }
            let packing = (order.grouping == Grouping::ByChart).then(|| Arc::clone(&effects.kept));
            begun.extend(self.begin(id, choice, stage, visible.as_ref(), packing));
        }
        while let Some(first) = begun.pop_front() {
            is_news |= self.end(&first, &effects).await?;
            order.grouping.ended(&first, begun.front());
        }
        Ok(is_news)
    }

    /// The releases in the order in which they are rendered.
    fn render_order(&self) -> RenderOrder {
        let mut numbers = HashMap::new();
        let numbered = self.releases.iter().map(|(id, release)| {
            let chart = release.chart.as_ref().map(Arc::as_ptr);
            let next = numbers.len();
            (*numbers.entry(chart).or_insert(next), id.clone())
        });
        let mut numbered: Vec<(usize, NamespacedName)> = numbered.collect();
        let is_saving = self.walker.retention == Retention::Forget;
        let grouping = if is_saving && numbers.len() > MAX_PARSED_CHARTS {
            // Charts in the order of their first releases; the releases of a chart stay in order.
            numbered.sort_by_key(|(chart, _)| *chart);
            Grouping::ByChart
        } else {
            Grouping::None
        };
        RenderOrder {
            ids: numbered.into_iter().map(|(_, id)| id).collect(),
            grouping,
        }
    }

    /// Adds the unit of a release, if the release belongs to the stage and is chosen.
    fn begin(
        &mut self,
        id: NamespacedName,
        choice: &Choice<'_>,
        stage: &Stage,
        visible: Option<&Arc<EmittedObjects>>,
        packing: Option<Arc<KeptObjects>>,
    ) -> Option<Begun> {
        let base = &self.cluster.capabilities;
        let release = self.releases.get(&id)?;
        let (Ok(_), Some(chart), Some(chart_unit)) =
            (&release.spec, &release.chart, &release.chart_unit)
        else {
            // A release without a chart is skipped because of its chart's unit.
            let unit = release.chart_unit.as_ref().map(Key::untyped);
            self.releases.get_mut(&id)?.unit = unit;
            return None;
        };
        let needs_only_base = chart.needs_only(base);
        let looks_up = release.may_look_up(chart);
        let defines = needs_only_base
            && self.asks_for_kinds
            && !looks_up
            && (chart.may_define_kinds() || release.hints.mention_definitions);
        let is_given = |stream: &Stream| stream.has_given(&id);
        if !stage.is_for(defines, looks_up) || self.stream.as_ref().is_some_and(is_given) {
            return None;
        }
        let known = match stage.kinds() {
            Some(all) if !needs_only_base => Known::All(all.clone()),
            _ => Known::Base,
        };
        let capabilities = match &known {
            Known::All(all) => &all.capabilities,
            Known::Base => base,
        };
        let profile = self.cluster.profile;
        let visible = visible.map(|objects| {
            let emitter = Emitter::Release(id.clone());
            let view = View::new(objects, emitter, release.given_objects().as_ref());
            let answers = release.answers.as_ref().map(|asked| asked.renewed(&view));
            let answers = Arc::new(answers.unwrap_or_default());
            Visible { view, answers }
        });
        let (spec, values) = self.spec_and_values(release)?;
        let digest = release::fingerprint(&spec, chart, &values, capabilities, profile);
        let digest = match &visible {
            Some(visible) => release::with_answers(digest, &visible.answers),
            None => digest,
        };
        let surroundings = Surroundings {
            capabilities: Arc::clone(capabilities),
            profile,
            view: visible.as_ref().map(|visible| visible.view.clone()),
        };
        let is_wanted = self.demand.releases.includes(&id)
            || release_lookups::may_print(chart, &values, &self.sought_kinds);
        let is_chosen = choice.includes(&id, digest, release, is_wanted);
        let chart = Arc::clone(chart);
        let inputs = ReleaseInputs {
            cluster: Arc::clone(self.cluster),
            spec,
            values,
            chart: chart_unit.clone(),
            packing,
        };
        let release = self.releases.get_mut(&id)?;
        release.digest = Some(digest);
        release.rendered_for = Some(Box::new(surroundings));
        if !is_chosen {
            return None;
        }
        let unit = inputs.add(self.cx, known, visible);
        release.unit = Some(unit.untyped());
        Some(Begun {
            id,
            chart,
            unit,
            needs_only_base,
        })
    }

    /// What a release is rendered from: as it is kept, or read and composed again.
    fn spec_and_values(&self, release: &RenderedRelease) -> Option<(Arc<HelmRelease>, Tree)> {
        if self.walker.retention == Retention::Keep {
            let spec = Arc::clone(release.spec.as_ref().ok()?);
            return Some((spec, release.composed.values.clone()));
        }
        let spec = HelmRelease::read(release.definition.clone().node()).ok()?;
        let composed = release_unit::composed(&spec, &self.walker.walk.index);
        Some((Arc::new(spec), composed.values))
    }

    /// Waits for a release and takes in what it gave. Says whether that may change something else.
    async fn end(&mut self, begun: &Begun, effects: &StageEffects<'_>) -> Result<bool, WaitError> {
        let Begun { id, unit, .. } = begun;
        let released = available(self.cx.output(unit).await)?;
        let released = released.and_then(|released| Option::clone(&released));
        let is_news = self.take(id, released, &effects.kept.referenced, effects.all_kinds);
        let is_answered = self.note_answers(id, &unit.untyped());
        if is_answered && (begun.needs_only_base || !effects.may_ask_again) {
            self.finish(id, &effects.kept);
        } else {
            self.pack(id, &effects.kept);
        }
        Ok(is_news)
    }
}

impl Choice<'_> {
    fn includes(
        &self,
        id: &NamespacedName,
        digest: Digest,
        release: &RenderedRelease,
        is_wanted: bool,
    ) -> bool {
        let matters = release.chart.as_ref().is_some_and(|chart| {
            chart.may_define_kinds()
                || chart.may_emit_flux()
                || release.may_look_up(chart)
                || release.hints.mention_flux
        });
        match self {
            Self::Wanted => is_wanted || matters,
            Self::Followed => matters,
            Self::Unlike(others) => matters || others.get(id) != Some(&digest),
        }
    }
}
