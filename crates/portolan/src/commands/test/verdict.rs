//! What became of each case: a Kustomization or HelmRelease that is to build, an object that is to be valid.

use portolan_check::{BUILD_FAILED, Finding, Level, Rule, Settings, Subject};
use portolan_flux::{Cluster, Rendering};
use portolan_object::Place;

use crate::repository::Rendered;

/// One thing that is wrong, about one case.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) rule: &'static Rule,
    /// The case: `HelmRelease apps/web`, `Deployment apps/web`.
    pub(super) subject: String,
    /// Who brings the object; empty for what is to build.
    pub(super) owner: String,
    pub(super) message: String,
    pub(super) place: Option<Place>,
    pub(super) hints: Vec<String>,
    /// Lines of the file must not be shown.
    pub(super) secret: bool,
}

/// Something that passes or fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) subject: String,
    pub(super) owner: String,
}

/// Everything that was checked.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) cases: Vec<Case>,
    pub(super) found: Vec<Found>,
}

impl Verdicts {
    /// Takes in what was to build in a cluster, and what did not.
    pub(super) fn add_builds(
        &mut self,
        rendered: &Rendered,
        cluster: &Cluster,
        rendering: &Rendering,
        settings: &Settings,
    ) {
        let kustomizations = rendering
            .walk
            .kustomizations
            .keys()
            .map(|id| format!("Kustomization {id}"));
        let releases = rendering
            .releases
            .keys()
            .map(|id| format!("HelmRelease {id}"));
        self.cases
            .extend(kustomizations.chain(releases).map(|subject| Case {
                subject,
                owner: cluster.name.to_string(),
            }));
        if !settings.enables(&BUILD_FAILED) {
            return;
        }
        self.found
            .extend(rendered.errors(rendering).map(|problem| Found {
                rule: &BUILD_FAILED,
                subject: format!("{} {}", problem.kind, problem.id),
                owner: cluster.name.to_string(),
                message: problem.messages.join(": "),
                place: problem.place,
                hints: problem.hints,
                secret: false,
            }));
    }

    /// Takes in the objects that were checked.
    pub(super) fn add_objects(&mut self, subjects: &[Subject<'_>]) {
        self.cases.extend(subjects.iter().map(|subject| Case {
            subject: name(subject),
            owner: subject.owner.clone(),
        }));
    }

    /// How many findings are errors.
    pub(super) fn errors(&self) -> usize {
        self.found
            .iter()
            .filter(|found| found.rule.level == Level::Error)
            .count()
    }

    /// How many cases have an error.
    pub(super) fn failed(&self) -> usize {
        self.cases
            .iter()
            .filter(|case| self.of(case).any(|found| found.rule.level == Level::Error))
            .count()
    }

    /// What was found about a case.
    pub(super) fn of<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a Found> {
        self.found
            .iter()
            .filter(|found| found.subject == case.subject && found.owner == case.owner)
    }
}

impl Found {
    /// A finding about an object; `None` when it names none, which does not happen.
    pub(super) fn of_object(finding: &Finding, subjects: &[Subject<'_>]) -> Option<Self> {
        let subject = subjects.get(finding.subject)?;
        Some(Self {
            rule: finding.rule,
            subject: name(subject),
            owner: subject.owner.clone(),
            message: finding.message.clone(),
            place: finding.place.clone(),
            hints: Vec::new(),
            secret: subject.object.kind() == "Secret",
        })
    }
}

/// `Deployment apps/web`
fn name(subject: &Subject<'_>) -> String {
    let (id, separator) = (
        &subject.id,
        if subject.id.namespace.is_empty() {
            ""
        } else {
            "/"
        },
    );
    format!("{} {}{separator}{}", id.gvk.kind, id.namespace, id.name)
}
