//! The arguments that every command on a Flux repository takes, and how it is opened, rendered and judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_check::{Unrendered, lower_follow_ons};
use portolan_engine::{CancellationToken, Key, Report, Unit};
use portolan_flux::api::NamespacedName;
use portolan_flux::{
    Chosen, Cluster, DEPENDENCY_MISSING, Demand, Depth, DiscoverError, Emitter, FluxVersion,
    Location, MADE_IN_CLUSTER, MISSING_DATA, OpenError, OutputSink, RenderedRelease, Rendering,
    Repo, RepoOptions, Retention, Session, SourceStore, VersionSettings, advice_on_files,
    cluster_unit, not_covered, problems, release_namespace, repository_root, streamed_unit,
};
use portolan_helm::ReportedVersion;
use portolan_kustomize::Fetch;
use portolan_object::{Finding, Owner, OwnerKind, Severity};
use portolan_sources::Pinning;
use portolan_supply::ChartsAtHand;
use portolan_vfs::{Disk, Frozen, Lineage, Vfs};
use portolan_yaml::Text;

use crate::directory;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::findings::{FindingStyle, paragraphs};
use crate::limit_args::LimitArgs;
use crate::outside::{Outside, OutsideArgs};
use crate::printer::Printer;
use crate::session;
use crate::settings_file::SettingsFile;
use crate::source_args::SourceArgs;
use crate::status::Statuses;

/// Which repository, which cluster, which versions.
#[derive(Debug, clap::Args)]
pub(crate) struct RepositoryArgs {
    /// The directory that the cluster is bootstrapped from
    ///
    /// It holds the root Kustomization, or is what `flux bootstrap --path` or a FluxInstance names. Without it the
    /// repository is searched, and all of its clusters are rendered.
    #[arg(short, long, value_name = "DIR", help_heading = "Repository")]
    path: Option<Utf8PathBuf>,

    /// The repository's top directory
    ///
    /// Found from --path or the current directory when it is not given.
    #[arg(long, value_name = "DIR", help_heading = "Repository")]
    repo: Option<Utf8PathBuf>,

    #[command(flatten)]
    sources: SourceArgs,

    /// Flux version to emulate; what the repository installs when not given, else 2.9
    #[arg(long, value_name = "VERSION", help_heading = "Kubernetes and Flux")]
    flux_version: Option<FluxVersion>,

    /// Kubernetes version that objects are checked for and charts are told of; what the repository says when not given, else 1.36
    #[arg(long, value_name = "VERSION", value_parser = kube_version, help_heading = "Kubernetes and Flux")]
    kube_version: Option<ReportedVersion>,

    /// API versions that charts are told of besides those of Kubernetes and of the repository's own definitions
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

    /// What a ConfigMap or Secret that is missing means, when nothing in the repository makes it
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "auto",
        help_heading = "Repository"
    )]
    missing: Missing,

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
enum Missing {
    /// A ConfigMap is an error, a Secret a note: many are made by hand
    Auto,
    /// Both are errors
    Strict,
    /// Both are notes
    Note,
}

/// A repository on disk.
pub(crate) struct Located {
    /// Its files.
    pub(crate) disk: Disk,
    /// The cluster's directory in it, when one was asked for.
    pub(crate) root: Option<Utf8PathBuf>,
}

/// A repository rendered.
pub(crate) struct Rendered {
    /// Its clusters with what became of them.
    pub(crate) clusters: Vec<(Arc<Cluster>, Arc<Rendering>)>,
    /// What became of every unit.
    pub(crate) report: Report,
    /// What is not looked at, or only nearly.
    pub(crate) not_covered: Vec<Finding>,
    files: Arc<dyn Vfs>,
    missing: Missing,
    /// What was brought in from outside of the repository.
    pub(crate) outside: Outside,
}

/// What one run of several is part of, and what ends it.
#[derive(Default)]
struct RunContext<'a> {
    session: Option<&'a Arc<Session>>,
    token: CancellationToken,
    /// Whether the command has its own way to tell what is not looked at.
    is_judged: bool,
}

