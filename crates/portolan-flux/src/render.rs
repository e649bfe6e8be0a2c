//! A whole cluster: its Kustomizations, and the releases they emit.
//!
//! ```text
//! walk ──▶ HelmReleases ──▶ charts (each loaded once) ──▶ releases ──▶ objects
//!   ▲                                                        │
//!   └──────────── Flux's objects, data and kinds that charts print ◀┘
//! ```
//!
//! A chart that asks which kinds the cluster serves is rendered after all others, when it is known which kinds the
//! repository defines. So is a chart that looks up objects; it is rendered again if an answer has changed by then,
//! because charts may look up each other's objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_engine::{Context, Failure, Key, Unit, WaitError};
use portolan_helm::Capabilities;
use portolan_helm::values::Tree;
use portolan_object::{Digest, Object, Producer, producer_kinds};

use crate::api::{FieldError, HelmRelease, NamespacedName};
use crate::cluster::Cluster;
use crate::demand::{Demand, Wanted};
use crate::release::chart::{ChartError, Location};
use crate::release::loaded_chart::{DEFINITION, FLUX_GROUPS, LoadedChart, add_defined};
use crate::release::looked_up::LookedUp;
use crate::release::lookup::{Answers, EmittedObjects, View};
use crate::release::quick_scan::QuickScan;
use crate::release::release_lookups;
use crate::release::release_unit::{
    self, AllKinds, ChartUnit, Known, ReleaseInputs, Visible, may_look_up,
};
use crate::release::values::Composed;
use crate::release::{self, Released, Surroundings};
use crate::session::SessionResult;
use crate::stream::{OutputSink, Retention, Stream};
use crate::walk::index::{DataId, Emitter, Index, data_id, data_of, name_of};
use crate::walk::{Walk, Walker, data_ids};

/// The API group of HelmReleases.
pub(crate) const RELEASE_GROUP: &str = "helm.toolkit.fluxcd.io";

/// How often releases are looked at again because charts printed Flux's own objects; real repositories need one.
const MAX_ROUNDS: usize = 8;

/// How many releases are begun while Kustomizations are still built: enough to keep all cores busy, and not more, for
/// what they give must wait for its turn.
const MAX_EARLY_RELEASES: usize = 128;

/// A HelmRelease and what became of it.
#[derive(Debug)]
pub struct RenderedRelease {
    /// The object that defines it.
    pub definition: Object,
    /// Who emitted it.
    pub emitter: Emitter,
    /// What it says, or what is wrong with what it says.
    pub spec: Result<Arc<HelmRelease>, Vec<FieldError>>,
    /// Its values, and what of them was not to be had.
    pub composed: Composed,
    /// Where its chart lies.
    pub location: Option<Location>,
    /// Why its chart is not to be had.
    pub chart_error: Option<ChartError>,
    /// The unit that loaded its chart.
    pub(crate) chart_unit: Option<Key<SessionResult<LoadedChart>>>,
    /// Its chart.
    pub chart: Option<Arc<LoadedChart>>,
    /// The digest of everything it is made of: releases with equal digests give equal objects.
    pub digest: Option<Digest>,
    /// The unit that rendered it, if any did.
    pub unit: Option<Key>,
    /// What it gave.
    pub objects: Option<Arc<Vec<Object>>>,
    /// Why Flux would not take what its chart gave, though Helm does.
    pub refusals: Vec<String>,
    /// What it still changed for others in the last round that was tried; empty when all came to rest.
    pub unsettled: Vec<String>,
    /// What keeps the objects for others.
    pub(crate) released: Option<Arc<Released>>,
    /// What its chart was told of the cluster, and which Flux it was rendered as.
    pub(crate) rendered_for: Option<Surroundings>,
    /// What its chart looked up when it was last rendered, even if that failed.
    pub(crate) answers: Option<Arc<Answers>>,
}

