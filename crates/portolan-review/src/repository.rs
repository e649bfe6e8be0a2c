//! A Flux repository on disk, how it is rendered, and what fetches the parts that it does not contain.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_budget::Budget;
use portolan_engine::{Key, Unit};
use portolan_flux::{
    Chosen, Cluster, Demand, DiscoverError, FluxVersion, OpenError, Rendering, Repo, RepoOptions,
    Session, SourcePattern, SourceStore, VersionSettings, advice_on_files, cluster_unit,
    not_covered,
};
use portolan_helm::ReportedVersion;
use portolan_kustomize::Fetch;
use portolan_secret::KnownSecrets;
use portolan_sources::{Lock, Sources};
use portolan_supply::{ChartsAtHand, Opener, Remote};
use portolan_vfs::{Disk, Frozen, Vfs};

use crate::judge::rules;
use crate::rendered::Missing;
use crate::settings_file::SettingsFile;
use crate::source_check::refuse_unknown_sources;
use crate::{RenderedRepository, ReviewError, Runner};

/// A repository on disk, and how it is rendered.
#[derive(Clone)]
pub struct FluxRepository {
    /// Its files.
    pub disk: Disk,
    /// The cluster's directory in it, when one is asked for.
    pub root: Option<Utf8PathBuf>,
    /// Versions, sources and limits.
    pub settings: RenderSettings,
    /// What brings in what it does not hold; without, nothing is fetched and nothing is decrypted.
    pub supply: Option<Supply>,
}

/// What a caller can choose about a render.
#[derive(Clone, Default)]
pub struct RenderSettings {
    /// The Flux version to emulate; what the repository says when not given.
    pub flux_version: Option<Chosen<FluxVersion>>,
    /// The Kubernetes version to assume; what the repository says when not given.
    pub kube_version: Option<Chosen<ReportedVersion>>,
    /// API versions that the cluster serves besides, as in `policy/v1/PodDisruptionBudget`.
    pub api_versions: Vec<String>,
    /// Files that stand for sources.
    pub sources: Vec<(SourcePattern, Arc<dyn Vfs>)>,
    /// Makes the budget of a render, whose time begins then; the default limits without a clock when not given.
    pub budget: Option<Arc<dyn Fn() -> Budget + Send + Sync>>,
    /// What missing data means.
    pub missing: Missing,
}

/// Everything that brings in what a repository does not hold.
#[derive(Clone)]
pub struct Supply {
    /// The cache and the network.
    pub sources: Arc<Sources>,
    /// Trees and charts from elsewhere.
    pub remote: Arc<Remote>,
    /// Opens what sops encrypted.
    pub opener: Arc<Opener>,
    /// Learns what is secret; nobody has to when secrets are shown.
    pub secrets: Option<Arc<KnownSecrets>>,
    /// The pins that were there before.
    pub lock: Lock,
    /// Where they are written.
    pub lock_file: Utf8PathBuf,
    /// Whether charts that are not in the cache are fetched.
    pub fetches_charts: bool,
}

/// What one render of several is part of.
#[derive(Clone, Default)]
pub struct RenderOptions {
    /// Results that are shared with other renders.
    pub session: Option<Arc<Session>>,
}

impl FluxRepository {
    /// A repository that is rendered with the defaults and without anything from outside.
    pub fn at(directory: &Utf8Path) -> Result<Self, ReviewError> {
        Ok(Self {
            disk: Disk::open(directory).map_err(ReviewError::failed)?,
            root: None,
            settings: RenderSettings::default(),
            supply: None,
        })
    }

    /// The same without fetching charts.
    #[must_use]
    pub fn at_hand(&self) -> Self {
        let mut at_hand = self.clone();
        if let Some(supply) = &mut at_hand.supply {
            supply.fetches_charts = false;
        }
        at_hand
    }

    /// The same with another cluster's directory.
    #[must_use]
    pub fn rooted(&self, root: Option<Utf8PathBuf>) -> Self {
        Self {
            root,
            ..self.clone()
        }
    }

    /// Renders what is asked for of every cluster, from the files as they are now.
    pub fn render<R: Runner>(
        &self,
        demand: impl Into<Demand>,
        runner: &R,
    ) -> Result<RenderedRepository, R::Error> {
        let demand = demand.into();
        let unit = |cluster: &Arc<Cluster>, _: Option<&str>| {
            cluster_unit(Arc::clone(cluster), demand.clone())
        };
        let files: Arc<dyn Vfs> = Arc::new(Frozen::new(self.disk.clone()));
        self.render_files(files, &RenderOptions::default(), unit, runner)
    }

