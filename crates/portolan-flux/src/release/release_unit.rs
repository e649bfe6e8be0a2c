//! The units of a release: one that loads its chart, and one that renders it.
//!
//! They start as soon as a release is emitted and all its inputs are there, while Kustomizations are still being
//! built. If the inputs change later (other values, another chart), the unit has another key and runs again.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_engine::{Context, Failure, Key, Unit};
use portolan_helm::values::Tree;
use portolan_helm::{Capabilities, on_one_thread};
use portolan_object::{Digest, Object};
use portolan_yaml::Text;

use crate::api::{HelmRelease, NamespacedName};
use crate::cluster::{Cluster, Files, access, source_key, unit_key};
use crate::release::chart::{self, ChartError, Location};
use crate::release::loaded_chart::LoadedChart;
use crate::release::looked_up::values_may_look_up;
use crate::release::lookup::{Answers, Asking, View};
use crate::release::quick_scan::{self, QuickScan};
use crate::release::values::{Composed, Referenced, compose};
use crate::release::{self, ReleaseError, Released, Surroundings};
use crate::render::is_release;
use crate::render::kept_objects::KeptObjects;
use crate::session::SessionResult;
use crate::session::fingerprint::Fingerprint;
use crate::source::outside::Access;
use crate::walk::index::Index;

/// What a release's unit gives: nothing when it must wait until all kinds of the cluster are known, or what it may look
/// up.
pub(crate) type Rendered = Option<Arc<Released>>;

/// Everything that decides what a release gives, but for the cluster's kinds and objects.
pub(crate) struct ReleaseInputs {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) spec: Arc<HelmRelease>,
    pub(crate) values: Tree,
    /// The unit that loads the chart.
    pub(crate) chart: Key<SessionResult<LoadedChart>>,
    /// Has the objects packed as soon as they are rendered, because they have to wait; those that others may want to know
    /// of together.
    pub(crate) packing: Option<Arc<KeptObjects>>,
}

/// What a chart may look up.
pub(crate) struct Visible {
    pub(crate) view: View,
    /// What it is known to ask, with the answers of now.
    pub(crate) answers: Arc<Answers>,
}

/// What a chart may know of the cluster's kinds.
pub(crate) enum Known {
    /// Those of Kubernetes itself; a chart that asks for others is not rendered.
    Base,
    /// All.
    All(AllKinds),
}

/// What a cluster serves: its Kubernetes, and every custom kind that the repository brings.
#[derive(Clone)]
pub(crate) struct AllKinds {
    pub(crate) capabilities: Arc<Capabilities>,
    digest: Digest,
}

impl AllKinds {
    pub(crate) fn new(capabilities: Capabilities) -> Self {
        let mut digest = Fingerprint::of("kinds");
        for version in &capabilities.api_versions {
            digest.text(version);
        }
        Self {
            capabilities: Arc::new(capabilities),
            digest: digest.finish(),
        }
    }
}

/// Begins loading and rendering releases among objects, as far as all they are made of is there; says how many.
pub(crate) fn begin_early(
    cx: &Context,
    cluster: &Arc<Cluster>,
    index: &Index,
    objects: &[Object],
) -> usize {
    let mut begun = 0;
    for object in objects.iter().filter(|object| is_release(object)) {
        // A clone is read, so that a packed definition stays packed.
        let Ok(spec) = HelmRelease::read(object.clone().node()) else {
            continue;
        };
        let Ok(location) = cluster.locate_chart(&spec, index) else {
            continue;
        };
        let composed = composed(&spec, index);
        let chart = ChartUnit::new(cx, cluster, index, &spec, &location).add(cx, index);
        if composed.missing.is_empty() && composed.errors.is_empty() {
            let inputs = ReleaseInputs {
                cluster: Arc::clone(cluster),
                spec: Arc::new(spec),
                values: composed.values,
                chart,
                packing: None,
            };
            inputs.add(cx, Known::Base, None);
            begun += 1;
        }
    }
    begun
}