/// Everything that a cluster's repository declares, rendered.
#[derive(Debug, Default)]
pub struct Rendering {
    /// The Kustomizations.
    pub walk: Walk,
    /// The releases, by name.
    pub releases: BTreeMap<NamespacedName, RenderedRelease>,
    /// Releases that a comparison did not look at, for both sides make them of the same; with who emitted them.
    pub unchanged: BTreeMap<NamespacedName, Emitter>,
}

/// Renders what is asked for of a cluster; one unit does the walking and adds all others.
pub fn cluster_unit(cluster: Arc<Cluster>, demand: impl Into<Demand>) -> Unit<Rendering> {
    unit(cluster, demand.into(), None)
}

/// Renders everything of a kind in a cluster, and hands it out as soon as its turn has come.
pub fn streamed_unit(
    cluster: Arc<Cluster>,
    demand: impl Into<Demand>,
    sink: OutputSink,
    retention: Retention,
) -> Unit<Rendering> {
    unit(cluster, demand.into(), Some(Stream::new(sink, retention)))
}

fn unit(cluster: Arc<Cluster>, demand: Demand, stream: Option<Stream>) -> Unit<Rendering> {
    Unit::io(move |cx| async move {
        let mut renderer = Renderer::new(&cx, &cluster, &demand);
        renderer.stream = stream;
        if demand.releases == Wanted::All {
            renderer.walker.early_releases = MAX_EARLY_RELEASES;
        }
        renderer.settle(&Choice::Wanted).await?;
        let stream = renderer.stream.take();
        let rendering = renderer.into_rendering();
        if let Some(mut stream) = stream {
            stream.give_rest(&rendering);
        }
        Ok(rendering)
    })
}

/// Which releases are rendered, of those whose chart is loaded.
pub(crate) enum Choice<'a> {
    /// Those that are asked for.
    Wanted,
    /// Only those whose objects may change what else is rendered.
    Followed,
    /// Those, and whichever has another digest than here.
    Unlike(&'a BTreeMap<NamespacedName, Digest>),
}

/// A cluster being rendered.
pub(crate) struct Renderer<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) demand: &'a Demand,
    pub(crate) walker: Walker<'a>,
    pub(crate) releases: BTreeMap<NamespacedName, RenderedRelease>,
    /// Whether some chart asks for kinds that only the whole repository tells.
    asks_for_kinds: bool,
    /// The groups of those kinds; nothing when they may be any.
    pub(crate) asked_groups: Option<BTreeSet<String>>,
    /// Groups that releases which were left out are known not to define.
    pub(crate) undefined_groups: BTreeSet<String>,
    /// What charts may look up.
    pub(crate) looked_up: LookedUp,
    /// The kinds of objects that a release looks up and that others may give which were not asked for.
    pub(crate) sought_kinds: BTreeSet<String>,
    /// Releases that are not looked at, for they give on another side what they give here; with what their charts may
    /// do to others.
    pub(crate) left_out: BTreeMap<NamespacedName, QuickScan>,
    /// Hands out what is ready.
    stream: Option<Stream>,
}

