//! Finds and builds the Kustomizations of a cluster: those that the root emits, those that they emit, and so on.
//!
//! A Kustomization is built as soon as the objects with its variables are there. When nothing else can continue, the
//! waiting Kustomizations are built without them and report what is missing. A Kustomization whose inputs have
//! changed since is built again, so the result does not depend on the order of work.
//!
//! ```text
//! root ──build──▶ objects ──▶ Index ──▶ more Kustomizations ──build──▶ …
//! ```
//!
//! If only some objects are wanted, Kustomizations that were found are built only when the [goal
//! search](crate::walk::goal_search) needs them.

pub(crate) mod dependencies;
pub(crate) mod expansion;
pub(crate) mod flux_instance;
pub(crate) mod goal_search;
pub(crate) mod hints;
pub(crate) mod index;
pub(crate) mod remote_cluster;
pub(crate) mod resource_set;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use portolan_engine::{Context, Failure, Key, WaitError};
use portolan_object::Object;
use portolan_yaml::Position;

use crate::api::{FieldError, Kustomization, NamespacedName, SourceRef, SubstituteReference};
use crate::cluster::Cluster;
use crate::compare::outline::Filling;
use crate::compare::skip_plan::{SkipPlan, SkippedByName};
use crate::demand::Demand;
use crate::kustomization::build::{BuildInputs, Built};
use crate::kustomization::variables::{Data, Unset, Variables};
use crate::release::release_unit;
use crate::session::SessionResult;
use crate::stream::Retention;
use crate::walk::expansion::Expansion;
use crate::walk::goal_search::GoalSearch;
use crate::walk::index::{DataId, Emitter, Index, name_of};

/// How often a Kustomization is built anew because its inputs changed; real repositories need one.
pub(crate) const MAX_REBUILDS: u32 = 8;

/// How many Kustomizations may lead to one, each emitting the next: with variables in names that may have no end. Real
/// repositories have less than ten.
const MAX_GENERATIONS: u32 = 64;

/// How much text a Kustomization's own variables may hold; the API server takes no larger objects.
const MAX_VARIABLES: usize = 1 << 20;

/// The API group of Flux's Kustomizations.
pub(crate) const KUSTOMIZATION_GROUP: &str = "kustomize.toolkit.fluxcd.io";

/// A Kustomization and what became of it.
#[derive(Debug, Clone)]
pub struct Walked {
    /// The object that defines it; the root may have none.
    pub definition: Option<Object>,
    /// Who emitted that object.
    pub emitter: Option<Emitter>,
    /// What it says, or what is wrong with what it says.
    pub spec: Result<Arc<Kustomization>, Vec<FieldError>>,
    /// The unit that built it, if any did.
    pub unit: Option<Key>,
    /// What it gave; nothing when its unit failed, or when nobody asked for it.
    pub built: Option<Arc<Built>>,
    /// Data that its variables should come from and that nothing emits.
    pub missing: Vec<SubstituteReference>,
    /// A source that is not to be had.
    pub unavailable: Option<SourceRef>,
    /// What was still another after the last build that was tried; empty when it came to rest.
    pub unsettled: Vec<String>,
}

/// All Kustomizations of a cluster and what they emit.
#[derive(Debug, Default)]
pub struct Walk {
    /// By name.
    pub kustomizations: BTreeMap<NamespacedName, Walked>,
    /// `ResourceSet`s and `FluxInstance`s, by what they are as emitters.
    pub expansions: BTreeMap<Emitter, Expansion>,
    /// What all of them emitted.
    pub index: Index,
    /// Whether every Kustomization was built, not only those that were asked for.
    pub is_complete: bool,
}

/// A Kustomization whose unit ended, and what it gave.
type Ended = (NamespacedName, Result<Arc<SessionResult<Built>>, WaitError>);

