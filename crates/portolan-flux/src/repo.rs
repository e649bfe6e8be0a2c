//! The front door: a repository opened, its clusters found, ready to be rendered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_budget::Budget;
use portolan_helm::{BadKubeVersion, Capabilities};
use portolan_kustomize::Fetch;
use portolan_object::{KubeVersion, served};
use portolan_secret::KnownSecrets;
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use crate::artifact::{Artifact, ArtifactError};
use crate::cluster::Cluster;
use crate::discover::{self, DiscoverError, Found, Root, UnknownRoot};
use crate::mapped_sources::{MappedSources, SourcePattern};
use crate::outside::{Decrypt, SourceStore};
use crate::profile::Profile;
use crate::session::Session;

/// The Kubernetes that is assumed when nobody says which.
pub const DEFAULT_KUBE_VERSION: &str = "1.34.0";

/// What a caller can choose about a repository.
#[derive(Default)]
pub struct RepoOptions {
    /// The directory that a cluster is bootstrapped from; all clusters are searched for without it.
    pub path: Option<Utf8PathBuf>,
    /// Which Flux to reproduce; the one that the repository installs when not given, else the newest.
    pub profile: Option<Profile>,
    /// Which Kubernetes to assume.
    pub kube_version: Option<String>,
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
    /// The Kubernetes version is none.
    #[error("`{}` is no Kubernetes version", .0.0)]
    KubeVersion(BadKubeVersion),
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
        let capabilities = Arc::new(capabilities(options)?);
        let mut packed = Packed {
            session: &session,
            artifacts: HashMap::new(),
        };
        let paths: Vec<&str> = roots
            .iter()
            .map(|root| root.kustomization.path.as_str())
            .collect();
        let names = names_of(&paths);
        let clusters = roots.into_iter().zip(names).map(|(root, name)| {
            open_cluster(files, (name, root), options, &capabilities, &mut packed)
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
    capabilities: &Arc<Capabilities>,
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
    Ok(Arc::new(Cluster {
        name,
        root: root.kustomization,
        sources,
        mapped,
        fetch: options.fetch.clone(),
        outside: options.outside.clone(),
        decrypt: options.decrypt.clone(),
        secrets: options.secrets.clone(),
        profile: installed.profile(options.profile),
        capabilities: Arc::clone(capabilities),
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

/// What the chosen Kubernetes serves, group versions and kinds.
fn capabilities(options: &RepoOptions) -> Result<Capabilities, OpenError> {
    let version = options
        .kube_version
        .as_deref()
        .unwrap_or(DEFAULT_KUBE_VERSION);
    let mut capabilities = Capabilities::for_version(version).map_err(OpenError::KubeVersion)?;
    let release: KubeVersion = version
        .parse()
        .map_err(|_| OpenError::KubeVersion(BadKubeVersion(version.to_owned())))?;
    capabilities.add_api_versions(
        served(release)
            .filter(|kind| kind.on_by_default)
            .map(|kind| {
                let slash = if kind.group.is_empty() { "" } else { "/" };
                format!("{}{slash}{}/{}", kind.group, kind.version, kind.kind)
            }),
    );
    capabilities.add_api_versions(options.api_versions.iter().cloned());
    Ok(capabilities)
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