    /// Runs a unit for each cluster of some files, which is named when there are several.
    pub fn render_files<R: Runner>(
        &self,
        files: Arc<dyn Vfs>,
        options: &RenderOptions,
        mut unit: impl FnMut(&Arc<Cluster>, Option<&str>) -> Unit<Rendering>,
        runner: &R,
    ) -> Result<RenderedRepository, R::Error> {
        check_settings(files.as_ref())?;
        let repo = self.open(&files, options.session.as_ref())?;
        let not_covered = not_covered(&repo);
        let several = repo.clusters().len() > 1;
        runner.take_not_covered(&not_covered, files.as_ref(), several);
        let key = |cluster: &Cluster| Key::from(format!("Cluster/{}", cluster.root.path));
        let report = runner.run(&mut |run| {
            for cluster in repo.clusters() {
                let name = several.then_some(cluster.name.as_str());
                run.add(key(cluster), &[], unit(cluster, name));
            }
        })?;
        let mut clusters = Vec::new();
        for cluster in repo.clusters() {
            let rendering = report.output::<Rendering>(&key(cluster));
            let rendering = rendering.ok_or_else(|| ReviewError::refused(&report))?;
            clusters.push((Arc::clone(cluster), rendering));
        }
        let renderings = clusters.iter().map(|(_, rendering)| rendering.as_ref());
        refuse_unknown_sources(&self.settings.sources, renderings)?;
        Ok(RenderedRepository {
            clusters,
            report,
            not_covered,
            files,
            missing: self.settings.missing,
            supply: self.supply.clone(),
        })
    }

    /// What somebody should do about the settings of the repository; nothing if they cannot be read, which opening tells.
    pub fn settings_note(&self) -> Option<String> {
        SettingsFile::read(&self.disk).ok()?.note()
    }

    /// Opens the files of the repository: those on disk, or another state of them. What is rendered in one session is
    /// shared.
    pub fn open(
        &self,
        files: &Arc<dyn Vfs>,
        session: Option<&Arc<Session>>,
    ) -> Result<Repo, ReviewError> {
        let supply = self.supply.as_ref();
        let remote = supply.map(|supply| Arc::new(supply.remote.with_own_files(files)));
        let store = |remote: &Arc<Remote>| -> Arc<dyn SourceStore> {
            if supply.is_some_and(|supply| supply.fetches_charts) {
                Arc::clone(remote) as _
            } else {
                Arc::new(ChartsAtHand(Arc::clone(remote)))
            }
        };
        let file = SettingsFile::read(files.as_ref())?;
        let versions = self.versions(&file)?;
        let options = RepoOptions {
            path: self.root.clone(),
            flux_version: versions.flux,
            kube_version: versions.kubernetes,
            api_versions: self.settings.api_versions.clone(),
            sources: self.settings.sources.clone(),
            outside: remote.as_ref().map(store),
            fetch: remote.map(|remote| remote as Arc<dyn Fetch>),
            decrypt: supply.map(|supply| Arc::clone(&supply.opener) as _),
            secrets: supply.and_then(|supply| supply.secrets.clone()),
            producers: file.producers()?,
            session: session.cloned(),
            budget: self.settings.budget.as_ref().map(|budget| budget()),
        };
        Repo::open(files, &options).map_err(|error| open_error(error, self.disk.root()))
    }

    /// The versions that the caller or the settings choose; without, the repository says.
    fn versions(&self, file: &SettingsFile) -> Result<VersionSettings, ReviewError> {
        let chosen = file.versions()?;
        Ok(VersionSettings {
            kubernetes: self.settings.kube_version.clone().or(chosen.kubernetes),
            flux: self.settings.flux_version.clone().or(chosen.flux),
        })
    }
}

/// Refuses a mistake in the settings that only `test` uses: every command tells it.
pub(crate) fn check_settings(files: &dyn Vfs) -> Result<(), ReviewError> {
    SettingsFile::read(files)?.findings(&rules())?;
    Ok(())
}

/// How many files a hint names.
const NAMED_FILES: usize = 5;

fn open_error(error: OpenError, top: &Utf8Path) -> ReviewError {
    let hints = match &error {
        OpenError::Discover(DiscoverError::UnknownPath(_)) => {
            vec!["name the directory that the cluster starts from with --path".to_owned()]
        }
        OpenError::Discover(DiscoverError::NoRoot { seen }) if seen.is_empty() => vec![format!(
            "`{top}` holds no Flux Kustomization; name the repository with --repo, or the directory that Flux is pointed at with --path"
        )],
        OpenError::Discover(DiscoverError::NoRoot { seen }) => {
            let seen = seen.iter().take(NAMED_FILES);
            seen.map(|file| {
                let directory = file.parent().unwrap_or(file);
                format!(
                    "`{}` holds Kustomizations: try --path .{directory}",
                    file.as_str().trim_start_matches('/')
                )
            })
            .collect()
        }
        _ => advice_on_files(&error)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    ReviewError::Open { error, hints }
}