/// A walk that goes on.
pub(crate) struct Walker<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) demand: &'a Demand,
    pub(crate) walk: Walk,
    pub(crate) states: BTreeMap<NamespacedName, State>,
    running: FuturesUnordered<BoxFuture<'a, Ended>>,
    goal_search: Option<GoalSearch>,
    skip_plan: Option<Arc<SkipPlan>>,
    /// Kustomizations that were found and need not be built.
    pub(crate) skipped: SkippedByName,
    /// How many more releases are begun as soon as they are emitted.
    pub(crate) early_releases: usize,
    /// What becomes of objects that are handed out.
    pub(crate) retention: Retention,
}

/// Where one Kustomization stands.
pub(crate) struct State {
    pub(crate) spec: Arc<Kustomization>,
    pub(crate) phase: Phase,
    /// How many Kustomizations lead to it.
    generation: u32,
    attempts: u32,
    /// What the last attempt built.
    built_spec: Arc<Kustomization>,
    /// The data that the last attempt was given.
    inputs: Vec<Option<Arc<Data>>>,
    /// What the last attempt did with variables that nothing sets.
    unset: Unset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Known, but nobody asked for it.
    Found,
    Waiting,
    Running,
    Ended,
}

impl<'a> Walker<'a> {
    /// Stands at a cluster's root.
    pub(crate) fn new(cx: &'a Context, cluster: &'a Arc<Cluster>, demand: &'a Demand) -> Self {
        let is_complete = demand.is_everything();
        let mut walker = Self {
            cx,
            cluster,
            demand,
            walk: Walk {
                is_complete,
                index: Index::telling(cluster.secrets.clone(), &cluster.producers),
                ..Walk::default()
            },
            states: BTreeMap::new(),
            running: FuturesUnordered::new(),
            goal_search: (!is_complete).then(GoalSearch::default),
            skip_plan: None,
            skipped: SkippedByName::new(),
            early_releases: 0,
            retention: Retention::Keep,
        };
        let root = Arc::new(cluster.root.clone());
        walker.found(root.id.clone(), None, Ok(Arc::clone(&root)));
        walker.want(&root.id);
        walker
    }

