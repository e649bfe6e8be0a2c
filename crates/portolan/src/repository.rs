//! The arguments of every command on a Flux repository, how it is rendered, and how its problems are printed.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::CancellationToken;
use portolan_flux::{
    Chosen, Cluster, Demand, Depth, FluxVersion, OutputSink, Retention, repository_root,
    streamed_unit,
};
use portolan_helm::ReportedVersion;
use portolan_object::{Finding, Severity};
use portolan_review::{
    FluxRepository, Missing, ProblemsAtHand, RenderOptions, RenderSettings, RenderedRepository,
};
use portolan_sources::Pinning;
use portolan_vfs::{Disk, Frozen, Vfs};

use crate::app::App;
use crate::directory;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::findings::{FindingStyle, paragraphs};
use crate::limit_args::LimitArgs;
use crate::outside::{OutsideArgs, tell_placeholders};
use crate::printer::Printer;
use crate::session::ShownRuns;
use crate::source_args::SourceArgs;

/// Which repository, which cluster, which versions.
#[derive(Debug, clap::Args)]
pub(crate) struct RepositoryArgs {
    /// The directory that the cluster is bootstrapped from
    ///
    /// It contains the root Kustomization, or it is the path given to `flux bootstrap --path` or in a FluxInstance.
    /// Without this option, the repository is searched, and all of its clusters are rendered.
    #[arg(short, long, value_name = "DIR", help_heading = "Repository")]
    path: Option<Utf8PathBuf>,

    /// The repository's top directory
    ///
    /// Found from --path or the current directory when it is not given.
    #[arg(long, value_name = "DIR", help_heading = "Repository")]
    repo: Option<Utf8PathBuf>,

    #[command(flatten)]
    sources: SourceArgs,

    /// Flux version to emulate [default: the version that the repository installs, else 2.9]
    #[arg(long, value_name = "VERSION", help_heading = "Kubernetes and Flux")]
    flux_version: Option<FluxVersion>,

    /// Kubernetes version to check objects for and to report to charts [default: the version found in the repository,
    /// else 1.36]
    #[arg(long, value_name = "VERSION", value_parser = kube_version, help_heading = "Kubernetes and Flux")]
    kube_version: Option<ReportedVersion>,

    /// More API versions to report to charts, besides those of Kubernetes and of the repository's own CRDs
    ///
    /// As in `monitoring.coreos.com/v1` or `policy/v1/PodDisruptionBudget`; may be repeated.
    #[arg(
        short,
        long,
        value_name = "VERSION",
        value_delimiter = ',',
        help_heading = "Kubernetes and Flux"
    )]
    api_versions: Vec<String>,

    /// How to report a ConfigMap or Secret that nothing in the repository creates
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "auto",
        help_heading = "Repository"
    )]
    missing: MissingWord,

    /// What `--missing note` says, in the words of other tools
    #[arg(long, hide = true)]
    allow_missing_secrets: bool,

    #[command(flatten)]
    limit: LimitArgs,

    #[command(flatten)]
    outside: OutsideArgs,
}

/// What missing data means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MissingWord {
    /// A ConfigMap is an error, a Secret a note: many are made by hand
    Auto,
    /// Both are errors
    Strict,
    /// Both are notes
    Note,
}

impl RepositoryArgs {
    /// Opens the repository and renders its clusters.
    pub(crate) fn render(
        &self,
        demand: impl Into<Demand>,
        app: &App,
    ) -> Result<RenderedRepository, CommandError> {
        let repository = self.repository(app)?;
        repository.render(demand, &ShownRuns::new(app))
    }

    /// Opens the repository and renders its clusters for a command that judges them, and tells itself what is not
    /// looked at.
    pub(crate) fn render_to_judge(&self, app: &App) -> Result<RenderedRepository, CommandError> {
        let repository = self.repository(app)?;
        repository.render(Depth::Releases, &ShownRuns::judged(app))
    }

    /// Opens the repository and renders its clusters as far as no chart has to be fetched.
    pub(crate) fn render_at_hand(
        &self,
        demand: impl Into<Demand>,
        app: &App,
    ) -> Result<RenderedRepository, CommandError> {
        let repository = self.repository(app)?.at_hand();
        repository.render(demand, &ShownRuns::new(app))
    }

    /// Opens the repository and renders its clusters until the token is cancelled; what is ready goes to the sink of
    /// its cluster meanwhile.
    pub(crate) fn render_streamed(
        &self,
        demand: &Demand,
        mut sink_for: impl FnMut(Option<&str>) -> OutputSink,
        token: &CancellationToken,
        app: &App,
    ) -> Result<RenderedRepository, CommandError> {
        let repository = self.repository(app)?;
        let unit = |cluster: &Arc<Cluster>, name: Option<&str>| {
            // What several clusters have in common is rendered once.
            let retention = match name {
                Some(_) => Retention::Keep,
                None => Retention::Forget,
            };
            let (cluster, sink) = (Arc::clone(cluster), sink_for(name));
            streamed_unit(cluster, demand.clone(), sink, retention)
        };
        let files: Arc<dyn Vfs> = Arc::new(Frozen::new(repository.disk.clone()));
        let runs = ShownRuns::under(token, app);
        repository.render_files(files, &RenderOptions::default(), unit, &runs)
    }

    /// The repository, ready to be rendered; nothing is fetched yet.
    pub(crate) fn repository(&self, app: &App) -> Result<FluxRepository, CommandError> {
        self.pinned(Pinning::Prefer, app)
    }

    /// The same; `pinning` says what the lock file is worth.
    pub(crate) fn pinned(
        &self,
        pinning: Pinning,
        app: &App,
    ) -> Result<FluxRepository, CommandError> {
        let (disk, root) = self.locate()?;
        let supply = self.outside.open(&disk, pinning, app)?;
        let repository = FluxRepository {
            settings: self.settings()?,
            supply: Some(supply),
            disk,
            root,
        };
        if let Some(note) = repository.settings_note() {
            app.printer.note(&note);
        }
        Ok(repository)
    }