impl RepositoryArgs {
    /// Opens the repository and renders its clusters.
    pub(crate) fn render(
        &self,
        demand: impl Into<Demand>,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let located = self.locate()?;
        let outside = self.outside(&located, Pinning::Prefer, printer)?;
        self.render_outside(&located, outside, &demand.into(), printer)
    }

    /// Opens the repository and renders its clusters for a command that judges them, and tells itself what is not
    /// looked at.
    pub(crate) fn render_to_judge(&self, printer: &Printer) -> Result<Rendered, CommandError> {
        let located = self.locate()?;
        let outside = self.outside(&located, Pinning::Prefer, printer)?;
        let files = Arc::new(Frozen::new(located.disk.clone()));
        let context = RunContext {
            is_judged: true,
            ..RunContext::default()
        };
        let demand = Depth::Releases.into();
        let unit = whole(&demand);
        self.render_files(files, &located, outside, &context, unit, printer)
    }

    /// Opens the repository and renders its clusters as far as no chart has to be fetched.
    pub(crate) fn render_at_hand(
        &self,
        demand: impl Into<Demand>,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let located = self.locate()?;
        let mut outside = self.outside(&located, Pinning::Prefer, printer)?;
        outside.fetches_charts = false;
        self.render_outside(&located, outside, &demand.into(), printer)
    }

    /// Opens the repository and renders its clusters until the token is cancelled; what is ready goes to the sink of
    /// its cluster meanwhile.
    pub(crate) fn render_streamed(
        &self,
        demand: &Demand,
        mut sink_for: impl FnMut(Option<&str>) -> OutputSink,
        token: &CancellationToken,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let located = self.locate()?;
        let outside = self.outside(&located, Pinning::Prefer, printer)?;
        let unit = |cluster: &Arc<Cluster>, name: Option<&str>| {
            // What several clusters have in common is rendered once.
            let retention = match name {
                Some(_) => Retention::Keep,
                None => Retention::Forget,
            };
            let (cluster, sink) = (Arc::clone(cluster), sink_for(name));
            streamed_unit(cluster, demand.clone(), sink, retention)
        };
        let files = Arc::new(Frozen::new(located.disk.clone()));
        let context = RunContext {
            token: token.clone(),
            ..RunContext::default()
        };
        self.render_files(files, &located, outside, &context, unit, printer)
    }

    /// Renders the clusters of a repository with what is brought in from outside of it.
    pub(crate) fn render_outside(
        &self,
        located: &Located,
        outside: Outside,
        demand: &Demand,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let files = Arc::new(Frozen::new(located.disk.clone()));
        let context = RunContext::default();
        self.render_files(files, located, outside, &context, whole(demand), printer)
    }

    /// Renders the clusters of a repository in a state that follows from others of the session.
    pub(crate) fn render_state(
        &self,
        located: &Located,
        lineage: &Lineage,
        session: &Arc<Session>,
        demand: impl Into<Demand>,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let outside = self.outside(located, Pinning::Prefer, printer)?;
        let files = Frozen::new(located.disk.clone()).with_lineage(lineage.clone());
        let (files, demand) = (Arc::new(files), demand.into());
        let unit = whole(&demand);
        let context = RunContext {
            session: Some(session),
            ..RunContext::default()
        };
        self.render_files(files, located, outside, &context, unit, printer)
    }

    /// Runs a unit for each cluster, which is named when there are several.
    fn render_files(
        &self,
        files: Arc<dyn Vfs>,
        located: &Located,
        outside: Outside,
        context: &RunContext<'_>,
        mut unit: impl FnMut(&Arc<Cluster>, Option<&str>) -> Unit,
        printer: &Printer,
    ) -> Result<Rendered, CommandError> {
        let repo = self.open(&files, located, &outside, context.session)?;
        let not_covered = not_covered(&repo);
        if !context.is_judged {
            let several = repo.clusters().len() > 1;
            tell(not_covered.clone(), files.as_ref(), several, printer);
        }
        let key = |cluster: &Cluster| Key::from(format!("Cluster/{}", cluster.root.path));
        let several = repo.clusters().len() > 1;
        let report = session::run_under(&context.token, printer, |run| {
            for cluster in repo.clusters() {
                let name = several.then_some(cluster.name.as_str());
                run.add(key(cluster), &[], unit(cluster, name));
            }
        })?;
        let mut clusters = Vec::new();
        for cluster in repo.clusters() {
            let rendering = report.output::<Rendering>(&key(cluster));
            let rendering = rendering.ok_or_else(|| CommandError::usage(format!("{report}")))?;
            clusters.push((Arc::clone(cluster), rendering));
        }
        self.sources
            .check(clusters.iter().map(|(_, rendering)| rendering.as_ref()))?;
        Ok(Rendered {
            clusters,
            report,
            not_covered,
            files,
            missing: self.missing(),
            outside,
        })
    }