    /// Walks until there is nothing left to build.
    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        loop {
            self.start(|inputs| inputs.iter().all(Option::is_some));
            if let Some((id, built)) = self.running.next().await {
                self.ended(&id, built)?;
            } else if self.expand().await? == 0
                && self.want_more() == 0
                && self.start(|_| true) == 0
                && self.call_back_outdated() == 0
            {
                self.note_unsettled();
                compact(&mut self.walk.kustomizations);
                compact(&mut self.states);
                return Ok(());
            }
        }
    }

    /// Has only those built that are not the same on another side; nothing was built so far.
    pub(crate) fn skip_by(&mut self, skip_plan: &Arc<SkipPlan>) {
        self.walk.is_complete = false;
        self.skip_plan = Some(Arc::clone(skip_plan));
    }

    /// Whether Kustomizations are skipped.
    pub(crate) fn is_skipping(&self) -> bool {
        self.skip_plan.is_some()
    }

    /// Has every Kustomization built from now on.
    pub(crate) fn want_everything(&mut self) {
        self.goal_search = None;
        self.skip_plan = None;
        self.walk.is_complete = true;
        for state in self.states.values_mut() {
            if state.phase == Phase::Found {
                state.phase = Phase::Waiting;
            }
        }
    }

    /// Has a Kustomization built; says whether that is news.
    pub(crate) fn want(&mut self, id: &NamespacedName) -> bool {
        match self.states.get_mut(id) {
            Some(state) if state.phase == Phase::Found => {
                state.phase = Phase::Waiting;
                true
            }
            _ => false,
        }
    }

    /// Takes in what a unit other than a Kustomization emits.
    pub(crate) fn emitted(&mut self, emitter: &Emitter, objects: &Arc<Vec<Object>>) {
        self.walk.index.replace(emitter, objects);
        let found = objects.iter().filter(|object| is_kustomization(object));
        // Of several with one name, the first counts.
        let mut names = HashSet::new();
        let found = found.filter(|object| names.insert(name_of(object)));
        for object in Object::read_all(found) {
            self.found_object(emitter, &object);
        }
        if self.early_releases > 0 {
            let begun = release_unit::begin_early(self.cx, self.cluster, &self.walk.index, objects);
            self.early_releases = self.early_releases.saturating_sub(begun);
        }
    }

    fn want_more(&mut self) -> usize {
        if let Some(skip_plan) = self.skip_plan.clone() {
            return self.want_unskipped(&skip_plan);
        }
        let Some(mut goal_search) = self.goal_search.take() else {
            return 0;
        };
        let count = goal_search.go_on(self);
        self.goal_search = Some(goal_search);
        count
    }

    /// Takes in a definition; one that is new, or says something else than before, is to be built.
    fn found(
        &mut self,
        id: NamespacedName,
        definition: Option<(Object, Emitter)>,
        spec: Result<Arc<Kustomization>, Vec<FieldError>>,
    ) {
        let emitter = definition.as_ref().map(|(_, emitter)| emitter);
        let generation = emitter.map_or(0, |emitter| self.generation(emitter) + 1);
        let spec = spec.and_then(|spec| bounded(spec, generation));
        let walked = self.walk.kustomizations.entry(id.clone());
        let walked = walked.or_insert_with(|| Walked::new(spec.clone()));
        if let Some((definition, emitter)) = definition {
            walked.definition = Some(definition);
            walked.emitter = Some(emitter);
        }
        walked.spec.clone_from(&spec);
        let Ok(spec) = spec else { return };
        let phase = if self.walk.is_complete {
            Phase::Waiting
        } else {
            Phase::Found
        };
        let state = self.states.entry(id).or_insert_with(|| State {
            spec: Arc::clone(&spec),
            phase,
            generation,
            attempts: 0,
            built_spec: Arc::clone(&spec),
            inputs: Vec::new(),
            unset: Unset::default(),
        });
        if *state.spec != *spec {
            state.spec = spec;
            if state.phase == Phase::Ended && state.attempts <= MAX_REBUILDS {
                state.phase = Phase::Waiting;
            }
        }
    }

    /// How many Kustomizations lead to one, or to the one that emits a ResourceSet.
    fn generation(&self, emitter: &Emitter) -> u32 {
        let emitter = match self.walk.expansions.get(emitter) {
            Some(expansion) => &expansion.emitter,
            None => emitter,
        };
        let state = self.states.get(emitter.id());
        state.map_or(0, |state| state.generation)
    }

    /// Starts those that wait, whose source is known and whose inputs the condition accepts; says how many.
    fn start(&mut self, condition: impl Fn(&[Option<Arc<Data>>]) -> bool) -> usize {
        let waiting = self
            .states
            .iter()
            .filter(|(_, state)| state.phase == Phase::Waiting);
        let ready: Vec<_> = waiting
            .map(|(id, state)| (id.clone(), inputs(&self.walk.index, &state.spec)))
            .filter(|(_, inputs)| condition(inputs))
            .collect();
        ready
            .into_iter()
            .filter(|(id, inputs)| self.start_one(id, inputs))
            .count()
    }

    fn start_one(&mut self, id: &NamespacedName, inputs: &[Option<Arc<Data>>]) -> bool {
        let (Some(state), Some(walked)) = (
            self.states.get_mut(id),
            self.walk.kustomizations.get_mut(id),
        ) else {
            return false;
        };
        let source = &state.spec.source;
        let Some(files) = self.cluster.files(self.cx, source, &self.walk.index) else {
            walked.unavailable = Some(source.clone());
            return false;
        };
        state.phase = Phase::Running;
        state.attempts += 1;
        state.built_spec = Arc::clone(&state.spec);
        state.inputs = inputs.to_vec();
        state.unset = unset(&state.spec, inputs, self.cluster, &self.walk.index);
        let (variables, missing) = variables(&state.spec, state.unset, inputs);
        let build = BuildInputs {
            cluster: Arc::clone(self.cluster),
            spec: Arc::clone(&state.spec),
            variables,
            files,
            retention: self.retention,
        };
        let (key, unit) = build.into_unit();
        self.cx.add(key.clone(), &[], unit);
        walked.unit = Some(key.untyped());
        walked.missing = missing;
        walked.unavailable = None;
        let (cx, id) = (self.cx.clone(), id.clone());
        self.running.push(Box::pin(async move {
            let built = cx.output(&key).await;
            (id, built)
        }));
        true
    }

    fn ended(
        &mut self,
        id: &NamespacedName,
        built: Result<Arc<SessionResult<Built>>, WaitError>,
    ) -> Result<(), WaitError> {
        if let Some(state) = self.states.get_mut(id) {
            state.phase = Phase::Ended;
        }
        let built = match built {
            Ok(built) => Some(Arc::clone(&built.0)),
            Err(cancelled @ WaitError::Cancelled { .. }) => return Err(cancelled),
            // The unit's own outcome says why.
            Err(_) => None,
        };
        let objects = built
            .as_ref()
            .map(|built| Arc::clone(&built.objects))
            .unwrap_or_default();
        if let Some(walked) = self.walk.kustomizations.get_mut(id) {
            if built.as_ref().is_none_or(|built| !built.substitutes) {
                walked.missing.clear();
            }
            walked.built = built;
        }
        self.emitted(&Emitter::Kustomization(id.clone()), &objects);
        Ok(())
    }

    /// An emitted definition counts, not the file it came from. Of several, the first emitter's counts.
    fn found_object(&mut self, emitter: &Emitter, object: &Object) {
        let id = name_of(object);
        let first = self
            .walk
            .index
            .named(KUSTOMIZATION_GROUP, "Kustomization", &id);
        let Some((first_emitter, definition)) = first else {
            return;
        };
        let spec = if first_emitter == emitter {
            Kustomization::read(object.node())
        } else {
            // A clone is read, so that a packed definition stays packed.
            Kustomization::read(definition.clone().node())
        };
        let definition = (definition.clone(), first_emitter.clone());
        self.found(id, Some(definition), spec.map(Arc::new));
    }

    /// Has those built again that were given other data than is there now; says how many.
    fn call_back_outdated(&mut self) -> usize {
        let mut count = 0;
        let (cluster, index) = (self.cluster, &self.walk.index);
        for state in self.states.values_mut() {
            if state.attempts <= MAX_REBUILDS && !state.outdated(cluster, index).is_empty() {
                state.phase = Phase::Waiting;
                count += 1;
            }
        }
        count
    }

    /// Notes what changes with every build, so that no build is the last.
    fn note_unsettled(&mut self) {
        for (id, state) in &self.states {
            if let Some(walked) = self.walk.kustomizations.get_mut(id) {
                walked.unsettled = state.outdated(self.cluster, &self.walk.index);
            }
        }
    }
}