/// The values of a release from what was emitted so far.
pub(crate) fn composed(spec: &HelmRelease, index: &Index) -> Composed {
    compose(spec, |kind, name| {
        let name = NamespacedName {
            namespace: spec.id.namespace.clone(),
            name: Text::from(name),
        };
        match index.data(&(kind, name.clone())) {
            Some(data) => Referenced::Known(data),
            None if index.producer(&name.namespace, &name.name).is_some() => Referenced::Unknown,
            None => Referenced::Nothing,
        }
    })
}

/// The unit that loads a release's chart, one for all releases that use it.
#[derive(Clone)]
pub(crate) struct ChartUnit {
    pub(crate) key: Key<SessionResult<LoadedChart>>,
    cluster: Arc<Cluster>,
    location: Location,
    files: Option<Files>,
    access: Access,
}

impl ChartUnit {
    pub(crate) fn new(
        cx: &Context,
        cluster: &Arc<Cluster>,
        index: &Index,
        release: &HelmRelease,
        location: &Location,
    ) -> Self {
        let mut inputs = Fingerprint::of("Chart");
        inputs.add(location);
        let mut files = None;
        if let Location::Tree { source, .. } = location {
            // What has to be fetched is fetched when the unit is added, for it may be compared only.
            match cluster.elsewhere(source, index) {
                Some(declared) => inputs.text(source_key(&declared).as_str()),
                None => files = cluster.files(cx, source, index),
            }
        }
        let identity = match &files {
            Some(Files::Here(artifact)) => chart::identity(artifact, location),
            _ => None,
        };
        match (&identity, &files) {
            (Some(identity), _) => inputs.digest(identity),
            (None, Some(files)) => files.fingerprint(&mut inputs),
            (None, None) => {}
        }
        let access = chart::source_of(release, index).map_or_else(
            |_: ChartError| Access::default(),
            |source| access(&source, index),
        );
        let short: String = inputs.finish().to_string().chars().take(12).collect();
        Self {
            key: Key::from(format!("Chart/{location}#{short}")),
            cluster: Arc::clone(cluster),
            location: location.clone(),
            files,
            access,
        }
    }

    /// Whether the chart does not lie in a tree at hand.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.files.is_none()
    }

    /// Whether the chart's archive is in the cache.
    pub(crate) async fn is_at_hand(&self, cx: &Context) -> bool {
        let is_tree = matches!(self.location, Location::Tree { .. });
        match &self.cluster.outside {
            Some(outside) if !is_tree => {
                let archive = outside.chart_at_hand(cx, &self.location, &self.access);
                let archive = archive.await;
                archive.is_some()
            }
            _ => false,
        }
    }

    /// What can be told of the chart from its files at hand.
    pub(crate) fn scan(&self) -> QuickScan {
        match (&self.files, &self.location) {
            (Some(Files::Here(artifact)), Location::Tree { path, .. }) => {
                self.cluster.session.scans.of_chart(artifact, path)
            }
            _ => QuickScan::UNKNOWN,
        }
    }

    /// Whether the chart may define a kind of one of some groups; one that cannot be looked at may.
    pub(crate) fn may_define(&self, groups: &BTreeSet<String>) -> bool {
        match (&self.files, &self.location) {
            (Some(Files::Here(artifact)), Location::Tree { path, .. }) => {
                quick_scan::may_define(artifact.as_ref(), path, groups)
            }
            _ => true,
        }
    }

    /// Adds the unit, unless it was added before.
    pub(crate) fn add(&self, cx: &Context, index: &Index) -> Key<SessionResult<LoadedChart>> {
        let Self {
            key,
            cluster,
            location,
            files,
            access,
        } = self.clone();
        let files = match &location {
            Location::Tree { source, .. } => files.or_else(|| cluster.files(cx, source, index)),
            _ => None,
        };
        let unit = Unit::io(move |cx| async move {
            let chart = cluster.load_chart(&cx, &location, files, &access).await;
            chart.map(SessionResult)
        });
        cx.add(key.clone(), &[], unit);
        key
    }
}

