//! What could not be rendered on one side: why, and which of its inputs differ.

use std::collections::BTreeSet;

use portolan_diff::{Effect, FailedSide, Failure, InputChange};
use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Emitter, InputDifference, InputKind, InputText, Location, RenderedRelease, problems,
};
use portolan_object::{Finding, Owner, OwnerKind, Place, Severity};
use portolan_yaml::Text;

use super::Trees;
use super::batches::{OwnerObjects, Side, cluster_name};
use super::two_sides::{ClusterSide, TwoSides};

/// What is wrong with both sides of one cluster.
struct ClusterProblems<'a> {
    before: Option<&'a ClusterSide>,
    after: Option<&'a ClusterSide>,
    problems: [Vec<Finding>; 2],
}

/// The owners that could not be rendered on a side, and the releases that did not have to be: their inputs are equal
/// and their charts would have to be fetched.
pub(super) fn find(
    two_sides: &TwoSides,
    trees: &Trees,
    old: &Side,
    new: &Side,
) -> (Vec<Failure>, BTreeSet<Owner>) {
    let mut failures = Vec::new();
    let mut unfetched = BTreeSet::new();
    let paths: BTreeSet<&Text> = two_sides.old.keys().chain(two_sides.new.keys()).collect();
    for path in paths {
        let (before, after) = (two_sides.old.get(path), two_sides.new.get(path));
        let Some(cluster_side) = after.or(before) else {
            continue;
        };
        let cluster = cluster_name(cluster_side, &two_sides.old, &two_sides.new);
        let emitters = emitters(before, after);
        let failed = emitters.iter().filter_map(|emitter| {
            let owner = emitter.owner(&cluster);
            let fails =
                |side: &Side| matches!(side.by_owner.get(&owner), Some(OwnerObjects::Failed));
            let side = match (fails(old), fails(new)) {
                (true, true) => FailedSide::Both,
                (true, false) => FailedSide::Before,
                (false, true) => FailedSide::After,
                (false, false) => refused_side(emitter, before, after)?,
            };
            Some((emitter, owner, side))
        });
        let failed: Vec<_> = failed.collect();
        let wrong = |cluster_side: Option<&ClusterSide>, files: Option<&dyn portolan_vfs::Vfs>| {
            let known = cluster_side.zip(files).filter(|_| !failed.is_empty());
            known.map_or_else(Vec::new, |(cluster_side, files)| {
                problems(cluster_side, &two_sides.report, files)
            })
        };
        let cluster_problems = ClusterProblems {
            problems: [
                wrong(before, trees.old.as_deref()),
                wrong(after, Some(trees.new.as_ref())),
            ],
            before,
            after,
        };
        for (emitter, owner, side) in failed {
            let is_equal = |cluster_side: &ClusterSide| matches!(emitter, Emitter::Release(id) if is_equal_and_unfetched(cluster_side, id));
            if side == FailedSide::Both && after.is_some_and(is_equal) {
                unfetched.insert(owner);
            } else {
                let present = [old, new].map(|side| side.by_owner.contains_key(&owner));
                failures.push(cluster_problems.failure(emitter, owner, side, present));
            }
        }
        let skipped = cluster_side.not_rendered().into_iter();
        let skipped = skipped.flat_map(|not_rendered| &not_rendered.unfetched);
        unfetched.extend(skipped.map(|id| Emitter::Release(id.clone()).owner(&cluster)));
    }
    (failures, unfetched)
}

/// The side on which Flux refuses a Kustomization that it takes on the other.
fn refused_side(
    emitter: &Emitter,
    before: Option<&ClusterSide>,
    after: Option<&ClusterSide>,
) -> Option<FailedSide> {
    let Emitter::Kustomization(id) = emitter else {
        return None;
    };
    let is_refused = |cluster_side: Option<&ClusterSide>| {
        let walked = cluster_side?.walk.kustomizations.get(id)?;
        Some(walked.is_refused())
    };
    match (is_refused(before)?, is_refused(after)?) {
        (true, false) => Some(FailedSide::Before),
        (false, true) => Some(FailedSide::After),
        _ => None,
    }
}

