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

pub(crate) mod kept_objects;
mod stage;
mod taken;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use portolan_engine::{Context, Failure, Key, Unit, WaitError};
use portolan_helm::Capabilities;
use portolan_helm::values::Tree;
use portolan_object::{Digest, Object};
use portolan_yaml::{Node, pack_tree, unpack_tree};

use self::stage::{MAX_PARSED_CHARTS, Stage};
use crate::api::{FieldError, HelmRelease, NamespacedName};
use crate::cluster::Cluster;
use crate::demand::{Demand, Wanted};
use crate::release::chart::{ChartError, Location};
use crate::release::loaded_chart::{LoadedChart, add_defined};
use crate::release::looked_up::LookedUp;
use crate::release::lookup::Answers;
use crate::release::quick_scan::QuickScan;
use crate::release::release_unit::{self, AllKinds, ChartUnit};
use crate::release::value_hints::ValueHints;
use crate::release::values::Composed;
use crate::release::{Released, Surroundings};
use crate::session::SessionResult;
use crate::stream::{OutputSink, Retention, Stream};
use crate::walk::index::{DataId, Emitter, name_of};
use crate::walk::{Walk, Walker, compact, data_ids};

/// The API group of HelmReleases.
pub(crate) const RELEASE_GROUP: &str = "helm.toolkit.fluxcd.io";

/// How often releases are looked at again because charts printed Flux's own objects; real repositories need one.
const MAX_ROUNDS: usize = 8;

/// How many releases are begun while Kustomizations are still built: enough to keep all cores busy, and not more, for
/// what they give must wait for its turn.
const MAX_EARLY_RELEASES: usize = 32;

/// A HelmRelease and what became of it.
#[derive(Debug)]
pub struct RenderedRelease {
    /// The object that defines it.
    pub definition: Object,
    /// Who emitted it.
    pub emitter: Emitter,
    /// What it says, or what is wrong with what it says.
    pub spec: Result<Arc<HelmRelease>, Vec<FieldError>>,
    /// Its values, and what of them was not to be had. The values are not kept when outputs are forgotten.
    pub composed: Composed,
    /// What its values may lead to.
    pub(crate) hints: ValueHints,
    /// Where its chart lies.
    pub location: Option<Location>,
    /// Why its chart is not to be had.
    pub chart_error: Option<Box<ChartError>>,
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
    pub(crate) rendered_for: Option<Box<Surroundings>>,
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
        renderer.walker.retention = stream
            .as_ref()
            .map_or(Retention::Keep, |stream| stream.retention);
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
            chart.is_some_and(|chart| chart.may_emit_flux()) || release.hints.mention_flux
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
        compact(&mut self.releases);
    }

    fn declared(
        &self,
        object: &Object,
        emitter: &Emitter,
        before: Option<RenderedRelease>,
    ) -> RenderedRelease {
        let index = &self.walker.walk.index;
        // A clone is read, so that a packed definition stays packed.
        let mut spec = HelmRelease::read(object.clone().node());
        let mut composed = spec
            .as_ref()
            .map(|spec| release_unit::composed(spec, index))
            .unwrap_or_default();
        let hints = ValueHints::of(&composed.values);
        if self.walker.retention == Retention::Forget {
            // They are composed again when the release is rendered.
            composed.values = Tree::default();
            spec = spec.and_then(|_| without_values(object));
        }
        let located = spec.as_ref().ok();
        let located = located.map(|spec| self.cluster.locate_chart(spec, index));
        let (location, chart_error) = match located {
            Some(Ok(location)) => (Some(location), None),
            Some(Err(error)) => (None, Some(Box::new(error))),
            None => (None, None),
        };
        let mut release = RenderedRelease {
            definition: object.clone(),
            emitter: emitter.clone(),
            composed,
            hints,
            spec: spec.map(Arc::new),
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
        // The releases of a chart share the text of its key.
        let mut units = HashSet::new();
        for release in self.releases.values_mut() {
            if let (Ok(spec), Some(location)) = (&release.spec, &release.location) {
                let unit = ChartUnit::new(self.cx, self.cluster, index, spec, location);
                let unit = unit.add(self.cx, index);
                let known = units.get(&unit).cloned();
                release.chart_unit = Some(known.unwrap_or_else(|| unit.clone()));
                units.insert(unit);
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
            self.looked_up.extend(&release.hints.looked_up);
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
        self.pack_charts().await;
        Ok(())
    }

    /// Packs all charts where memory is saved and there are many: each is unpacked when its releases are rendered.
    fn pack_charts(&self) -> impl Future<Output = ()> + use<> {
        let charts = self.releases.values();
        let charts = charts.filter_map(|release| release.chart.as_ref());
        let charts: HashMap<_, _> = charts.map(|chart| (Arc::as_ptr(chart), chart)).collect();
        let is_saving = self.walker.retention == Retention::Forget;
        let many = is_saving && charts.len() > MAX_PARSED_CHARTS;
        let asks_for_kinds = self.asks_for_kinds;
        let packing = charts.into_values().filter(|_| many).map(|chart| {
            let (cx, chart) = (self.cx.clone(), Arc::clone(chart));
            async move {
                let pack = move || {
                    if asks_for_kinds {
                        // They are asked for before the chart is rendered.
                        chart.crds();
                    }
                    chart.pack();
                };
                cx.compute(pack).await;
            }
        });
        let packing: Vec<_> = packing.collect();
        async move { _ = join_all(packing).await }
    }

    /// What the cluster serves: its Kubernetes, and every custom kind that the repository brings.
    fn capabilities(&self) -> Capabilities {
        let mut served = BTreeSet::new();
        let index = &self.walker.walk.index;
        for (_, object) in index.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
            // A clone is read, so that a packed definition stays packed.
            add_defined(&mut served, &object.clone());
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

/// What a release says besides its values, in texts of its own: a part of a text keeps the whole text in memory.
fn without_values(definition: &Object) -> Result<HelmRelease, Vec<FieldError>> {
    let mut node = definition.clone().into_node();
    let spec = node.get_mut("spec").and_then(Node::as_map_mut);
    if let Some(spec) = spec {
        spec.remove("values");
    }
    let mut packed = Vec::new();
    pack_tree(&node, &mut packed);
    HelmRelease::read(&unpack_tree(&packed))
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
