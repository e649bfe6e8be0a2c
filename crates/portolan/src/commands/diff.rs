//! `portolan diff`: what a change of a Flux repository would change in its clusters.

mod batches;
mod causes;
mod conflict;
mod former;
mod halves;
mod output;
mod trees;
mod work_tree;

use camino::Utf8PathBuf;
use portolan_check::Apis;
use portolan_diff::{Options, Report, StripAttributes};
use portolan_flux::{Demand, Name, Wanted};
use portolan_yaml::Text;

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
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
/// nothing differs, 1 when something does, and 2 when a side cannot be rendered.
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
    let comparison = Comparison::new(args, &halves);
    if !args.names.is_empty() && !comparison.is_found {
        return Err(not_found(args, &halves));
    }
    let apis = Apis::of(args.repository.kube_release());
    let options = Options {
        strip: StripAttributes::new(args.strip_attrs.iter().map(String::as_str)),
        unserved: Some(Box::new(move |object| apis.removed(object))),
    };
    let mut report = portolan_diff::diff(&comparison.old, &comparison.new, &options);
    if args.what == What::Images {
        report = Report {
            images: report.images,
            ..Report::default()
        };
    }
    causes::name(&mut report, &halves, trees.new.as_ref());
    output::print(args, &trees, &report, printer)?;
    let differs = !report.is_empty() || !report.images.is_empty();
    let told = comparison.tell(args, &trees, &halves, printer);
    // The process is about to end: giving back every object one by one would take longer than comparing them.
    std::mem::forget((halves, comparison, report, trees));
    Ok(match (told, differs) {
        (ExitStatus::Clean, true) => ExitStatus::Findings,
        (status, _) => status,
    })
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
