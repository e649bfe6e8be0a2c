//! The entry point: opens a repository and finds its clusters, ready to be rendered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_budget::Budget;
use portolan_helm::{Capabilities, ReportedVersion};
use portolan_kustomize::Fetch;
use portolan_object::{KubeVersion, Producer};
use portolan_secret::KnownSecrets;
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use crate::cluster::Cluster;
use crate::discover::{self, DiscoverError, Found, Root, Site, UnknownRoot};
use crate::kustomization::generate;
use crate::session::Session;
use crate::source::artifact::{Artifact, ArtifactError};
use crate::source::mapped_sources::{MappedSources, SourcePattern};
use crate::source::outside::{Decrypt, SourceStore};
use crate::version::chosen::{Chosen, ChosenBy};
use crate::version::flux_version::FluxVersion;

/// What a caller can choose about a repository.
#[derive(Default)]
pub struct RepoOptions {
    /// The directory that a cluster is bootstrapped from; all clusters are searched for without it.
    pub path: Option<Utf8PathBuf>,
    /// The Flux version to emulate; the one that the repository installs when not given, else the newest.
    pub flux_version: Option<Chosen<FluxVersion>>,
    /// The Kubernetes version to assume; the one that the repository states when not given, else the default.
    pub kube_version: Option<Chosen<ReportedVersion>>,
    /// API versions that the cluster serves besides, as in `policy/v1/PodDisruptionBudget`.
    pub api_versions: Vec<String>,
    /// Trees that stand for sources.
    pub sources: Vec<(SourcePattern, Arc<dyn Vfs>)>,
    /// Brings remote bases.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Brings trees and charts from elsewhere.
    pub outside: Option<Arc<dyn SourceStore>>,
    /// Opens encrypted objects and files.
    pub decrypt: Option<Arc<dyn Decrypt>>,
    /// Learns the values of Secrets that something is made of, so that they can be hidden where they went.
    pub secrets: Option<Arc<KnownSecrets>>,
    /// What controllers make out of objects of the repository that the built-in table does not know.
    pub producers: Vec<Producer>,
    /// Where results are kept for other renders; a new one when not given.
    pub session: Option<Arc<Session>>,
    /// What each Kustomization and release may use; the default limits without a clock when not given.
    pub budget: Option<Budget>,
}

/// A Flux repository with its clusters.
pub struct Repo {
    clusters: Vec<Arc<Cluster>>,
    unknown_roots: Vec<UnknownRoot>,
}

/// Why a repository cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no cluster in it.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Its files cannot be packed.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

impl Repo {
    /// Opens a repository and finds where its clusters start.
    pub fn open(files: &Arc<dyn Vfs>, options: &RepoOptions) -> Result<Self, OpenError> {
        let session = options.session.clone().unwrap_or_default();
        let Found { roots, unknown } = match &options.path {
            Some(path) => Found {
                roots: vec![discover::root_at(files.as_ref(), path, &session.declared)?],
                unknown: Vec::new(),
            },
            None => discover::roots(files.as_ref(), &session.declared)?,
        };
        let mut packed = Packed {
            session: &session,
            artifacts: HashMap::new(),
        };
        let paths: Vec<&str> = roots
            .iter()
            .map(|root| root.kustomization.path.as_str())
            .collect();
        let names = names_of(&paths);
        let kubernetes = kubernetes_of(files.as_ref(), &roots, options, &session)?;
        let clusters = roots.into_iter().zip(names).zip(kubernetes);
        let clusters = clusters.map(|((root, name), kubernetes)| {
            open_cluster(files, (name, root), options, kubernetes, &mut packed)
        });
        Ok(Self {
            clusters: clusters.collect::<Result<_, _>>()?,
            unknown_roots: unknown,
        })
    }

    /// Instances whose clusters start at a path that the repository does not tell; none when the user named one.
    pub fn unknown_roots(&self) -> &[UnknownRoot] {
        &self.unknown_roots
    }

    /// The clusters, by the directory they start from.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }
}

/// The repository packed with different ignore rules: clusters with the same rules share a tree.
struct Packed<'a> {
    session: &'a Arc<Session>,
    artifacts: HashMap<Option<String>, Arc<Artifact>>,
}

impl Packed<'_> {
    fn pack(
        &mut self,
        files: &Arc<dyn Vfs>,
        ignore: Option<String>,
    ) -> Result<Arc<Artifact>, ArtifactError> {
        if let Some(packed) = self.artifacts.get(&ignore) {
            return Ok(Arc::clone(packed));
        }
        let artifact = Artifact::pack(Arc::clone(files), ignore.as_deref(), self.session)?;
        let artifact = Arc::new(artifact);
        self.artifacts.insert(ignore, Arc::clone(&artifact));
        Ok(artifact)
    }
}

