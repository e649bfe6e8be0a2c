//! The result of each case: a Kustomization or HelmRelease that must build, an object that must be valid.

use portolan_check::{Settings, Subject};
use portolan_flux::{Cluster, Emitter, Rendering, unread_values};
use portolan_object::{Finding, ObjectId, Owner, Severity};

use crate::RenderedRepository;

/// Something that passes or fails in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// What is to build, or what brings the object; names the cluster.
    pub owner: Owner,
    /// The object that is to be valid; `None` for what is to build.
    pub object: Option<ObjectId>,
}

/// Everything that was checked, cluster by cluster.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// What was to pass.
    pub cases: Vec<TestCase>,
    /// What was found, whether it belongs to a case or not.
    pub found: Vec<Finding>,
}

impl Verdicts {
    /// Takes in what was to build in a cluster, and what did not.
    pub fn add_builds(
        &mut self,
        rendered: &RenderedRepository,
        cluster: &Cluster,
        rendering: &Rendering,
        settings: &Settings,
    ) {
        let kustomizations = rendering.walk.kustomizations.keys().cloned();
        let releases = rendering.releases.keys().cloned();
        let emitters = kustomizations
            .map(Emitter::Kustomization)
            .chain(releases.map(Emitter::Release))
            .chain(rendering.walk.expansions.keys().cloned());
        self.cases.extend(emitters.map(|emitter| TestCase {
            owner: emitter.owner(&cluster.name),
            object: None,
        }));
        let errors = rendered.errors(cluster, rendering);
        self.found
            .extend(errors.filter(|finding| settings.wants_finding(finding)));
        let unread = unread_values(rendering, rendered.files()).into_iter();
        let unread = unread
            .filter(|(definition, finding)| settings.wants_finding_of(finding, definition))
            .map(|(_, finding)| finding.in_cluster(&cluster.name));
        self.found.extend(unread);
    }

    /// Takes in the objects that were checked.
    pub fn add_objects(&mut self, subjects: &[Subject<'_>]) {
        self.cases.extend(subjects.iter().map(|subject| TestCase {
            owner: subject.owner.clone(),
            object: Some(subject.id.clone()),
        }));
    }

    /// Leaves the cases and findings of which this is true, by owner and object; findings of no owner stay.
    pub fn retain(&mut self, is_meant: impl Fn(&Owner, Option<&ObjectId>) -> bool) {
        self.cases
            .retain(|case| is_meant(&case.owner, case.object.as_ref()));
        self.found.retain(|found| {
            let owner = found.owner.as_ref();
            owner.is_none_or(|owner| is_meant(owner, found.object.as_ref()))
        });
    }

    /// How many findings are errors.
    pub fn errors(&self) -> usize {
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.found.iter().filter(is_error).count()
    }

    /// How many findings are warnings.
    pub fn warnings(&self) -> usize {
        let is_warning = |found: &&Finding| found.severity == Severity::Warning;
        self.found.iter().filter(is_warning).count()
    }

    /// How many cases have an error.
    pub fn failed(&self) -> usize {
        let has_error = |case: &&TestCase| self.errors_of(case).next().is_some();
        self.cases.iter().filter(has_error).count()
    }

    /// The errors of a case.
    pub fn errors_of<'a>(&'a self, case: &'a TestCase) -> impl Iterator<Item = &'a Finding> {
        self.found.iter().filter(|found| {
            found.severity == Severity::Error
                && found.owner.as_ref() == Some(&case.owner)
                && found.object == case.object
        })
    }
}
