//! A rendered repository: its clusters, and what is wrong with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_check::{Unrendered, lower_follow_ons};
use portolan_engine::Report;
use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Cluster, DEPENDENCY_MISSING, Emitter, Location, MADE_IN_CLUSTER, MISSING_DATA, NOT_KNOWN_HERE,
    RenderedRelease, Rendering, problems, release_namespace,
};
use portolan_object::{Finding, Owner, OwnerKind, Severity};
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use crate::{Statuses, Supply};

/// A repository rendered.
pub struct RenderedRepository {
    /// Its clusters with what became of them.
    pub clusters: Vec<(Arc<Cluster>, Arc<Rendering>)>,
    /// What became of every unit.
    pub report: Report,
    /// What is not looked at, or only nearly.
    pub not_covered: Vec<Finding>,
    /// The files that were rendered.
    pub files: Arc<dyn Vfs>,
    /// What missing data means.
    pub missing: Missing,
    /// What was brought in from outside of the repository.
    pub supply: Option<Supply>,
}

/// What a ConfigMap or Secret that nothing in the repository makes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// A ConfigMap is an error, a Secret a note: many are made by hand.
    #[default]
    Auto,
    /// Both are errors.
    Strict,
    /// Both are notes.
    Note,
}

/// What is wrong, but for releases whose charts were not fetched because nobody asked for them.
pub struct ProblemsAtHand {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How many releases were not rendered.
    pub unfetched: usize,
}

impl RenderedRepository {
    /// The files that were rendered.
    pub fn files(&self) -> &dyn Vfs {
        self.files.as_ref()
    }

    /// Whether a release's chart would have had to be fetched, and was not because nobody asked for it.
    pub fn is_unfetched(&self, release: &RenderedRelease) -> bool {
        let location = release.location.as_ref();
        let is_elsewhere = location.is_some_and(|at| !matches!(at, Location::Tree { .. }));
        let supply = self.supply.as_ref();
        let fetches_charts = supply.is_some_and(|supply| supply.fetches_charts);
        !fetches_charts && is_elsewhere && release.chart.is_none()
    }

    /// Everything that is wrong with the Kustomizations and releases of every cluster.
    pub fn findings(&self) -> impl Iterator<Item = Finding> {
        let clusters = self.clusters.iter();
        clusters.flat_map(|(cluster, rendering)| {
            let problems = self.problems_of(rendering).into_iter();
            problems.map(|problem| problem.in_cluster(&cluster.name))
        })
    }

    /// Everything that is wrong but that charts were not fetched, which is counted.
    pub fn problems_at_hand(&self) -> ProblemsAtHand {
        let mut at_hand = ProblemsAtHand {
            findings: Vec::new(),
            unfetched: 0,
        };
        for (cluster, rendering) in &self.clusters {
            let releases = rendering.releases.iter();
            let left = releases.filter(|(_, release)| self.is_unfetched(release));
            let left: BTreeSet<Owner> = left.map(|(id, _)| release_owner(id)).collect();
            at_hand.unfetched += left.len();
            let is_told =
                |problem: &Finding| !problem.owner.as_ref().is_some_and(|o| left.contains(o));
            let problems = self.problems_of(rendering).into_iter().filter(is_told);
            let findings = problems.map(|problem| problem.in_cluster(&cluster.name));
            at_hand.findings.extend(findings);
        }
        at_hand
    }

    /// What could not be fetched.
    pub fn fetch_problems(&self) -> Vec<Finding> {
        let supply = self.supply.as_ref();
        let failures = supply
            .map(|supply| supply.remote.failures())
            .unwrap_or_default();
        let is_failure =
            |finding: &Finding| finding.messages.iter().any(|text| failures.contains(text));
        self.findings().filter(is_failure).collect()
    }

    /// Everything that is wrong, cluster by cluster, each with what says it in one line.
    pub fn problems(&self) -> Vec<(String, Finding)> {
        let clusters = self.clusters.iter();
        let problems = clusters.flat_map(|(cluster, rendering)| {
            let problems = self.problems_of(rendering).into_iter();
            problems.map(|problem| problem.in_cluster(&cluster.name))
        });
        let sentence = |problem: &Finding| format!("{}: {}", problem.subject(), problem.message());
        problems
            .map(|problem| (sentence(&problem), problem))
            .collect()
    }

    /// How the Kustomizations and releases of a cluster fared.
    pub fn statuses(&self, rendering: &Rendering) -> Statuses {
        Statuses::of(self.problems_of(rendering))
    }