impl ReleaseInputs {
    /// Adds the unit that renders the release; the same inputs give the same unit.
    pub(crate) fn add(self, cx: &Context, known: Known, visible: Option<Visible>) -> Key<Rendered> {
        let mut inputs = Fingerprint::of("HelmRelease inputs");
        release::fingerprint_spec(&self.spec, &mut inputs);
        inputs.tree(&self.values);
        inputs.text(self.chart.as_str());
        // Clusters of different versions may have the same release, and so may the two sides of a comparison.
        inputs.text(&self.cluster.capabilities.kube_version.to_string());
        inputs.flag(self.cluster.profile.helm4);
        if let Known::All(all) = &known {
            inputs.digest(&all.digest);
        }
        inputs.flag(visible.is_some());
        if let Some(visible) = &visible {
            visible.answers.fingerprint(&mut inputs);
        }
        let key = unit_key("HelmRelease", &self.spec.id, &inputs.finish());
        let view = visible.map(|visible| visible.view);
        cx.add(key.clone(), &[], self.into_unit(known, view));
        key
    }

    /// A unit that finds the result, or makes it.
    fn into_unit(self, known: Known, view: Option<View>) -> Unit<Rendered> {
        Unit::io(move |cx| async move {
            let chart = cx.output(&self.chart).await?;
            let chart = Arc::clone(&chart.0);
            let capabilities = match known {
                Known::All(all) => all.capabilities,
                Known::Base if chart.needs_only(&self.cluster.capabilities) => {
                    Arc::clone(&self.cluster.capabilities)
                }
                Known::Base => return Ok(Rendered::None),
            };
            if view.is_none() && may_look_up(&chart, &self.values) {
                return Ok(Rendered::None);
            }
            let surroundings = Surroundings {
                capabilities,
                profile: self.cluster.profile,
                view,
            };
            let released = self.released(&cx, chart, surroundings).await?;
            Ok(Some(released))
        })
    }

    async fn released(
        self,
        cx: &Context,
        chart: Arc<LoadedChart>,
        surroundings: Surroundings,
    ) -> Result<Arc<Released>, Failure> {
        let session = Arc::clone(&self.cluster.session);
        let key = release::fingerprint(
            &self.spec,
            &chart,
            &self.values,
            &surroundings.capabilities,
            surroundings.profile,
        );
        // What is given says where it is written.
        let mut slot = Fingerprint::of("HelmRelease in its place");
        slot.digest(&key);
        slot.digest(&chart.place_digest());
        let slot = session.releases(&slot.finish()).await;
        let view = surroundings.view.as_ref();
        let holds = |released: &Released| {
            released.answers.is_empty() || view.is_some_and(|view| released.answers.hold_for(view))
        };
        if let Some(released) = slot.find(holds) {
            return Ok(released);
        }
        let (fetch, budget) = (self.cluster.fetch.clone(), self.cluster.budget.clone());
        let asking = view.map(|view| Arc::new(Asking::new(view.clone())));
        let asked = asking.clone();
        let Self {
            spec,
            values,
            packing,
            ..
        } = self;
        let render = move || {
            // Its time begins when it begins.
            let budget = budget.renewed();
            let fetch = fetch.clone();
            let render =
                || release::render(&spec, &chart, values, &surroundings, asking, fetch, &budget);
            let Some(kept) = packing else {
                return render();
            };
            let released = on_one_thread(render)?;
            released.pack(&chart.dictionaries, |object| kept.includes(object));
            Ok::<_, ReleaseError>(released)
        };
        let released = cx.compute(render).await;
        if let (Err(_), Some(asked)) = (&released, asked) {
            let answers = Arc::new(asked.answers());
            session.note_asked(cx.key(), &answers);
        }
        Ok(slot.keep(Arc::new(released?)))
    }
}

/// Whether a chart, or a template in the values that it may run, looks objects up.
pub(crate) fn may_look_up(chart: &LoadedChart, values: &Tree) -> bool {
    !chart.looked_up().is_empty() || values_may_look_up(values)
}

/// Whether a word stands in values, for charts that print what they are given.
pub(crate) fn mentions(values: &Tree, word: &str) -> bool {
    match values {
        Tree::Text(text) => text.contains(word),
        Tree::List(items) => items.iter().any(|item| mentions(item, word)),
        Tree::Table(table) => table.values().any(|value| mentions(value, word)),
        _ => false,
    }
}