/// How far a renderer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing that was rendered changes anything else.
    Yes,
    /// A chart asks for kinds that releases which were left out may bring.
    LacksKinds,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(cx: &'a Context, cluster: &'a Arc<Cluster>, demand: &'a Demand) -> Self {
        Self {
            cx,
            cluster,
            demand,
            walker: Walker::new(cx, cluster, demand),
            releases: BTreeMap::new(),
            asks_for_kinds: false,
            asked_groups: Some(BTreeSet::new()),
            undefined_groups: BTreeSet::new(),
            looked_up: LookedUp::default(),
            sought_kinds: BTreeSet::new(),
            left_out: BTreeMap::new(),
            stream: None,
        }
    }

    pub(crate) fn into_rendering(self) -> Rendering {
        let mut releases = self.releases;
        releases.retain(|id, _| self.demand.releases.includes(id));
        let index = &self.walker.walk.index;
        let emitter = |id: NamespacedName| {
            let (emitter, _) = index.named(RELEASE_GROUP, "HelmRelease", &id)?;
            Some((id, emitter.clone()))
        };
        let unchanged = self.left_out.into_keys().filter_map(emitter).collect();
        Rendering {
            walk: self.walker.walk,
            releases,
            unchanged,
        }
    }

    /// The digests of all releases.
    pub(crate) fn digests(&self) -> BTreeMap<NamespacedName, Digest> {
        let known = self.releases.iter();
        known
            .filter_map(|(id, release)| Some((id.clone(), release.digest?)))
            .collect()
    }

    /// Builds and renders until nothing that was rendered changes anything else.
    pub(crate) async fn settle(&mut self, choice: &Choice<'_>) -> Result<Settled, Failure> {
        for _ in 0..MAX_ROUNDS {
            self.walker.run().await?;
            if self.demand.releases == Wanted::None {
                return Ok(Settled::Yes);
            }
            self.declare();
            self.load_charts().await?;
            if self.asks_for_kinds && self.leaves_out_kinds() {
                return Ok(Settled::LacksKinds);
            }
            if self.asks_for_kinds && !self.walker.walk.is_complete && !self.walker.is_skipping() {
                self.walker.want_everything();
                continue;
            }
            self.give_walk();
            let mut is_news = false;
            let mut all_kinds = None;
            if self.asks_for_kinds {
                is_news |= self.render(choice, &Stage::Definers).await?;
                all_kinds = Some(AllKinds::new(self.capabilities()));
            }
            let others = Stage::Others(all_kinds);
            is_news |= self.render(choice, &others).await?;
            if !self.looked_up.is_empty() {
                let all_kinds = others.into_kinds();
                is_news |= self.render(choice, &Stage::LookingUp(all_kinds)).await?;
                is_news |= self.note_outdated_answers() || self.seek_objects();
            }
            if !is_news {
                return Ok(Settled::Yes);
            }
        }
        // What each release changed in the last round is noted with it.
        Ok(Settled::Yes)
    }

    /// Whether a release that was left out, or that a skipped Kustomization gives, may bring kinds that are asked for.
    fn leaves_out_kinds(&self) -> bool {
        let asked = self.asked_groups.as_ref();
        let mut left_out = self.left_out.values();
        !asked.is_some_and(|asked| asked.is_subset(&self.undefined_groups))
            && (self.walker.is_skipping() || left_out.any(|scan| scan.may_define_kinds))
    }

    /// Hands out what Kustomizations gave, unless something that a chart prints may change it.
    fn give_walk(&mut self) {
        if self.stream.is_none() {
            return;
        }
        let may_emit_flux = |release: &RenderedRelease| {
            let chart = release.chart.as_ref();
            chart.is_some_and(|chart| chart.may_emit_flux())
                || release_unit::mentions(&release.composed.values, FLUX_GROUPS)
        };
        let may_change =
            self.releases.values().any(may_emit_flux) || !self.awaited_data().is_empty();
        if let (Some(stream), false) = (&mut self.stream, may_change) {
            stream.give_walk(&self.walker.walk);
        }
    }

    /// Whether a chart that asks for kinds may define some itself, so that others must be asked again.
    fn may_ask_again(&self) -> bool {
        let base = &self.cluster.capabilities;
        let charts = self
            .releases
            .values()
            .filter_map(|release| release.chart.as_ref());
        let mut asking = charts.filter(|chart| !chart.needs_only(base));
        asking.any(|chart| chart.may_define_kinds())
    }

    /// Takes in every HelmRelease that was emitted; of several with one name, the first emitter's counts.
    fn declare(&mut self) {
        let index = &self.walker.walk.index;
        for (emitter, object) in index.first_of_kind(RELEASE_GROUP, "HelmRelease") {
            let id = name_of(object);
            let is_needed = self.asks_for_kinds
                || !self.sought_kinds.is_empty()
                || self.demand.releases.includes(&id);
            if is_needed && !self.left_out.contains_key(&id) {
                let before = self.releases.remove(&id);
                let release = self.declared(object, emitter, before);
                self.releases.insert(id, release);
            }
        }
    }

    fn declared(
        &self,
        object: &Object,
        emitter: &Emitter,
        before: Option<RenderedRelease>,
    ) -> RenderedRelease {
        let index = &self.walker.walk.index;
        let spec = HelmRelease::read(object.node()).map(Arc::new);
        let composed = spec
            .as_ref()
            .map(|spec| release_unit::composed(spec, index))
            .unwrap_or_default();
        let located = spec.as_ref().ok();
        let located = located.map(|spec| self.cluster.locate_chart(spec, index));
        let (location, chart_error) = match located {
            Some(Ok(location)) => (Some(location), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let mut release = RenderedRelease {
            definition: object.clone(),
            emitter: emitter.clone(),
            composed,
            spec,
            location,
            chart_error,
            chart_unit: None,
            chart: None,
            digest: None,
            unit: None,
            objects: None,
            refusals: Vec::new(),
            unsettled: Vec::new(),
            released: None,
            rendered_for: None,
            answers: None,
        };
        if let Some(before) = before {
            release.chart = before.chart;
            release.objects = before.objects;
            release.unit = before.unit;
            release.released = before.released;
            release.answers = before.answers;
        }
        release
    }

    /// Loads every chart once; the chart's unit tells why it fails to load.
    async fn load_charts(&mut self) -> Result<(), WaitError> {
        let index = &self.walker.walk.index;
        for release in self.releases.values_mut() {
            if let (Ok(spec), Some(location)) = (&release.spec, &release.location) {
                let unit = ChartUnit::new(self.cx, self.cluster, index, spec, location);
                release.chart_unit = Some(unit.add(self.cx, index));
            }
        }
        for release in self.releases.values_mut() {
            let Some(key) = &release.chart_unit else {
                continue;
            };
            release.chart = available(self.cx.output(key).await)?.map(|chart| Arc::clone(&chart.0));
            let base = &self.cluster.capabilities;
            if let Some(chart) = &release.chart {
                self.looked_up.extend(chart.looked_up());
            }
            self.looked_up.read_values(&release.composed.values);
            if let Some(chart) = &release.chart
                && !chart.needs_only(base)
            {
                self.asks_for_kinds = true;
                let groups = chart.groups_asked_for(base);
                self.asked_groups = self.asked_groups.take().zip(groups).map(|(mut all, more)| {
                    all.extend(more);
                    all
                });
            }
        }
        Ok(())
    }

    /// What the cluster serves: its Kubernetes, and every custom kind that the repository brings.
    fn capabilities(&self) -> Capabilities {
        let mut served = BTreeSet::new();
        let index = &self.walker.walk.index;
        for (_, object) in index.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
            add_defined(&mut served, object);
        }
        for chart in self
            .releases
            .values()
            .filter_map(|release| release.chart.as_ref())
        {
            served.extend(chart.crds().iter().cloned());
        }
        let mut capabilities = Capabilities::clone(&self.cluster.capabilities);
        capabilities.add_api_versions(served);
        capabilities
    }

    /// Renders the chosen releases of a stage. Says whether what they gave may change something else.
    async fn render(&mut self, choice: &Choice<'_>, stage: &Stage) -> Result<bool, WaitError> {
        let base = &self.cluster.capabilities;
        let mut begun = Vec::new();
        let visible = matches!(stage, Stage::LookingUp(_))
            .then(|| Arc::new(EmittedObjects::of(&self.walker.walk.index)));
        for (id, release) in &mut self.releases {
            let (Ok(spec), Some(chart), Some(chart_unit)) =
                (&release.spec, &release.chart, &release.chart_unit)
            else {
                // A release without a chart is skipped because of its chart's unit.
                release.unit = release.chart_unit.as_ref().map(Key::untyped);
                continue;
            };
            let is_given = |stream: &Stream| stream.has_given(id);
            let values = &release.composed.values;
            let needs_only_base = chart.needs_only(base);
            let looks_up = may_look_up(chart, values);
            let defines = needs_only_base
                && self.asks_for_kinds
                && !looks_up
                && may_define_kinds(chart, values);
            if !stage.is_for(defines, looks_up) || self.stream.as_ref().is_some_and(is_given) {
                continue;
            }
            let known = match stage {
                Stage::Others(Some(all)) | Stage::LookingUp(Some(all)) if !needs_only_base => {
                    Known::All(all.clone())
                }
                _ => Known::Base,
            };
            let capabilities = match &known {
                Known::All(all) => &all.capabilities,
                Known::Base => base,
            };
            let profile = self.cluster.profile;
            let visible = visible.as_ref().map(|objects| {
                let emitter = Emitter::Release(id.clone());
                let view = View::new(objects, emitter, release.objects.as_ref());
                let answers = release.answers.as_ref().map(|asked| asked.renewed(&view));
                let answers = Arc::new(answers.unwrap_or_default());
                Visible { view, answers }
            });
            let digest = release::fingerprint(spec, chart, values, capabilities, profile);
            let digest = match &visible {
                Some(visible) => release::with_answers(digest, &visible.answers),
                None => digest,
            };
            release.digest = Some(digest);
            release.rendered_for = Some(Surroundings {
                capabilities: Arc::clone(capabilities),
                profile,
                view: visible.as_ref().map(|visible| visible.view.clone()),
            });
            let is_wanted = self.demand.releases.includes(id)
                || release_lookups::may_print(chart, values, &self.sought_kinds);
            if !choice.includes(id, digest, release, is_wanted) {
                continue;
            }
            let inputs = ReleaseInputs {
                cluster: Arc::clone(self.cluster),
                spec: Arc::clone(spec),
                values: values.clone(),
                chart: chart_unit.clone(),
            };
            let unit = inputs.add(self.cx, known, visible);
            release.unit = Some(unit.untyped());
            begun.push((id.clone(), unit, needs_only_base));
        }
        let mut is_news = false;
        let referenced = self.referenced_data();
        let may_ask_again = self.may_ask_again();
        let all_kinds = match stage {
            Stage::Others(all_kinds) | Stage::LookingUp(all_kinds) => all_kinds.as_ref(),
            Stage::Definers => None,
        };
        for (id, unit, needs_only_base) in begun {
            let released = available(self.cx.output(&unit).await)?;
            let released = released.and_then(|released| Option::clone(&released));
            is_news |= self.take(&id, released, &referenced, all_kinds);
            let is_answered = self.note_answers(&id, &unit.untyped());
            if is_answered && (needs_only_base || !may_ask_again) {
                self.finish(&id, &referenced);
            }
        }
        Ok(is_news)
    }

    /// Has a release handed out, if something takes it and its turn has come.
    fn finish(&mut self, id: &NamespacedName, referenced: &BTreeSet<DataId>) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let index = &mut self.walker.walk.index;
        let given = stream.finish(id, &self.releases, index);
        if stream.retention == Retention::Keep {
            return;
        }
        let asks_for_kinds = self.asks_for_kinds;
        let looked_up = &self.looked_up;
        let added_producers = index.added_producers();
        for id in given {
            if let Some(release) = self.releases.get_mut(&id) {
                release.forget();
            }
            index.reduce(&Emitter::Release(id), |object| {
                object.gvk().group.ends_with("fluxcd.io")
                    || data_id(object).is_some_and(|id| referenced.contains(&id))
                    || is_producer(object, &added_producers)
                    || looked_up.includes(object.kind())
                    || (asks_for_kinds && object.kind() == DEFINITION)
            });
        }
    }

    /// Takes in what a release gave; says whether it is new and may change something else.
    fn take(
        &mut self,
        id: &NamespacedName,
        released: Option<Arc<Released>>,
        referenced: &BTreeSet<DataId>,
        all_kinds: Option<&AllKinds>,
    ) -> bool {
        let Some(release) = self.releases.get_mut(id) else {
            return false;
        };
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

    /// The data that something wants and that nothing emits so far.
    fn awaited_data(&self) -> BTreeSet<DataId> {
        let walk = &self.walker.walk;
        let kustomizations = walk.kustomizations.values();
        let specs = kustomizations.filter_map(|walked| walked.spec.as_ref().ok());
        let variables = specs.flat_map(|spec| data_ids(spec).collect::<Vec<_>>());
        let releases = self.releases.iter();
        let values = releases.flat_map(|(id, release)| {
            let missing = release.composed.missing.iter();
            missing.map(|reference| reference.data_id(&id.namespace))
        });
        variables
            .chain(values)
            .filter(|id| walk.index.data(id).is_none())
            .collect()
    }

    /// The data that variables and values come from.
    fn referenced_data(&self) -> BTreeSet<DataId> {
        let kustomizations = self.walker.walk.kustomizations.values();
        let specs = kustomizations.filter_map(|walked| walked.spec.as_ref().ok());
        let variables = specs.flat_map(|spec| data_ids(spec).collect::<Vec<_>>());
        let releases = self.releases.iter();
        let releases = releases.filter_map(|(id, release)| Some((id, release.spec.as_ref().ok()?)));
        let values = releases.flat_map(|(id, spec)| {
            let references = spec.values_from.iter();
            references.map(|reference| reference.data_id(&id.namespace))
        });
        variables.chain(values).collect()
    }
}