    /// What Flux would refuse in a cluster, and notes on what it may lack.
    pub fn errors(
        &self,
        cluster: &Cluster,
        rendering: &Rendering,
    ) -> impl Iterator<Item = Finding> {
        let mut problems = self.problems_of(rendering);
        if self.missing != Missing::Strict {
            let unknown = problems.iter_mut();
            let unknown = unknown.filter(|problem| problem.rule == &NOT_KNOWN_HERE);
            unknown.for_each(|problem| problem.severity = Severity::Note);
        }
        let errors = problems.into_iter().filter(|problem| {
            let may_lack = [&MISSING_DATA, &DEPENDENCY_MISSING].contains(&problem.rule);
            problem.severity == Severity::Error
                || problem.rule == &NOT_KNOWN_HERE
                || (may_lack && is_missing(problem))
        });
        errors.map(|problem| problem.in_cluster(&cluster.name))
    }

    /// Advice for whoever names an object that is not there.
    pub fn advice_on_missing_objects(&self) -> Option<String> {
        advice_on_unrendered(
            self.clusters
                .iter()
                .map(|(_, rendering)| rendering.as_ref()),
        )
    }

    fn problems_of(&self, rendering: &Rendering) -> Vec<Finding> {
        cluster_problems(rendering, &self.report, self.files(), self.missing)
    }
}

/// Everything that is wrong with a rendered cluster; missing data is as grave as the caller says.
pub fn cluster_problems(
    rendering: &Rendering,
    report: &Report,
    files: &dyn Vfs,
    missing: Missing,
) -> Vec<Finding> {
    let mut problems = problems(rendering, report, files);
    for problem in &mut problems {
        let is_missing = problem.rule == &MISSING_DATA && is_missing(problem);
        match missing {
            Missing::Strict if is_missing => problem.severity = Severity::Error,
            Missing::Note if is_missing => problem.severity = Severity::Note,
            _ => {}
        }
    }
    let unrendered = unrendered(&Text::default(), rendering);
    lower_follow_ons(&mut problems, &[&MISSING_DATA], &unrendered);
    problems
}

/// Whether nothing makes in the cluster what a finding says is not in the repository.
fn is_missing(finding: &Finding) -> bool {
    let cause = finding.cause.as_ref();
    cause.is_some_and(|cause| cause.many != MADE_IN_CLUSTER)
}

/// The releases and Kustomizations of a cluster whose objects are not known.
pub(crate) fn unrendered(cluster: &Text, rendering: &Rendering) -> Vec<Unrendered> {
    let releases = rendering.releases.iter();
    let releases = releases.filter(|(_, release)| release.objects.is_none());
    let releases = releases.map(|(id, release)| Unrendered {
        owner: Emitter::Release(id.clone()).owner(cluster),
        namespace: match &release.spec {
            Ok(spec) => release_namespace(spec).clone(),
            Err(_) => id.namespace.clone(),
        },
    });
    let kustomizations = rendering.walk.kustomizations.iter();
    let kustomizations = kustomizations.filter(|(_, walked)| {
        // One that nobody asked for has no unit.
        walked.built.is_none() && (walked.unit.is_some() || walked.unavailable.is_some())
    });
    let kustomizations = kustomizations.map(|(id, walked)| {
        let spec = walked.spec.as_ref().ok();
        let target = spec.and_then(|spec| spec.target_namespace.clone());
        Unrendered {
            owner: Emitter::Kustomization(id.clone()).owner(cluster),
            namespace: target.unwrap_or_else(|| id.namespace.clone()),
        }
    });
    releases.chain(kustomizations).collect()
}

/// Advice for whoever names an object that is not there: it may be one of what could not be rendered.
pub(crate) fn advice_on_unrendered<'a>(
    renderings: impl Iterator<Item = &'a Rendering>,
) -> Option<String> {
    let owners = renderings.flat_map(|rendering| unrendered(&Text::default(), rendering));
    let owners: BTreeSet<Owner> = owners.map(|unrendered| unrendered.owner).collect();
    let first = owners.first()?;
    Some(match owners.len() {
        1 => format!("{first} could not be rendered: it may bring it"),
        count => format!("{count} could not be rendered, and may bring it: the first is {first}"),
    })
}

/// A release as the owner of findings.
fn release_owner(id: &NamespacedName) -> Owner {
    Owner::new(OwnerKind::Release, id.namespace.clone(), id.name.clone())
}
