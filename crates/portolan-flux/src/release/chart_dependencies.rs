//! The dependencies that a chart in a tree does not include, found as source-controller finds them.
//!
//! ```text
//! Chart.lock, else Chart.yaml ──▶ missing in charts/ ──▶ file://…: the tree itself
//!                                                   └──▶ anything else: its repository
//! ```

use camino::Utf8PathBuf;
use portolan_helm::{ChartFile, Dependency, Package, lock};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Dialect, Node};

use crate::release::chart::{self, ChartError, Location, ValuesFiles};
use crate::release::chart_places::ChartTree;
use crate::session::fingerprint::Fingerprint;

/// How an address begins that leads to another directory of the tree.
const LOCAL: &str = "file://";

/// The files that list dependencies; the second one is that of older charts.
const LISTS: [&str; 2] = ["Chart.yaml", "requirements.yaml"];

/// A chart of the same tree that another one names.
pub(crate) struct LocalChart {
    directory: Utf8PathBuf,
    files: Vec<ChartFile>,
}

impl LocalChart {
    /// Adds its files to those of the chart that names it.
    pub(crate) fn add_to(&self, tree: &mut ChartTree) {
        tree.add(&self.directory, &self.files);
    }

    /// Adds what decides what it gives.
    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        key.text(self.directory.as_str());
        key.digest(&chart::digest(&self.files));
    }
}

/// Reads the charts of the tree that the chart at a path names.
pub(crate) fn read_local(tree: &dyn Vfs, path: &str) -> Result<Vec<LocalChart>, ChartError> {
    let read = |directory: Utf8PathBuf| {
        let files = chart::read_from_tree(tree, directory.as_str())?;
        Ok(LocalChart { directory, files })
    };
    local_directories(tree, path)
        .into_iter()
        .map(read)
        .collect()
}

/// The directories of the tree whose charts the chart at a path names; what is vendored may be named from elsewhere.
pub(crate) fn local_directories(tree: &dyn Vfs, path: &str) -> Vec<Utf8PathBuf> {
    let directory = chart::in_tree(path);
    let mut found = Vec::new();
    for list in LISTS {
        let Ok(text) = tree.read(&directory.join(list)) else {
            continue;
        };
        if memchr::memmem::find(&text, LOCAL.as_bytes()).is_some() {
            let repositories = named_repositories(&text);
            found.extend(
                repositories
                    .iter()
                    .filter_map(|one| local_directory(path, one)),
            );
        }
    }
    found.retain(|directory| tree.is_directory(directory));
    found.sort();
    found.dedup();
    found
}

/// Puts charts of the tree in where they are missing.
pub(crate) fn add_local(
    package: &mut Package,
    path: &str,
    local: Vec<LocalChart>,
) -> Result<(), ChartError> {
    let mut local = local;
    for wanted in missing(package) {
        let Some(directory) = local_directory(path, &wanted.repository) else {
            continue;
        };
        let Some(at) = local.iter().position(|one| one.directory == directory) else {
            return Err(ChartError::NoDependency {
                name: wanted.name,
                directory,
            });
        };
        let subchart = chart::assemble(local.swap_remove(at).files, directory.as_str())?;
        package.subcharts.push(subchart.into());
        let fetch = lock::Fetch {
            name: wanted.name,
            version: wanted.version,
            repository: wanted.repository,
        };
        if !lock::is_vendored(package, &fetch) {
            return Err(ChartError::WrongDependency {
                name: fetch.name,
                range: fetch.version,
                directory,
            });
        }
    }
    Ok(())
}

/// Where the missing charts lie that must be fetched.
pub(crate) fn remote(package: &Package) -> Vec<Location> {
    let missing = missing(package).into_iter();
    missing
        .filter(|wanted| !wanted.repository.is_empty() && !wanted.repository.starts_with(LOCAL))
        .map(|wanted| Location::Repository {
            url: wanted.repository.into(),
            name: wanted.name.into(),
            version: wanted.version.into(),
            values: ValuesFiles::default(),
        })
        .collect()
}

/// What is listed and not there, by name or alias; as many charts as are listed count as all of them.
fn missing(package: &Package) -> Vec<Dependency> {
    let listed = match &package.lock {
        Some(lock) => &lock.dependencies,
        None => package
            .metadata
            .dependencies
            .as_ref()
            .unwrap_or(const { &Vec::new() }),
    };
    if package.subcharts.len() == listed.len() {
        return Vec::new();
    }
    let is_missing = |wanted: &&Dependency| {
        let name = if wanted.alias.is_empty() {
            &wanted.name
        } else {
            &wanted.alias
        };
        package.subcharts.iter().all(|chart| chart.name() != name)
    };
    listed.iter().filter(is_missing).cloned().collect()
}

/// The addresses in a chart's list of dependencies.
fn named_repositories(list: &[u8]) -> Vec<String> {
    let documents = portolan_yaml::parse_bytes(list, Dialect::Helm).unwrap_or_default();
    let lists = documents
        .iter()
        .filter_map(|document| document.get("dependencies").and_then(Node::as_list));
    let named = lists
        .flatten()
        .filter_map(|one| one.get("repository").and_then(Node::as_str));
    named.map(str::to_owned).collect()
}

/// The directory that an address such as `file://../common` means for the chart at a path.
fn local_directory(path: &str, repository: &str) -> Option<Utf8PathBuf> {
    let written = repository.strip_prefix(LOCAL)?;
    Some(resolve(
        &chart::in_tree(path),
        written.trim_start_matches('/'),
    ))
}
