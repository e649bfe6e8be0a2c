//! Finds and builds every Kustomization of a cluster: those that the root emits, those that they emit, and so on.
//!
//! A Kustomization is built as soon as the objects its variables come from are there. When nothing can go on, what still
//! waits is built without them and says what it misses. What was built on content that has changed since is built
//! again, so that the result does not depend on the order of things.
//!
//! ```text
//! root ──build──▶ objects ──▶ Index ──▶ more Kustomizations ──build──▶ …
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use portolan_engine::{Context, Failure, Key, Unit, WaitError};
use portolan_object::Object;

use crate::api::{FieldError, Kustomization, NamespacedName, SourceRef, SubstituteReference};
use crate::build::{self, Built};
use crate::cluster::Cluster;
use crate::index::{DataId, Emitter, Index};
use crate::variables::{Data, Variables};

/// How often a Kustomization is built anew because its inputs changed; real repositories need one.
const MAX_REBUILDS: u32 = 8;

/// A Kustomization and what became of it.
#[derive(Debug, Clone)]
pub struct Walked {
    /// The object that defines it; the root may have none.
    pub definition: Option<Object>,
    /// What it says, or what is wrong with what it says.
    pub spec: Result<Arc<Kustomization>, Vec<FieldError>>,
    /// The unit that built it, if any did.
    pub unit: Option<Key>,
    /// What it gave; nothing when its unit failed.
    pub built: Option<Arc<Built>>,
    /// Data that its variables should come from and that nothing emits.
    pub missing: Vec<SubstituteReference>,
    /// A source that is not to be had.
    pub unavailable: Option<SourceRef>,
}

/// All Kustomizations of a cluster and what they emit.
#[derive(Debug, Default)]
pub struct Walk {
    /// By name.
    pub kustomizations: BTreeMap<NamespacedName, Walked>,
    /// What they emitted.
    pub index: Index,
}

/// Walks a cluster from its root.
pub(crate) async fn walk(cx: &Context, cluster: &Arc<Cluster>) -> Result<Walk, Failure> {
    let mut walker = Walker {
        cx,
        cluster,
        walk: Walk::default(),
        states: BTreeMap::new(),
        running: FuturesUnordered::new(),
    };
    walker.found(
        cluster.root.id.clone(),
        None,
        Ok(Arc::new(cluster.root.clone())),
    );
    walker.run().await?;
    Ok(walker.walk)
}

/// A Kustomization whose unit ended, and what it gave.
type Ended = (NamespacedName, Result<Arc<Built>, WaitError>);

struct Walker<'a> {
    cx: &'a Context,
    cluster: &'a Arc<Cluster>,
    walk: Walk,
    states: BTreeMap<NamespacedName, State>,
    running: FuturesUnordered<BoxFuture<'a, Ended>>,
}

/// Where one Kustomization stands.
struct State {
    spec: Arc<Kustomization>,
    phase: Phase,
    attempts: u32,
    /// The data that the last attempt was given.
    inputs: Vec<Option<Arc<Data>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Ended,
}