    fn missing(&self) -> Missing {
        if self.allow_missing_secrets {
            Missing::Note
        } else {
            self.missing
        }
    }

    /// What brings in what the repository does not hold; `pinning` says what the lock file is worth.
    pub(crate) fn outside(
        &self,
        located: &Located,
        pinning: Pinning,
        printer: &Printer,
    ) -> Result<Outside, CommandError> {
        self.outside.open(&located.disk, pinning, printer)
    }

    /// Whether files stand for sources.
    pub(crate) fn maps_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Refuses a mapping for a source that no cluster has.
    pub(crate) fn check_sources<'a>(
        &self,
        clusters: impl Iterator<Item = &'a Rendering>,
    ) -> Result<(), CommandError> {
        self.sources.check(clusters)
    }

    /// The directory that was asked for, as the user wrote it.
    pub(crate) fn shown_path(&self) -> &str {
        let path = self.path.as_ref().or(self.repo.as_ref());
        path.map_or(".", |path| path.as_str())
    }

    /// Finds the repository on disk, and in it the cluster that was asked for.
    pub(crate) fn locate(&self) -> Result<Located, CommandError> {
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
        Ok(Located { disk, root })
    }

    /// Opens the files of a repository: those on disk, or another state of them. What is rendered in one session is
    /// shared.
    pub(crate) fn open(
        &self,
        files: &Arc<dyn Vfs>,
        located: &Located,
        outside: &Outside,
        session: Option<&Arc<Session>>,
    ) -> Result<Repo, CommandError> {
        let remote = Arc::new(outside.remote.with_own_files(files));
        let fetch = Arc::clone(&remote) as Arc<dyn Fetch>;
        let store: Arc<dyn SourceStore> = if outside.fetches_charts {
            remote
        } else {
            Arc::new(ChartsAtHand(remote))
        };
        let settings = SettingsFile::read(files.as_ref())?;
        let versions = self.versions(&settings)?;
        let options = RepoOptions {
            path: located.root.clone(),
            flux_version: versions.flux,
            kube_version: versions.kubernetes,
            api_versions: self.api_versions.clone(),
            sources: self.sources.open()?,
            fetch: Some(fetch),
            outside: Some(store),
            decrypt: Some(Arc::clone(&outside.opener) as _),
            secrets: outside.secrets.clone(),
            producers: settings.producers()?,
            session: session.cloned(),
            budget: Some(self.limit.budget()),
        };
        Repo::open(files, &options).map_err(|error| open_error(error, located.disk.root()))
    }

    /// The versions that the user or the settings choose; without, the repository says.
    fn versions(&self, settings: &SettingsFile) -> Result<VersionSettings, CommandError> {
        let settings = settings.versions()?;
        let kubernetes = self.kube_version.clone();
        let kubernetes = kubernetes.map(|version| Chosen::with_option(version, "--kube-version"));
        let flux = self.flux_version.clone();
        let flux = flux.map(|version| Chosen::with_option(version, "--flux-version"));
        Ok(VersionSettings {
            kubernetes: kubernetes.or(settings.kubernetes),
            flux: flux.or(settings.flux),
        })
    }
}

impl Rendered {
    /// Whether a release's chart would have had to be fetched, and was not because nobody asked for it.
    pub(crate) fn is_unfetched(&self, release: &RenderedRelease) -> bool {
        let location = release.location.as_ref();
        let is_elsewhere = location.is_some_and(|at| !matches!(at, Location::Tree { .. }));
        !self.outside.fetches_charts && is_elsewhere && release.chart.is_none()
    }