    fn settings(&self) -> Result<RenderSettings, CommandError> {
        let limit = self.limit.clone();
        let kubernetes = self.kube_version.clone();
        let flux = self.flux_version.clone();
        Ok(RenderSettings {
            kube_version: kubernetes.map(|version| Chosen::with_option(version, "--kube-version")),
            flux_version: flux.map(|version| Chosen::with_option(version, "--flux-version")),
            api_versions: self.api_versions.clone(),
            sources: self.sources.open()?,
            budget: Some(Arc::new(move || limit.budget())),
            missing: match self.missing {
                _ if self.allow_missing_secrets => Missing::Note,
                MissingWord::Auto => Missing::Auto,
                MissingWord::Strict => Missing::Strict,
                MissingWord::Note => Missing::Note,
            },
        })
    }

    /// The directory that was asked for, as the user wrote it.
    pub(crate) fn shown_path(&self) -> &str {
        let path = self.path.as_ref().or(self.repo.as_ref());
        path.map_or(".", |path| path.as_str())
    }

    /// Finds the repository on disk, and in it the cluster that was asked for.
    fn locate(&self) -> Result<(Disk, Option<Utf8PathBuf>), CommandError> {
        let here = current_directory()?;
        let existing = |path: &Utf8PathBuf| directory::existing(&here.join(path), path);
        let path = self.path.as_ref().map(existing).transpose()?;
        let top = match &self.repo {
            Some(repo) => existing(repo)?,
            None => repository_root(
                &Disk::machine(),
                path.as_deref().unwrap_or(&here),
                path.is_some(),
            ),
        };
        let disk = Disk::open(&top).map_err(CommandError::user)?;
        let root = match &path {
            Some(real) => Some(inside(&disk, real, self.path.as_deref().unwrap_or(real))?),
            None => None,
        };
        Ok((disk, root))
    }
}

/// Tells every problem but that charts were not fetched, which is said once; the status says whether there was one.
pub(crate) fn tell_problems_at_hand(
    rendered: &RenderedRepository,
    printer: &Printer,
) -> ExitStatus {
    tell_placeholders(rendered.supply.as_ref(), printer);
    let ProblemsAtHand {
        findings,
        unfetched,
    } = rendered.problems_at_hand();
    let status = tell_findings(rendered, findings, printer);
    match unfetched {
        0 => {}
        1 => printer.note("1 release was not rendered: its chart is not in the cache"),
        many => printer.note(&format!(
            "{many} releases were not rendered: their charts are not in the cache"
        )),
    }
    status
}

/// Tells everything that is wrong, by cause; the status says whether there was an error.
pub(crate) fn tell_problems(rendered: &RenderedRepository, printer: &Printer) -> ExitStatus {
    tell_placeholders(rendered.supply.as_ref(), printer);
    tell_findings(rendered, rendered.findings().collect(), printer)
}

/// Tells what has come to be wrong.
pub(crate) fn tell_new_problems(
    rendered: &RenderedRepository,
    problems: &[Finding],
    printer: &Printer,
) {
    tell_findings(rendered, problems.to_vec(), printer);
}

/// Tells of everything that could not be fetched; the status says whether there was something.
pub(crate) fn tell_fetch_problems(rendered: &RenderedRepository, printer: &Printer) -> ExitStatus {
    tell_findings(rendered, rendered.fetch_problems(), printer)
}

fn tell_findings(
    rendered: &RenderedRepository,
    findings: Vec<Finding>,
    printer: &Printer,
) -> ExitStatus {
    let several = rendered.clusters.len() > 1;
    match tell(findings, rendered.files(), several, printer) {
        0 => ExitStatus::Clean,
        _ => ExitStatus::Findings,
    }
}

/// Ends the command. The process ends with it: freeing a large repository piece by piece would take a tenth of the
/// time on one core alone.
pub(crate) fn end(rendered: RenderedRepository, status: ExitStatus) -> ExitStatus {
    std::mem::forget(rendered);
    status
}

/// Tells findings by cause, with the lines they speak of; gives how many are errors.
pub(crate) fn tell(
    findings: Vec<Finding>,
    files: &dyn Vfs,
    names_clusters: bool,
    printer: &Printer,
) -> usize {
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors = findings.iter().filter(is_error).count();
    let style = FindingStyle {
        names_rules: false,
        names_clusters,
        lists_all: printer.is_verbose(),
        styled: printer.is_styled(),
    };
    for paragraph in paragraphs(findings, files, style) {
        printer.say_unless_quiet(&paragraph);
    }
    errors
}

/// Reads a version as an option gives it.
fn kube_version(text: &str) -> Result<ReportedVersion, String> {
    let hint = "write it as in `1.36` or `v1.36.3`";
    ReportedVersion::parse(text).map_err(|_| format!("not a Kubernetes version: {hint}"))
}

fn current_directory() -> Result<Utf8PathBuf, CommandError> {
    let here = std::env::current_dir()?;
    Utf8PathBuf::from_path_buf(here).map_err(|path| {
        CommandError::usage(format!(
            "the current directory `{}` is not UTF-8",
            path.display()
        ))
    })
}

/// The real path as the repository sees it; `shown` is what the user wrote.
fn inside(disk: &Disk, real: &Utf8Path, shown: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let inside = real.strip_prefix(disk.root()).map_err(|_| {
        CommandError::usage(format!(
            "`{shown}` does not lie in the repository `{}`",
            disk.root()
        ))
    })?;
    Ok(Utf8Path::new("/").join(inside))
}