impl Walker<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            self.start(|inputs| inputs.iter().all(Option::is_some));
            if let Some((id, built)) = self.running.next().await {
                self.ended(&id, built)?;
            } else if self.start(|_| true) == 0 && self.call_back_outdated() == 0 {
                return Ok(());
            }
        }
    }

    /// Takes in a definition; one that is new, or says something else than before, is to be built.
    fn found(
        &mut self,
        id: NamespacedName,
        definition: Option<Object>,
        spec: Result<Arc<Kustomization>, Vec<FieldError>>,
    ) {
        let walked = self
            .walk
            .kustomizations
            .entry(id.clone())
            .or_insert_with(|| Walked {
                definition: None,
                spec: spec.clone(),
                unit: None,
                built: None,
                missing: Vec::new(),
                unavailable: None,
            });
        walked.definition = definition.or(walked.definition.take());
        walked.spec.clone_from(&spec);
        let Ok(spec) = spec else { return };
        if !self.cluster.sources.contains_key(&spec.source) {
            walked.unavailable = Some(spec.source.clone());
            return;
        }
        match self.states.get_mut(&id) {
            Some(state) if *state.spec == *spec => {}
            Some(state) => {
                state.spec = spec;
                if state.phase == Phase::Ended && state.attempts <= MAX_REBUILDS {
                    state.phase = Phase::Waiting;
                }
            }
            None => {
                let state = State {
                    spec,
                    phase: Phase::Waiting,
                    attempts: 0,
                    inputs: Vec::new(),
                };
                self.states.insert(id, state);
            }
        }
    }

    /// Starts those that wait and whose inputs the condition accepts; says how many.
    fn start(&mut self, condition: impl Fn(&[Option<Arc<Data>>]) -> bool) -> usize {
        let waiting = self
            .states
            .iter()
            .filter(|(_, state)| state.phase == Phase::Waiting);
        let ready: Vec<_> = waiting
            .map(|(id, state)| (id.clone(), inputs(&self.walk.index, &state.spec)))
            .filter(|(_, inputs)| condition(inputs))
            .collect();
        let count = ready.len();
        for (id, inputs) in ready {
            self.start_one(id, &inputs);
        }
        count
    }

    fn start_one(&mut self, id: NamespacedName, inputs: &[Option<Arc<Data>>]) {
        let (Some(state), Some(walked)) = (
            self.states.get_mut(&id),
            self.walk.kustomizations.get_mut(&id),
        ) else {
            return;
        };
        state.phase = Phase::Running;
        state.attempts += 1;
        state.inputs = inputs.to_vec();
        let (variables, missing) = self.cluster.variables(&state.spec, inputs);
        let key = self.cluster.unit_key(&id, state.attempts);
        let unit = build_unit(Arc::clone(self.cluster), Arc::clone(&state.spec), variables);
        self.cx.add(key.clone(), &[], unit);
        walked.unit = Some(key.clone());
        walked.missing = missing;
        let cx = self.cx.clone();
        self.running.push(Box::pin(async move {
            let built = cx.output::<Built>(&key).await;
            (id, built)
        }));
    }

    fn ended(
        &mut self,
        id: &NamespacedName,
        built: Result<Arc<Built>, WaitError>,
    ) -> Result<(), WaitError> {
        if let Some(state) = self.states.get_mut(id) {
            state.phase = Phase::Ended;
        }
        let built = match built {
            Ok(built) => Some(built),
            Err(cancelled @ WaitError::Cancelled { .. }) => return Err(cancelled),
            // The unit's own outcome says why.
            Err(_) => None,
        };
        let objects = built
            .as_ref()
            .map(|built| Arc::clone(&built.objects))
            .unwrap_or_default();
        self.walk
            .index
            .replace(&Emitter::Kustomization(id.clone()), &objects);
        if let Some(walked) = self.walk.kustomizations.get_mut(id) {
            if built.as_ref().is_none_or(|built| !built.substitutes) {
                walked.missing.clear();
            }
            walked.built = built;
        }
        for object in objects.iter().filter(|object| is_kustomization(object)) {
            self.found_object(object);
        }
        Ok(())
    }

    /// An emitted definition counts, not the file it came from. Of several, the first emitter's counts.
    fn found_object(&mut self, object: &Object) {
        let id = NamespacedName::new(object.namespace().to_owned(), object.name().to_owned());
        let first = self
            .walk
            .index
            .of_kind(KUSTOMIZATION_GROUP, "Kustomization")
            .find(|(_, other)| {
                other.namespace() == object.namespace() && other.name() == object.name()
            });
        let definition = first.map_or(object, |(_, first)| first).clone();
        let spec = Kustomization::read(definition.node()).map(Arc::new);
        self.found(id, Some(definition), spec);
    }

    /// Has those built again that were given other data than is there now; says how many.
    fn call_back_outdated(&mut self) -> usize {
        let mut count = 0;
        for state in self.states.values_mut() {
            let now = inputs(&self.walk.index, &state.spec);
            if state.inputs != now && state.attempts <= MAX_REBUILDS {
                state.phase = Phase::Waiting;
                count += 1;
            }
        }
        count
    }
}

/// The API group of Flux's Kustomizations.
const KUSTOMIZATION_GROUP: &str = "kustomize.toolkit.fluxcd.io";

fn is_kustomization(object: &Object) -> bool {
    object.gvk().is(KUSTOMIZATION_GROUP, "Kustomization")
}

/// What is there of the data that a Kustomization's variables come from, in order.
fn inputs(index: &Index, spec: &Kustomization) -> Vec<Option<Arc<Data>>> {
    let references = spec
        .post_build
        .iter()
        .flat_map(|post_build| &post_build.from);
    references
        .map(|reference| index.data(&data_id(spec, reference)).cloned())
        .collect()
}

fn data_id(spec: &Kustomization, reference: &SubstituteReference) -> DataId {
    let name = NamespacedName {
        namespace: spec.id.namespace.clone(),
        name: reference.name.clone(),
    };
    (reference.kind, name)
}

fn build_unit(
    cluster: Arc<Cluster>,
    spec: Arc<Kustomization>,
    variables: Option<Variables>,
) -> Unit {
    Unit::cpu(move |_| {
        let Some(artifact) = cluster.sources.get(&spec.source) else {
            return Err(Failure::message(format!(
                "{} is not to be had",
                spec.source
            )));
        };
        let fetch = cluster.fetch.as_deref();
        Ok(build::build(
            artifact.as_ref(),
            &spec,
            variables.as_ref(),
            fetch,
        )?)
    })
}