    /// Tells every problem but that charts were not fetched, which is said once; the status says whether there was one.
    pub(crate) fn tell_problems_at_hand(&self, printer: &Printer) -> ExitStatus {
        let mut unfetched = 0;
        let mut told = Vec::new();
        self.outside.tell_placeholders(printer);
        for (cluster, rendering) in &self.clusters {
            let releases = rendering.releases.iter();
            let left = releases.filter(|(_, release)| self.is_unfetched(release));
            let left: BTreeSet<Owner> = left.map(|(id, _)| release_owner(id)).collect();
            unfetched += left.len();
            let is_told =
                |problem: &Finding| !problem.owner.as_ref().is_some_and(|o| left.contains(o));
            let problems = self.problem_printer().problems(rendering).into_iter();
            let problems = problems.filter(is_told);
            told.extend(problems.map(|problem| problem.in_cluster(&cluster.name)));
        }
        let status = self.tell_findings(told, printer);
        match unfetched {
            0 => {}
            1 => printer.note("1 release was not rendered: its chart is not in the cache"),
            many => printer.note(&format!(
                "{many} releases were not rendered: their charts are not in the cache"
            )),
        }
        status
    }

    /// How the Kustomizations and releases of a cluster fared.
    pub(crate) fn statuses(&self, rendering: &Rendering) -> Statuses {
        Statuses::of(self.problem_printer().problems(rendering))
    }

    /// Tells everything that is wrong, by cause; the status says whether there was an error.
    pub(crate) fn tell_problems(&self, printer: &Printer) -> ExitStatus {
        self.outside.tell_placeholders(printer);
        self.tell_findings(self.findings().collect(), printer)
    }

    /// Everything that is wrong with the Kustomizations and releases of every cluster.
    fn findings(&self) -> impl Iterator<Item = Finding> {
        let clusters = self.clusters.iter();
        clusters.flat_map(|(cluster, rendering)| {
            let problems = self.problem_printer().problems(rendering).into_iter();
            problems.map(|problem| problem.in_cluster(&cluster.name))
        })
    }

    fn tell_findings(&self, findings: Vec<Finding>, printer: &Printer) -> ExitStatus {
        let several = self.clusters.len() > 1;
        match tell(findings, self.files.as_ref(), several, printer) {
            0 => ExitStatus::Clean,
            _ => ExitStatus::Findings,
        }
    }

    /// Ends the command. The process ends with it: freeing a large repository piece by piece would take a tenth of the
    /// time on one core alone.
    pub(crate) fn end(self, status: ExitStatus) -> ExitStatus {
        std::mem::forget(self);
        status
    }

    /// Everything that is wrong, cluster by cluster, each with what says it in one line.
    pub(crate) fn problems(&self) -> Vec<(String, Finding)> {
        let clusters = self.clusters.iter();
        let problems =
            clusters.flat_map(|(_, rendering)| self.problem_printer().problems(rendering));
        problems
            .map(|problem| (sentence(&problem), problem))
            .collect()
    }

    /// Tells one problem, as an error or a note.
    pub(crate) fn tell_problem(&self, problem: &Finding, printer: &Printer) {
        self.tell_findings(vec![problem.clone()], printer);
    }

    /// Tells of everything that could not be fetched; the status says whether there was something.
    pub(crate) fn tell_fetch_problems(&self, printer: &Printer) -> ExitStatus {
        let failures = self.outside.remote.failures();
        let is_failure =
            |finding: &Finding| finding.messages.iter().any(|text| failures.contains(text));
        self.tell_findings(self.findings().filter(is_failure).collect(), printer)
    }

    /// The files that were rendered.
    pub(crate) fn files(&self) -> &dyn Vfs {
        self.files.as_ref()
    }