impl State {
    /// What is another now than it was for the last build; nothing before the first one.
    fn outdated(&self, cluster: &Cluster, index: &Index) -> Vec<String> {
        if self.phase != Phase::Ended {
            return Vec::new();
        }
        let now = inputs(index, &self.spec);
        let data = data_ids(&self.spec).zip(now.iter().zip(&self.inputs));
        let changed = data.filter(|(_, (now, before))| now != before);
        let mut outdated: Vec<String> = changed
            .map(|((kind, name), _)| format!("{} {name}", kind.as_str()))
            .collect();
        if self.built_spec != self.spec {
            outdated.push(format!("Kustomization {} itself", self.spec.id));
        } else if outdated.is_empty() && self.unset != unset(&self.spec, &now, cluster, index) {
            outdated.push("what the cluster makes".to_owned());
        }
        outdated
    }
}

impl Walked {
    fn new(spec: Result<Arc<Kustomization>, Vec<FieldError>>) -> Self {
        Self {
            definition: None,
            emitter: None,
            spec,
            unit: None,
            built: None,
            missing: Vec::new(),
            unavailable: None,
            unsettled: Vec::new(),
        }
    }
}

/// Lays a large map out anew: one that was filled in order has half of its room empty.
pub(crate) fn compact<K: Ord, V>(map: &mut BTreeMap<K, V>) {
    *map = std::mem::take(map).into_iter().collect();
}

