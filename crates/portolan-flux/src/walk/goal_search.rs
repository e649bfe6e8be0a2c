//! Finds the wanted objects without building everything.
//!
//! Each wanted object, and everything that it needs, is a goal. A goal that nothing has emitted yet is looked up in
//! the [hints](crate::walk::hints): unbuilt Kustomizations whose files probably contain it are built next. If the
//! hints do not lead to a name that the user gave, it is searched everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::{Chart, HelmRelease, NamespacedName, SourceRef, SourceSpec};
use crate::demand::Name;
use crate::kustomization::generate;
use crate::render::RELEASE_GROUP;
use crate::source::artifact_generator;
use crate::walk::hints::{Hints, Reach};
use crate::walk::index::{DataId, name_of};
use crate::walk::{Phase, Walker, data_ids};

/// The state of a search.
#[derive(Default)]
pub(crate) struct GoalSearch {
    hints: Option<Hints>,
    reaches: BTreeMap<NamespacedName, Reach>,
    /// Goals that were given up: nothing can be built any more that might emit them.
    given_up: BTreeSet<Goal>,
}

/// An object that must be emitted before what was asked for can be made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Goal {
    kind: String,
    name: String,
    /// Whether the user asked for it by name: then it is searched for everywhere.
    is_named: bool,
}

impl GoalSearch {
    /// Wants what brings the goals nearer; says how many Kustomizations are wanted anew.
    pub(crate) fn go_on(&mut self, walker: &mut Walker<'_>) -> usize {
        let mut count = want_named(walker);
        if count > 0 {
            return count;
        }
        for goal in goals(walker) {
            if !self.given_up.contains(&goal) {
                count += self.search(goal, walker);
            }
        }
        count
    }

    fn search(&mut self, goal: Goal, walker: &mut Walker<'_>) -> usize {
        let candidates = self.candidates(&goal, walker);
        let wanted = if candidates.is_empty() && goal.is_named {
            unbuilt(walker).collect()
        } else {
            candidates
        };
        if wanted.is_empty() {
            self.given_up.insert(goal);
        }
        wanted.iter().filter(|id| walker.want(id)).count()
    }

    /// The unbuilt Kustomizations whose files probably hold an object.
    fn candidates(&mut self, goal: &Goal, walker: &Walker<'_>) -> Vec<NamespacedName> {
        let Some(files) = walker.cluster.own().map(Arc::clone) else {
            return Vec::new();
        };
        let hints = self
            .hints
            .get_or_insert_with(|| Hints::search(files.as_ref()));
        let probable: Vec<_> = hints.files(&goal.kind, &goal.name).collect();
        let mut candidates = Vec::new();
        for id in unbuilt(walker) {
            let Some(state) = walker.states.get(&id) else {
                continue;
            };
            let reach = self
                .reaches
                .entry(id.clone())
                .or_insert_with(|| Reach::of(files.as_ref(), &generate::directory(&state.spec)));
            if probable.iter().any(|path| reach.covers(path)) {
                candidates.push(id);
            }
        }
        candidates
    }
}

/// Wants the Kustomizations that the user named and that were found.
fn want_named(walker: &mut Walker<'_>) -> usize {
    let demand = walker.demand;
    let named: Vec<_> = unbuilt(walker)
        .filter(|id| demand.kustomizations.includes(id))
        .collect();
    named.iter().filter(|id| walker.want(id)).count()
}

fn unbuilt(walker: &Walker<'_>) -> impl Iterator<Item = NamespacedName> {
    let found = walker
        .states
        .iter()
        .filter(|(_, state)| state.phase == Phase::Found);
    found.map(|(id, _)| id.clone())
}