    /// What Flux would refuse in a cluster, and notes on what it may lack.
    pub(crate) fn errors(
        &self,
        cluster: &Cluster,
        rendering: &Rendering,
    ) -> impl Iterator<Item = Finding> {
        let problems = self.problem_printer().problems(rendering).into_iter();
        let errors = problems.filter(|problem| {
            let may_lack = [&MISSING_DATA, &DEPENDENCY_MISSING].contains(&problem.rule);
            problem.severity == Severity::Error || (may_lack && is_missing(problem))
        });
        errors.map(|problem| problem.in_cluster(&cluster.name))
    }

    fn problem_printer(&self) -> ProblemPrinter<'_> {
        ProblemPrinter {
            report: &self.report,
            files: self.files.as_ref(),
            missing: self.missing,
        }
    }
}

/// Tells what is wrong with a rendered cluster.
pub(crate) struct ProblemPrinter<'a> {
    report: &'a Report,
    files: &'a dyn Vfs,
    missing: Missing,
}

impl RepositoryArgs {
    /// Whoever tells what is wrong with clusters of these files.
    pub(crate) fn problem_printer<'a>(
        &self,
        report: &'a Report,
        files: &'a dyn Vfs,
    ) -> ProblemPrinter<'a> {
        ProblemPrinter {
            report,
            files,
            missing: self.missing(),
        }
    }
}

impl ProblemPrinter<'_> {
    /// Tells everything that is wrong and that a condition accepts, by cause.
    pub(crate) fn tell_problems_of(
        &self,
        rendering: &Rendering,
        printer: &Printer,
        is_told: impl Fn(&Finding) -> bool,
    ) {
        let problems = self.problems(rendering).into_iter();
        tell(
            problems.filter(is_told).collect(),
            self.files,
            false,
            printer,
        );
    }

    /// Everything that is wrong; missing data is as grave as the user says.
    fn problems(&self, rendering: &Rendering) -> Vec<Finding> {
        let mut problems = problems(rendering, self.report, self.files);
        for problem in &mut problems {
            let is_missing = problem.rule == &MISSING_DATA && is_missing(problem);
            match self.missing {
                Missing::Strict if is_missing => problem.severity = Severity::Error,
                Missing::Note if is_missing => problem.severity = Severity::Note,
                _ => {}
            }
        }
        let unrendered = unrendered(&Text::default(), rendering);
        lower_follow_ons(&mut problems, &[&MISSING_DATA], &unrendered);
        problems
    }
}

/// Tells findings by cause, with the lines they speak of; gives how many are errors.
fn tell(findings: Vec<Finding>, files: &dyn Vfs, names_clusters: bool, printer: &Printer) -> usize {
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

/// A release as the owner of findings.
pub(crate) fn release_owner(id: &NamespacedName) -> Owner {
    Owner::new(OwnerKind::Release, id.namespace.clone(), id.name.clone())
}

/// The unit that renders what is asked for of a cluster and hands it out at the end.
fn whole(demand: &Demand) -> impl FnMut(&Arc<Cluster>, Option<&str>) -> Unit {
    move |cluster, _| cluster_unit(Arc::clone(cluster), demand.clone())
}

/// What is wrong with what, in one line.
fn sentence(problem: &Finding) -> String {
    format!("{}: {}", problem.subject(), problem.message())
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

/// How many files a hint names.
const NAMED_FILES: usize = 5;

fn open_error(error: OpenError, top: &Utf8Path) -> CommandError {
    let OpenError::Discover(DiscoverError::NoRoot { seen }) = &error else {
        let hint = advice_on_files(&error);
        let error = CommandError::user(error);
        return hint.into_iter().fold(error, CommandError::hint);
    };
    if seen.is_empty() {
        let none = format!(
            "`{top}` holds no Flux Kustomization; name the repository with --repo, or the directory that Flux is pointed at with --path"
        );
        return CommandError::user(error).hint(none);
    }
    let hints: Vec<String> = seen
        .iter()
        .take(NAMED_FILES)
        .map(|file| {
            let directory = file.parent().unwrap_or(file);
            format!(
                "`{}` holds Kustomizations: try --path .{directory}",
                file.as_str().trim_start_matches('/')
            )
        })
        .collect();
    let error = CommandError::user(error);
    hints.into_iter().fold(error, CommandError::hint)
}
