//! `portolan diff`: what a change of a Flux repository would change in its clusters.

mod base_tree;
mod batches;
mod causes;
mod conflict;
mod edits;
mod failures;
mod output;
mod selected;
mod trees;
mod two_sides;
mod work_tree;

use camino::Utf8PathBuf;
use portolan_check::Apis;
use portolan_diff::{Options, Report, StripAttributes};
use portolan_flux::{CLUSTER_NOT_COVERED, OwnerKinds, Selection, Walked};
use portolan_object::Finding;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::repository::RepositoryArgs;
use crate::selection::{SelectionArgs, Word};
use batches::Comparison;
use output::OutputArgs;
use selected::Selected;
use trees::Trees;
use two_sides::TwoSides;

/// Show what a change of a Flux repository would change in its clusters
///
/// Both sides are rendered as Flux would and compared object by object: the files as they are now, and those of the
/// commit that the current branch started from. Git is read only; the work tree stays as it is. The exit code is 0 when
/// nothing differs, 1 when something does, and 2 when something changes that could not be rendered on a side. A release
/// whose inputs are equal on both sides is not rendered, and its chart is not fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan diff
  portolan diff --from main -o markdown
  portolan diff hr podinfo -n apps --no-strip
  portolan diff deploy/web --skip-secrets
  portolan diff images --from v1.4.0 --exact
  portolan diff --path clusters/production --path-orig ../before/clusters/production")]
pub(crate) struct DiffArgs {
    /// What to compare; all when it is not given, and a name may stand here too
    #[arg(value_name = "WHAT")]
    what: Option<Word<What>>,

    /// Names of Kustomizations and HelmReleases, or of objects with their kind; all when none is given
    ///
    /// As in NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME: `podinfo`, `apps/podinfo`, `hr/podinfo`,
    /// `deploy/web`.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    sides: SidesArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What is compared with what.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparison")]
struct SidesArgs {
    /// The branch, tag or commit to compare with
    ///
    /// The commit that it has in common with the current branch counts, so that only the branch's own changes are shown.
    /// Without it the branch that `origin` points to, `main` or `master` is taken.
    #[arg(long, value_name = "REF", conflicts_with = "path_orig")]
    from: Option<String>,

    /// Compare this branch, tag or commit instead of the files as they are now
    #[arg(long, value_name = "REF", conflicts_with = "path_orig")]
    to: Option<String>,

    /// Compare with --from itself, not with the commit it has in common with the current branch
    #[arg(long, conflicts_with = "path_orig")]
    exact: bool,

    /// Compare with another directory: another checkout, or the same cluster in it when --path is given
    #[arg(long, value_name = "DIR")]
    path_orig: Option<Utf8PathBuf>,

    /// More labels and annotations whose changes do not count; one that ends in `*` stands for all that begin so
    ///
    /// Those that charts change all the time never count: helm.sh/chart, app.kubernetes.io/version, chart, checksum/*.
    /// What restarts because of them is still told.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    strip_attrs: Vec<String>,

    /// Show changes of the labels and annotations that charts change all the time too
    #[arg(long)]
    no_strip: bool,

    /// Render both sides in full, to check that skipping equal inputs changes no answer
    #[arg(long, hide = true)]
    no_skip: bool,

    /// Values of Secrets are always hidden; other tools have to be told
    #[arg(long, hide = true)]
    wipe_secrets: bool,
}

/// What to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Kustomizations
    #[value(alias = "kustomizations", alias = "kustomization")]
    Ks,
    /// HelmReleases
    #[value(alias = "helmreleases", alias = "helmrelease")]
    Hr,
    /// Images
    #[value(alias = "image")]
    Images,
    /// Everything
    All,
}

pub(crate) fn diff(args: &DiffArgs, printer: &Printer) -> CommandResult {
    let trees = Trees::find(args)?;
    let Selected {
        selection,
        kinds,
        two_sides,
    } = Selected::render(args, &trees, printer)?;
    let mut comparison = Comparison::new(&selection, &kinds, &trees, &two_sides);
    let apis = Apis::of(two_sides.kubernetes);
    let options = Options {
        strip: args.sides.strip(),
        unserved: Some(Box::new(move |object| apis.removed(object))),
        failures: std::mem::take(&mut comparison.failures),
        equal_inputs: comparison.equal_inputs,
    };
    let mut report = portolan_diff::diff(&comparison.old, &comparison.new, &options);
    if args.what() == What::Images {
        report = Report {
            images: report.images,
            failures: report.failures,
            equal_inputs: report.equal_inputs,
            ..Report::default()
        };
    }
    report.not_covered.clone_from(&two_sides.not_covered);
    causes::name(&mut report, &two_sides, trees.new.as_ref());
    causes::find_by_trial(&mut report, args, &trees, &two_sides, printer)?;
    output::print(args, &trees, &report, printer)?;
    Comparison::tell(args, &trees, &two_sides, &report, printer);
    let is_covered = |finding: &Finding| finding.rule != &CLUSTER_NOT_COVERED;
    let is_whole =
        report.unknown_changes().next().is_none() && report.not_covered.iter().all(is_covered);
    let status = if !is_whole {
        ExitStatus::Failure
    } else if !report.is_empty() || !report.images.is_empty() {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    };
    // The process is about to end: giving back every object one by one would take longer than comparing them.
    std::mem::forget((two_sides, comparison, report, trees));
    Ok(status)
}

impl SidesArgs {
    /// The labels and annotations that are left out.
    fn strip(&self) -> StripAttributes {
        let common = (!self.no_strip).then_some("common");
        let more = self.strip_attrs.iter().map(String::as_str);
        StripAttributes::new(common.into_iter().chain(more))
    }
}

impl DiffArgs {
    /// What is compared.
    fn what(&self) -> What {
        Word::split(self.what.as_ref(), &[], What::All).0
    }

    /// Which owners and objects are compared.
    fn selected(&self) -> Selection {
        let (what, names) = Word::split(self.what.as_ref(), &self.names, What::All);
        let owners = match what {
            What::Ks => OwnerKinds::Kustomizations,
            What::Hr => OwnerKinds::Releases,
            What::Images | What::All => OwnerKinds::All,
        };
        self.selection.owners(owners, &names)
    }

    /// Refuses a directory to compare with that Flux would apply nothing of.
    fn refuse_empty_original(&self, two_sides: &TwoSides) -> Result<(), CommandError> {
        let Some(path) = &self.sides.path_orig else {
            return Ok(());
        };
        let is_empty = |walked: &Walked| {
            let built = walked.built.as_ref();
            built.is_some_and(|built| built.objects.is_empty())
        };
        let mut sides = two_sides.old.values();
        if sides.any(|cluster_side| !cluster_side.walk.kustomizations.values().all(is_empty)) {
            return Ok(());
        }
        Err(refused(
            format!("`{path}` holds nothing that Flux would apply"),
            "--path-orig names another checkout, or with --path the same cluster's directory in it",
        ))
    }
}

/// A command line that asks for something that cannot be had.
fn refused(message: impl std::fmt::Display, hint: impl Into<String>) -> CommandError {
    CommandError::usage(message).hint(hint)
}
