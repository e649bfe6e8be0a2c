//! `portolan diff`: what a change of a Flux repository would change in its clusters.

mod output;

use camino::Utf8PathBuf;
use portolan_diff::StripAttributes;
use portolan_flux::{OwnerKinds, Selection};
use portolan_review::FluxRepository;
use portolan_review::compare::{CompareOptions, Revisions, Skipping, Trees, compare};

use super::CommandResult;
use super::ship::{ArtifactDiff, diff_artifacts};
use crate::app::App;
use crate::directory;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::repository::{RepositoryArgs, tell};
use crate::selection::{SelectionArgs, Word};
use crate::session::ShownRuns;
use output::OutputArgs;

/// Show what a change of a Flux repository would change in its clusters
///
/// Both sides are rendered as Flux would and compared object by object: the files as they are now, and those of the
/// commit that the current branch started from. Git is read only; the work tree stays as it is. The exit code is 0 when
/// nothing differs, 1 when something does, and 2 when something changed that could not be rendered on one side. A
/// release whose inputs are equal on both sides is not rendered, and its chart is not fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan diff
  portolan diff --from main -o markdown
  portolan diff hr podinfo -n apps --no-strip
  portolan diff deploy/web --skip-secrets
  portolan diff images --from v1.4.0 --exact
  portolan diff artifacts --from main -o json
  portolan diff --path clusters/production --path-orig ../before/clusters/production")]
pub(crate) struct DiffArgs {
    /// What to compare [default: all]; may also be a name
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
    /// Compares with the merge base of this and the current branch, so only the branch's own changes are shown.
    /// Default: the default branch of `origin`, else `main` or `master`.
    #[arg(long, value_name = "REF", conflicts_with = "path_orig")]
    from: Option<String>,

    /// Compare this branch, tag or commit instead of the files as they are now
    #[arg(long, value_name = "REF", conflicts_with = "path_orig")]
    to: Option<String>,

    /// Compare with --from itself, not with the commit it has in common with the current branch
    #[arg(long, conflicts_with = "path_orig")]
    exact: bool,

    /// Compare with another directory: another checkout or, with --path, the same cluster's directory in that checkout
    #[arg(long, value_name = "DIR")]
    path_orig: Option<Utf8PathBuf>,

    /// More labels and annotations to ignore; a trailing `*` matches any ending
    ///
    /// Labels and annotations that charts change all the time are always ignored: helm.sh/chart,
    /// app.kubernetes.io/version, chart, checksum/*. Restarts that they cause are still reported.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    strip_attrs: Vec<String>,

    /// Show changes of the labels and annotations that charts change all the time too
    #[arg(long)]
    no_strip: bool,

    /// Render both sides completely instead of skipping equal inputs (slower, same result)
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
    /// Images that `portolan ship build` would make of the artifacts of `portolan.yaml`
    #[value(alias = "artifact")]
    Artifacts,
    /// Everything
    All,
}

pub(crate) fn diff(args: &DiffArgs, app: &App) -> CommandResult {
    if args.what() == What::Artifacts {
        return diff_artifacts(&args.artifacts()?, app);
    }
    let printer = &app.printer;
    let repository = args.repository.repository(app)?;
    let trees = args.trees(&repository)?;
    let options = CompareOptions {
        selection: args.selected(),
        strip: args.sides.strip(),
        images_only: args.what() == What::Images,
        skipping: if args.sides.no_skip {
            Skipping::Off
        } else {
            Skipping::On
        },
    };
    let compared = compare(&repository, &trees, options, &ShownRuns::judged(app))?;
    let report = &compared.report;
    output::print(args, &trees, report, printer)?;
    for problems in compared.problems(&repository, &trees) {
        tell(problems, trees.new.as_ref(), false, printer);
    }
    for file in compared.unfinished_merges(&trees) {
        printer.note(&format!("`{file}` holds the marks of an unfinished merge"));
    }
    let status = if !compared.is_whole() {
        ExitStatus::Failure
    } else if !report.is_empty() || !report.images.is_empty() {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    };
    // The process is about to end: giving back every object one by one would take longer than comparing them.
    std::mem::forget((compared, trees));
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
    /// The files of both sides.
    fn trees(&self, repository: &FluxRepository) -> Result<Trees, CommandError> {
        if let Some(path) = &self.sides.path_orig {
            let real = directory::existing(path, path)?;
            let title = format!("{path} → {}", self.repository.shown_path());
            return Ok(Trees::of_directories(repository, &real, title)?);
        }
        Ok(Trees::of_git(repository, &self.revisions())?)
    }

    fn revisions(&self) -> Revisions {
        Revisions {
            from: self.sides.from.clone(),
            to: self.sides.to.clone(),
            exact: self.sides.exact,
        }
    }

    /// The same question about artifacts.
    fn artifacts(&self) -> Result<ArtifactDiff, CommandError> {
        let (_, names) = Word::split(self.what.as_ref(), &self.names, What::All);
        Ok(ArtifactDiff {
            names,
            revisions: self.revisions(),
            other: self.sides.path_orig.clone(),
            format: self.output.of_artifacts()?,
        })
    }

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
            What::Images | What::Artifacts | What::All => OwnerKinds::All,
        };
        self.selection.owners(owners, &names)
    }
}