/// Everything that is needed and that nothing emits so far.
fn goals(walker: &Walker<'_>) -> BTreeSet<Goal> {
    let mut goals = BTreeSet::new();
    for name in walker.demand.kustomizations.names() {
        if !walker.states.keys().any(|id| name.matches(id)) {
            goals.insert(Goal::named("Kustomization", name));
        }
    }
    for state in walker.states.values() {
        if state.phase == Phase::Waiting {
            add_data(&mut goals, walker, data_ids(&state.spec));
            add_source(&mut goals, walker, &state.spec.source);
        }
    }
    for name in walker.demand.releases.names() {
        let releases = walker.walk.index.of_kind(RELEASE_GROUP, "HelmRelease");
        let mut is_found = false;
        for (_, object) in releases {
            let id = name_of(object);
            if name.matches(&id) {
                is_found = true;
                if let Ok(release) = HelmRelease::read(object.node()) {
                    add_release(&mut goals, walker, &release);
                }
            }
        }
        if !is_found {
            goals.insert(Goal::named("HelmRelease", name));
        }
    }
    goals
}

/// The names of data that something built is made of, and of sources that nothing emits so far.
///
/// Data that is there counts as well: another emitter of it may come first.
pub(crate) fn needed_names(walker: &Walker<'_>) -> BTreeSet<String> {
    let mut goals = BTreeSet::new();
    let mut names = BTreeSet::new();
    for state in walker.states.values() {
        if state.phase != Phase::Found {
            names.extend(data_ids(&state.spec).map(|(_, id)| id.name.to_string()));
            add_source(&mut goals, walker, &state.spec.source);
        }
    }
    for (_, object) in walker.walk.index.of_kind(RELEASE_GROUP, "HelmRelease") {
        if let Ok(release) = HelmRelease::read(object.node()) {
            let data = release.values_from.iter();
            names.extend(data.map(|reference| reference.name.to_string()));
            add_release(&mut goals, walker, &release);
        }
    }
    names.extend(goals.into_iter().map(|goal| goal.name));
    names
}

/// What a release is made of: data for its values, and the sources its chart comes from.
fn add_release(goals: &mut BTreeSet<Goal>, walker: &Walker<'_>, release: &HelmRelease) {
    let data = release.values_from.iter().map(|reference| {
        let name = NamespacedName {
            namespace: release.id.namespace.clone(),
            name: reference.name.clone(),
        };
        (reference.kind, name)
    });
    add_data(goals, walker, data);
    match &release.chart {
        Chart::Spec(spec) => add_source(goals, walker, &spec.source),
        Chart::Reference(reference) => {
            add_source(goals, walker, reference);
            if let Some(SourceSpec::HelmChart(spec)) = walker
                .walk
                .index
                .source(reference)
                .map(|source| source.spec)
            {
                add_source(goals, walker, &spec.source);
            }
        }
    }
}

fn add_data(goals: &mut BTreeSet<Goal>, walker: &Walker<'_>, data: impl Iterator<Item = DataId>) {
    for id in data {
        if walker.walk.index.data(&id).is_none() {
            goals.insert(Goal::new(id.0.as_str(), &id.1.name));
        }
    }
}

fn add_source(goals: &mut BTreeSet<Goal>, walker: &Walker<'_>, source: &SourceRef) {
    let is_at_hand = walker.cluster.at_hand(source).is_some();
    if source.kind == "ExternalArtifact" {
        match artifact_generator::recipe(source, &walker.walk.index) {
            Some(recipe) => {
                for (_, part) in recipe
                    .sources
                    .iter()
                    .filter(|(_, part)| part.kind != source.kind)
                {
                    add_source(goals, walker, part);
                }
            }
            None if !is_at_hand => {
                goals.insert(Goal::new("ArtifactGenerator", &source.id.name));
            }
            None => {}
        }
    } else if !is_at_hand && walker.walk.index.source(source).is_none() {
        goals.insert(Goal::new(&source.kind, &source.id.name));
    }
}

impl Goal {
    fn new(kind: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            is_named: false,
        }
    }

    fn named(kind: &str, name: &Name) -> Self {
        Self {
            is_named: true,
            ..Self::new(kind, &name.name)
        }
    }
}