/// Refuses what would have no end: a chain of Kustomizations that emit one another, and variables that grow on the way.
fn bounded(
    spec: Arc<Kustomization>,
    generation: u32,
) -> Result<Arc<Kustomization>, Vec<FieldError>> {
    let variables = spec.post_build.iter().flat_map(|post| &post.substitute);
    let size: usize = variables.map(|(_, value)| value.len()).sum();
    let refused = |path: &str, wanted| FieldError {
        path: path.to_owned(),
        at: Position::default(),
        wanted,
    };
    if generation > MAX_GENERATIONS {
        let wanted =
            "that of a Kustomization which at most 64 others lead to, each emitting the next";
        return Err(vec![refused("metadata.name", wanted)]);
    }
    if size > MAX_VARIABLES {
        let wanted = "shorter than 1 MiB, or the API server refuses it";
        return Err(vec![refused("spec.postBuild.substitute", wanted)]);
    }
    Ok(spec)
}

fn is_kustomization(object: &Object) -> bool {
    object.gvk().is(KUSTOMIZATION_GROUP, "Kustomization")
}

/// What is put into the text of a Kustomization, as far as the data is there that it comes from.
pub(crate) fn filling(spec: &Kustomization, index: &Index) -> Filling {
    let inputs = inputs(index, spec);
    match variables(spec, Unset::Empty, &inputs).0 {
        None => Filling::Nothing,
        Some(variables) if inputs.iter().all(Option::is_some) => Filling::Variables(variables),
        Some(_) => Filling::Unknown,
    }
}

/// What is there of the data that a Kustomization's variables come from, in order.
fn inputs(index: &Index, spec: &Kustomization) -> Vec<Option<Arc<Data>>> {
    data_ids(spec).map(|id| index.data(&id)).collect()
}

/// The data that a Kustomization's variables come from, in order.
pub(crate) fn data_ids(spec: &Kustomization) -> impl Iterator<Item = DataId> {
    let references = spec
        .post_build
        .iter()
        .flat_map(|post_build| &post_build.from);
    references.map(|reference| {
        let name = NamespacedName {
            namespace: spec.id.namespace.clone(),
            name: reference.name.clone(),
        };
        (reference.kind, name)
    })
}

/// What becomes of variables that nothing sets: data that is not here, and that the cluster must or will have, may set
/// any of them.
fn unset(
    spec: &Kustomization,
    inputs: &[Option<Arc<Data>>],
    cluster: &Cluster,
    index: &Index,
) -> Unset {
    let references = spec.post_build.iter().flat_map(|post| &post.from);
    let missing = references.zip(inputs).filter(|(_, data)| data.is_none());
    let missing: Vec<&SubstituteReference> = missing.map(|(reference, _)| reference).collect();
    let is_made = |reference: &&SubstituteReference| {
        let namespace = &spec.id.namespace;
        index.producer(namespace, &reference.name).is_some()
    };
    if missing.iter().any(is_made) {
        Unset::Unknown
    } else if missing.iter().any(|reference| !reference.optional) {
        Unset::Missing
    } else if cluster.profile.strict_substitution {
        Unset::Refused
    } else {
        Unset::Empty
    }
}

/// The variables of a Kustomization from its data in order, and the references that are missing.
fn variables(
    spec: &Kustomization,
    unset: Unset,
    inputs: &[Option<Arc<Data>>],
) -> (Option<Variables>, Vec<SubstituteReference>) {
    let Some(post_build) = &spec.post_build else {
        return (None, Vec::new());
    };
    let mut inputs = inputs.iter();
    let (variables, missing) = Variables::collect(post_build, unset, |_, _| {
        inputs
            .next()
            .and_then(Option::as_ref)
            .map(|data| Data::clone(data))
    });
    (Some(variables), missing)
}