/// Whether a finding is about a release that both sides make of the same, and whose chart could not be fetched.
pub(super) fn is_of_equal_release(cluster_side: &ClusterSide, finding: &Finding) -> bool {
    finding.owner.as_ref().is_some_and(|owner| {
        let id = NamespacedName::new(owner.namespace.clone(), owner.name.clone());
        owner.kind == OwnerKind::Release && is_equal_and_unfetched(cluster_side, &id)
    })
}

/// Whether both sides make a release of the same, and its chart could not be fetched.
fn is_equal_and_unfetched(cluster_side: &ClusterSide, id: &NamespacedName) -> bool {
    let differences = cluster_side
        .not_rendered()
        .and_then(|not_rendered| not_rendered.releases.get(id));
    let release = cluster_side.releases.get(id);
    differences.is_some_and(Vec::is_empty) && release.is_some_and(is_unfetched)
}

/// Whether a release's chart lies elsewhere and could not be loaded.
fn is_unfetched(release: &RenderedRelease) -> bool {
    let is_elsewhere = release
        .location
        .as_ref()
        .is_some_and(|location| !matches!(location, Location::Tree { .. }));
    is_elsewhere && release.chart.is_none() && release.chart_error.is_none()
}

/// Everything on both sides that gives objects.
fn emitters(before: Option<&ClusterSide>, after: Option<&ClusterSide>) -> BTreeSet<Emitter> {
    let mut emitters = BTreeSet::new();
    for cluster_side in before.into_iter().chain(after) {
        let kustomizations = cluster_side.walk.kustomizations.keys().cloned();
        emitters.extend(kustomizations.map(Emitter::Kustomization));
        emitters.extend(cluster_side.walk.expansions.keys().cloned());
        emitters.extend(cluster_side.releases.keys().cloned().map(Emitter::Release));
    }
    emitters
}

