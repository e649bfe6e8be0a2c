//! What a change of a Flux repository would change in its clusters, with what caused each change.
//!
//! ```text
//! Trees (git, work tree, directories) ──▶ TwoSides ──▶ batches by owner ──▶ portolan_diff::Report ──▶ causes
//! ```
//!
//! What has equal inputs on both sides is not rendered; the docs of the module `compare` of portolan-flux say why
//! this does not change the result.

mod batches;
mod causes;
mod conflict;
mod edits;
mod failures;
mod selected;
mod trees;
mod two_sides;

use camino::Utf8PathBuf;
use portolan_check::Apis;
use portolan_diff::{Batch, FailedSide, Failure, Options, Report, StripAttributes};
use portolan_flux::{CLUSTER_NOT_COVERED, Selection};
use portolan_object::Finding;

pub use trees::{Commits, Revisions, Trees};
pub use two_sides::{ClusterSide, Skipping, TwoSides};

use crate::rendered::cluster_problems;
use crate::{FluxRepository, Runner};
use batches::Batches;
use selected::Selected;

/// What is compared, and how.
pub struct CompareOptions {
    /// Which owners and objects.
    pub selection: Selection,
    /// Labels and annotations to ignore.
    pub strip: StripAttributes,
    /// Whether only images count.
    pub images_only: bool,
    /// Whether work is skipped that cannot show.
    pub skipping: Skipping,
}

/// Two sides compared.
pub struct RepositoryComparison {
    /// What differs, and why.
    pub report: Report,
    /// The sides as they were rendered.
    pub two_sides: TwoSides,
    /// The objects that were compared, by owner: those that were.
    pub old: Vec<Batch>,
    /// And those that are to be.
    pub new: Vec<Batch>,
}

/// Compares two states of a repository.
pub fn compare<R: Runner>(
    repository: &FluxRepository,
    trees: &Trees,
    options: CompareOptions,
    runner: &R,
) -> Result<RepositoryComparison, R::Error> {
    let Selected { kinds, two_sides } = Selected::render(repository, trees, &options, runner)?;
    let mut batches = Batches::new(&options.selection, &kinds, trees, &two_sides);
    let apis = Apis::of(two_sides.kubernetes);
    let diff_options = Options {
        strip: options.strip,
        unserved: Some(Box::new(move |object| apis.removed(object))),
        failures: std::mem::take(&mut batches.failures),
        equal_inputs: batches.equal_inputs,
    };
    let mut report = portolan_diff::diff(&batches.old, &batches.new, &diff_options);
    if options.images_only {
        report = Report {
            images: report.images,
            failures: report.failures,
            equal_inputs: report.equal_inputs,
            ..Report::default()
        };
    }
    report.not_covered.clone_from(&two_sides.not_covered);
    causes::name(&mut report, &two_sides, trees.new.as_ref());
    causes::find_by_experiment(&mut report, repository, trees, &two_sides, runner)?;
    Ok(RepositoryComparison {
        report,
        two_sides,
        old: batches.old,
        new: batches.new,
    })
}

impl RepositoryComparison {
    /// Whether everything that differs is known: no change of unknown content, and every cluster looked at.
    pub fn is_whole(&self) -> bool {
        let is_covered = |finding: &Finding| finding.rule != &CLUSTER_NOT_COVERED;
        self.report.unknown_changes().next().is_none()
            && self.report.not_covered.iter().all(is_covered)
    }

    /// What is wrong with each cluster of the new side, but for releases that are the same on both sides for all that is
    /// known.
    pub fn problems<'a>(
        &'a self,
        repository: &'a FluxRepository,
        trees: &'a Trees,
    ) -> impl Iterator<Item = Vec<Finding>> + 'a {
        let missing = repository.settings.missing;
        self.two_sides.new.values().map(move |side| {
            let report = &self.two_sides.report;
            let mut problems = cluster_problems(side, report, trees.new.as_ref(), missing);
            problems.retain(|problem| !failures::is_of_equal_release(side, problem));
            problems
        })
    }

    /// Files with the marks of an unfinished merge, searched only if something is broken on the new side.
    pub fn unfinished_merges(&self, trees: &Trees) -> Vec<Utf8PathBuf> {
        let is_broken =
            |failure: &Failure| failure.is_change() && failure.side != FailedSide::Before;
        if self.report.failures.iter().any(is_broken) {
            conflict::conflicted(trees.new.as_ref())
        } else {
            Vec::new()
        }
    }
}