fn open_cluster(
    files: &Arc<dyn Vfs>,
    (name, mut root): (Text, Root),
    options: &RepoOptions,
    kubernetes: Chosen<ReportedVersion>,
    packed: &mut Packed<'_>,
) -> Result<Arc<Cluster>, OpenError> {
    let ignore = discover::declared_ignore(files.as_ref(), &root);
    let installed = discover::installed(files.as_ref(), &root, &packed.session.declared)?;
    if let Some(applied) = discover::applied(files.as_ref(), &root) {
        root.kustomization = applied;
    }
    let mut sources = HashMap::new();
    let own = packed.pack(files, ignore)?;
    sources.insert(root.kustomization.source.clone(), own);
    let mut mapped = MappedSources::default();
    for (pattern, tree) in &options.sources {
        let artifact = Arc::new(Artifact::pack(Arc::clone(tree), None, packed.session)?);
        if pattern.matches(&root.kustomization.source) {
            sources.insert(root.kustomization.source.clone(), Arc::clone(&artifact));
        }
        mapped.insert(pattern.clone(), artifact);
    }
    let flux = installed.flux(options.flux_version.as_ref());
    Ok(Arc::new(Cluster {
        name,
        root: root.kustomization,
        sources,
        mapped,
        fetch: options.fetch.clone(),
        outside: options.outside.clone(),
        decrypt: options.decrypt.clone(),
        secrets: options.secrets.clone(),
        producers: options.producers.clone().into(),
        profile: installed.profile(&flux.value),
        flux,
        capabilities: Arc::new(capabilities(&kubernetes.value, &options.api_versions)),
        kubernetes,
        session: Arc::clone(packed.session),
        budget: options.budget.clone().unwrap_or_default(),
    }))
}

/// What clusters are called: like their directory, or the part of its path that tells them apart.
fn names_of(paths: &[&str]) -> Vec<Text> {
    let split: Vec<Vec<&str>> = paths
        .iter()
        .map(|path| {
            let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
            parts.collect()
        })
        .collect();
    let all_end_alike = |cut: usize| {
        let mut ends = split.iter().map(|parts| parts.iter().rev().nth(cut));
        let first = ends.next().flatten();
        first.is_some() && ends.all(|end| end == first)
    };
    let is_generic = |parts: &[&str], cut: usize| {
        let end = parts.iter().rev().nth(cut);
        end.is_some_and(|end| matches!(*end, "flux" | "cluster" | "config"))
    };
    let says_nothing = |cut: &usize| match split.as_slice() {
        [only] => is_generic(only, *cut),
        _ => all_end_alike(*cut),
    };
    let longest = split.iter().map(Vec::len).max().unwrap_or_default();
    let cut = (0..longest).take_while(says_nothing).count();
    let names = |depth: usize| -> Vec<String> {
        let named = split.iter().map(|parts| {
            let left = parts.len().saturating_sub(cut);
            let from = left.saturating_sub(depth);
            parts.get(from..left).unwrap_or_default().join("/")
        });
        named.collect()
    };
    let is_distinct = |names: &Vec<String>| {
        let distinct: HashSet<_> = names.iter().collect();
        distinct.len() == names.len()
    };
    let found = (1..=longest).map(names).find(is_distinct);
    let found = found.unwrap_or_else(|| names(longest));
    let named = found.into_iter().map(|name| match name.as_str() {
        "" => Text::from_static("cluster"),
        name => Text::from(name),
    });
    named.collect()
}

/// The Kubernetes version of each cluster: what the user chose, else what files of the repository state, else the
/// default.
fn kubernetes_of(
    files: &dyn Vfs,
    roots: &[Root],
    options: &RepoOptions,
    session: &Session,
) -> Result<Vec<Chosen<ReportedVersion>>, OpenError> {
    if let Some(chosen) = &options.kube_version {
        return Ok(vec![chosen.clone(); roots.len()]);
    }
    let default = || Chosen::default_of(ReportedVersion::first_of(KubeVersion::DEFAULT));
    let stated = discover::stated_versions(files, &session.declared)?;
    if stated.is_empty() {
        return Ok(vec![default(); roots.len()]);
    }
    // A file counts for the nearest cluster, also for one that is not asked for.
    let others = match &options.path {
        Some(_) => discover::roots(files, &session.declared)
            .map_or_else(|_| Vec::new(), |found| found.roots),
        None => Vec::new(),
    };
    let all: Vec<&Root> = roots.iter().chain(&others).collect();
    let paths: Vec<&str> = all
        .iter()
        .map(|root| root.kustomization.path.as_str())
        .collect();
    let directories: Vec<Utf8PathBuf> = all
        .iter()
        .map(|root| generate::directory(&root.kustomization))
        .collect();
    let names = names_of(&paths);
    let sites: Vec<Site<'_>> = directories
        .iter()
        .zip(&names)
        .map(|(directory, name)| Site { directory, name })
        .collect();
    let stated = discover::stated_for(&stated, &sites).into_iter();
    let chosen = stated.take(roots.len()).map(|stated| match stated {
        Some(stated) => Chosen {
            value: stated.version.clone(),
            by: ChosenBy::Repository(stated.place.clone()),
        },
        None => default(),
    });
    Ok(chosen.collect())
}

/// What a Kubernetes version serves, group versions and kinds.
fn capabilities(version: &ReportedVersion, api_versions: &[String]) -> Capabilities {
    let mut capabilities = Capabilities::default().with_version(version.clone());
    capabilities.add_served_by(version.release());
    capabilities.add_api_versions(api_versions.iter().cloned());
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_called_by_what_tells_their_directories_apart() {
        let check = |paths: &[&str], expected: &[&str]| assert_eq!(names_of(paths), expected);
        check(&["./clusters/production"], &["production"]);
        check(&["kubernetes/main/flux/cluster"], &["main"]);
        check(&["./kubernetes/flux/cluster"], &["kubernetes"]);
        check(&["./"], &["cluster"]);
        check(
            &["./kubernetes/main/flux", "./kubernetes/test/flux"],
            &["main", "test"],
        );
        check(
            &["./clusters/a/00", "./clusters/b/00", "./clusters/b/01"],
            &["a/00", "b/00", "b/01"],
        );
    }
}