impl ClusterProblems<'_> {
    fn failure(
        &self,
        emitter: &Emitter,
        owner: Owner,
        side: FailedSide,
        present: [bool; 2],
    ) -> Failure {
        let differences = self.differences(emitter);
        let effect = match (present, side, &differences) {
            ([false, _], ..) => Effect::Added,
            ([_, false], ..) => Effect::Removed,
            (_, FailedSide::Both, Some(differences)) if differences.is_empty() => Effect::None,
            _ => Effect::Changed,
        };
        let (mut reason, mut causes, place) = self.problem(emitter, side);
        if let Some(told) = self.unfetched_chart(emitter, side) {
            if causes.is_empty() {
                causes.extend((!reason.is_empty()).then_some(reason));
            }
            reason = told;
        }
        // Of something that comes or goes as a whole, what it is made of says little.
        let is_whole = matches!(effect, Effect::Added | Effect::Removed);
        let inputs = differences.iter().flatten();
        let inputs = inputs.filter(|difference| !is_whole || is_telling(difference.kind));
        Failure {
            owner,
            side,
            effect,
            reason,
            causes,
            inputs: inputs.map(input_change).collect(),
            place: place.or_else(|| self.declared(emitter)),
        }
    }

    /// The inputs that differ; `None` where that is not known.
    fn differences(&self, emitter: &Emitter) -> Option<Vec<InputDifference>> {
        let not_rendered = self.after.or(self.before)?.not_rendered()?;
        match emitter {
            Emitter::Release(id) => not_rendered.releases.get(id).cloned(),
            Emitter::Kustomization(id) => not_rendered.kustomizations.get(id).cloned(),
            Emitter::ResourceSet(_) | Emitter::Instance(_) => {
                let definition = |cluster_side: Option<&ClusterSide>| {
                    let expansion = cluster_side?.walk.expansions.get(emitter)?;
                    expansion.definition.node().get("spec").cloned()
                };
                let is_same = definition(self.before) == definition(self.after);
                is_same.then(Vec::new)
            }
        }
    }

    /// What is wrong on the side that failed, the new one first: what, why, and where.
    fn problem(&self, emitter: &Emitter, side: FailedSide) -> (String, Vec<String>, Option<Place>) {
        let [before, after] = &self.problems;
        let problems = if side == FailedSide::Before {
            before
        } else {
            after
        };
        let owner = emitter.owner(&Text::default());
        let is_it = |problem: &&Finding| {
            problem.severity == Severity::Error && problem.owner.as_ref() == Some(&owner)
        };
        match problems.iter().find(is_it) {
            Some(problem) => {
                let lines = problem.messages.iter().flat_map(|text| text.lines());
                let mut lines = lines.filter(|line| !line.trim().is_empty());
                let reason = lines.next().unwrap_or_default().to_owned();
                let causes = lines.map(str::to_owned).collect();
                (reason, causes, problem.place.clone())
            }
            None => ("it could not be rendered".to_owned(), Vec::new(), None),
        }
    }

    /// `chart web 1.0.0 → 1.1.0 cannot be fetched`, if that is why.
    fn unfetched_chart(&self, emitter: &Emitter, side: FailedSide) -> Option<String> {
        let Emitter::Release(id) = emitter else {
            return None;
        };
        let chart = |cluster_side: Option<&ClusterSide>| {
            let release = cluster_side?
                .releases
                .get(id)
                .filter(|release| is_unfetched(release))?;
            let info = crate::chart_info::ChartInfo::of(release);
            Some((info.name, info.version))
        };
        let before = chart(self.before).filter(|_| side != FailedSide::After);
        let after = chart(self.after).filter(|_| side != FailedSide::Before);
        let named = |(name, version): &(String, String)| {
            let space = if version.is_empty() { "" } else { " " };
            format!("{name}{space}{version}")
        };
        let chart = match (&before, &after) {
            (Some(before), Some(after)) if before == after => named(after),
            (Some(before), Some(after)) if before.0 == after.0 => {
                format!("{} → {}", named(before), after.1)
            }
            (Some(before), Some(after)) => format!("{} → {}", named(before), named(after)),
            (Some(only), None) | (None, Some(only)) => named(only),
            (None, None) => return None,
        };
        Some(format!("chart {chart} cannot be fetched"))
    }

    /// Where it is written.
    fn declared(&self, emitter: &Emitter) -> Option<Place> {
        let cluster_side = self.after.or(self.before)?;
        let definition = match emitter {
            Emitter::Release(id) => &cluster_side.releases.get(id)?.definition,
            Emitter::Kustomization(id) => cluster_side
                .walk
                .kustomizations
                .get(id)?
                .definition
                .as_ref()?,
            Emitter::ResourceSet(_) | Emitter::Instance(_) => {
                &cluster_side.walk.expansions.get(emitter)?.definition
            }
        };
        definition.place()
    }
}

/// Whether an input tells what something is, rather than how it is set up.
fn is_telling(kind: InputKind) -> bool {
    matches!(
        kind,
        InputKind::Chart | InputKind::ChartVersion | InputKind::Source | InputKind::Path
    )
}

fn input_change(difference: &InputDifference) -> InputChange {
    let kind = difference.kind.as_str();
    let input = match difference.name.as_str() {
        "" => kind.to_owned(),
        name => format!("{kind} {name}"),
    };
    let text = |side: &InputText| match side {
        InputText::Text(text) => Some(text.clone()),
        InputText::Unknown => Some(Text::from_static("(unknown)")),
        InputText::Absent | InputText::Hidden | InputText::Opaque => None,
    };
    InputChange {
        input,
        from: text(&difference.before),
        to: text(&difference.after),
        hidden: [&difference.before, &difference.after].contains(&&InputText::Hidden),
    }
}