impl RenderedRelease {
    /// Lets go of the objects, which nobody will ask for again.
    fn forget(&mut self) {
        self.objects = None;
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
        self.index.data(&id) != data_of(object).map(|(_, data)| data).as_ref()
    }

    /// Kinds that were defined before all were collected are among them.
    fn defines_more(&self, object: &Object) -> bool {
        let mut defined = BTreeSet::new();
        add_defined(&mut defined, object);
        self.known_kinds
            .is_some_and(|known| defined.iter().any(|kind| !known.contains(kind)))
    }
}

/// Releases that are rendered together.
enum Stage {
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

    fn into_kinds(self) -> Option<AllKinds> {
        match self {
            Self::Definers => None,
            Self::Others(kinds) | Self::LookingUp(kinds) => kinds,
        }
    }
}

/// Whether a chart or the values that it may print define kinds.
fn may_define_kinds(chart: &LoadedChart, values: &Tree) -> bool {
    chart.may_define_kinds() || release_unit::mentions(values, DEFINITION)
}

/// Whether an object may make others in the cluster.
fn is_producer(object: &Object, added: &[Producer]) -> bool {
    let is = |(group, kind): (&str, &str)| object.gvk().is(group, kind);
    let mut added = added.iter();
    producer_kinds().any(is) || added.any(|producer| is(producer.group_and_kind()))
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
                || may_look_up(chart, &release.composed.values)
                || release_unit::mentions(&release.composed.values, FLUX_GROUPS)
        });
        match self {
            Self::Wanted => is_wanted || matters,
            Self::Followed => matters,
            Self::Unlike(others) => matters || others.get(id) != Some(&digest),
        }
    }
}

/// Whether an object is a HelmRelease.
pub(crate) fn is_release(object: &Object) -> bool {
    object.gvk().is(RELEASE_GROUP, "HelmRelease")
}

/// An output, `None` when its unit failed: the unit's own outcome says why.
pub(crate) fn available<T>(output: Result<Arc<T>, WaitError>) -> Result<Option<Arc<T>>, WaitError> {
    match output {
        Ok(output) => Ok(Some(output)),
        Err(cancelled @ WaitError::Cancelled { .. }) => Err(cancelled),
        Err(_) => Ok(None),
    }
}
