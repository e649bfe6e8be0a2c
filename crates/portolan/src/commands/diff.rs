//! `portolan diff`: what a change of a Flux repository would change in its clusters.

mod batches;
mod causes;
mod conflict;
mod failures;
mod former;
mod halves;
mod output;
mod trees;
mod work_tree;

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use portolan_check::Apis;
use portolan_diff::{Options, Report, StripAttributes};
use portolan_flux::{Demand, Name, Walked, Wanted};
use portolan_yaml::Text;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::inventory;
use crate::printer::Printer;
use crate::repository::RepositoryArgs;
use crate::suggestion;
use batches::Comparison;
use halves::Halves;
use output::OutputArgs;
use trees::Trees;

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
  portolan diff hr podinfo -n apps --strip-attrs common
  portolan diff images --from v1.4.0 --exact
  portolan diff --path clusters/production --path-orig ../before/clusters/production")]
pub(crate) struct DiffArgs {
    /// What to compare: Kustomizations (ks), HelmReleases (hr), images, or all
    #[arg(value_name = "WHAT", default_value = "all")]
    what: What,

    /// Names of Kustomizations or HelmReleases; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

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

    /// Only Kustomizations and HelmReleases in this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// Labels and annotations whose changes do not count; `common` stands for those that charts change all the time
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    strip_attrs: Vec<String>,

    /// Render both sides in full, to check that skipping equal inputs changes no answer
    #[arg(long, hide = true)]
    no_skip: bool,

    #[command(flatten)]
    repository: RepositoryArgs,

    #[command(flatten)]
    output: OutputArgs,
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
    let halves = Halves::render(args, &trees, printer)?;
    args.refuse_empty_original(&halves)?;
    let mut comparison = Comparison::new(args, &trees, &halves);
    if !comparison.is_found {
        args.refuse_unknown(&halves)?;
    }
    let apis = Apis::of(args.repository.kube_release());
    let options = Options {
        strip: StripAttributes::new(args.strip_attrs.iter().map(String::as_str)),
        unserved: Some(Box::new(move |object| apis.removed(object))),
        failures: std::mem::take(&mut comparison.failures),
        equal_inputs: comparison.equal_inputs,
    };
    let mut report = portolan_diff::diff(&comparison.old, &comparison.new, &options);
    if args.what == What::Images {
        report = Report {
            images: report.images,
            failures: report.failures,
            equal_inputs: report.equal_inputs,
            ..Report::default()
        };
    }
    causes::name(&mut report, &halves, trees.new.as_ref());
    output::print(args, &trees, &report, printer)?;
    Comparison::tell(args, &trees, &halves, &report, printer);
    let status = if report.unknown_changes().next().is_some() {
        ExitStatus::Failure
    } else if !report.is_empty() || !report.images.is_empty() {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    };
    // The process is about to end: giving back every object one by one would take longer than comparing them.
    std::mem::forget((halves, comparison, report, trees));
    Ok(status)
}

impl DiffArgs {
    /// What has to be rendered for the answer.
    fn demand(&self) -> Demand {
        let name = |text: &String| {
            let mut name = Name::from(text.as_str());
            let namespace = self.namespace.as_deref().map(Text::from);
            name.namespace = name.namespace.or(namespace);
            name
        };
        let wanted = || match self.names.as_slice() {
            [] => Wanted::All,
            names => Wanted::Named(names.iter().map(name).collect()),
        };
        let (kustomizations, releases) = match self.what {
            What::Ks => (wanted(), Wanted::None),
            What::Hr => (Wanted::None, wanted()),
            What::Images | What::All => (wanted(), wanted()),
        };
        Demand {
            kustomizations,
            releases,
        }
    }
}

impl DiffArgs {
    /// Refuses a directory to compare with that Flux would apply nothing of.
    fn refuse_empty_original(&self, halves: &Halves) -> Result<(), CommandError> {
        let Some(path) = &self.path_orig else {
            return Ok(());
        };
        let is_empty = |walked: &Walked| {
            let built = walked.built.as_ref();
            built.is_some_and(|built| built.objects.is_empty())
        };
        let mut sides = halves.old.values();
        if sides.any(|half| !half.walk.kustomizations.values().all(is_empty)) {
            return Ok(());
        }
        Err(refused(
            format!("`{path}` holds nothing that Flux would apply"),
            "--path-orig names another checkout, or with --path the same cluster's directory in it",
        ))
    }

    /// Refuses names and a namespace that nothing on either side has.
    fn refuse_unknown(&self, halves: &Halves) -> Result<(), CommandError> {
        if !self.names.is_empty() {
            return Err(not_found(self, halves));
        }
        let Some(namespace) = &self.namespace else {
            return Ok(());
        };
        let sides = || halves.new.values().chain(halves.old.values());
        let known: BTreeSet<String> = sides()
            .flat_map(|half| inventory::namespaces(half))
            .collect();
        // What was skipped may lie in any namespace.
        let is_skipped = |walked: &Walked| walked.built.is_none() && !walked.is_failed();
        let is_whole = !sides().any(|half| half.walk.kustomizations.values().any(is_skipped));
        if known.contains(namespace) || !is_whole {
            return Ok(());
        }
        Err(suggestion::no_namespace(namespace, &known))
    }
}

/// Says that no name was found on either side, and which is near.
fn not_found(args: &DiffArgs, halves: &Halves) -> CommandError {
    let sides = || halves.new.values().chain(halves.old.values());
    if args.what == What::Hr {
        let known = sides().flat_map(|half| half.releases.keys().chain(half.unchanged.keys()));
        suggestion::not_found("HelmRelease", &args.names, known, "portolan get hr -A")
    } else {
        let known = sides().flat_map(|half| half.walk.kustomizations.keys());
        suggestion::not_found("Kustomization", &args.names, known, "portolan get ks -A")
    }
}

/// A command line that asks for something that cannot be had.
fn refused(message: impl std::fmt::Display, hint: impl Into<String>) -> CommandError {
    CommandError::usage(message).hint(hint)
}
