//! Where clusters start in a repository.
//!
//! A root is a Kustomization that lies in the directory it builds and that no other one builds, as `flux bootstrap`
//! writes it; or what a FluxInstance syncs; or, in a directory that the user names, the one Flux would be pointed at.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{DirEntry, Vfs, VfsError, clean, resolve};
use portolan_yaml::{Dialect, Node, Text};

use crate::api::{CommonMetadata, Kustomization, NamespacedName, SourceRef};
use crate::memo::Memo;

/// How deep directories are searched.
const MAX_DEPTH: usize = 64;

/// The name that Flux gives to what it bootstraps.
const FLUX_SYSTEM: &str = "flux-system";

/// Why no cluster was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// A directory or file cannot be read.
    #[error("cannot search the repository")]
    Read(#[from] VfsError),
    /// The directory that the user named is not there.
    #[error("`{0}` is no directory of the repository")]
    NoDirectory(Utf8PathBuf),
    /// There is no Kustomization that could be the first.
    #[error("no cluster found: no Kustomization lies in the directory that it builds")]
    NoRoot {
        /// Directories that hold Kustomizations nobody builds.
        candidates: Vec<Utf8PathBuf>,
    },
}

/// A cluster's beginning.
#[derive(Debug, Clone)]
pub struct Root {
    /// The Kustomization everything starts from.
    pub kustomization: Kustomization,
    /// The file that declares it; none when Flux would make it.
    pub file: Option<Utf8PathBuf>,
}

/// A Kustomization or FluxInstance that stands in a file.
#[derive(Debug)]
pub(crate) struct Declared {
    file: Utf8PathBuf,
    kustomization: Kustomization,
    directory: Utf8PathBuf,
    is_instance: bool,
}

/// The root of the cluster in a directory: the Kustomization there that builds this directory, or the one that
/// `flux bootstrap` would make.
pub(crate) fn root_at(
    files: &dyn Vfs,
    directory: &Utf8Path,
    memo: &Memo<Arc<Declared>>,
) -> Result<Root, DiscoverError> {
    let directory = clean(directory);
    if !files.is_directory(&directory) {
        return Err(DiscoverError::NoDirectory(directory));
    }
    let declared = declared_below(files, &directory, memo)?;
    let own = declared
        .iter()
        .find(|declared| declared.directory == directory);
    Ok(own.map_or_else(
        || Root {
            kustomization: bootstrapped(&directory),
            file: None,
        },
        |own| own.root(),
    ))
}

/// The roots of all clusters in a repository, by directory.
pub(crate) fn roots(
    files: &dyn Vfs,
    memo: &Memo<Arc<Declared>>,
) -> Result<Vec<Root>, DiscoverError> {
    let declared = declared_below(files, Utf8Path::new("/"), memo)?;
    let is_built_by_another = |one: &Declared| {
        let builds_it = |other: &Arc<Declared>| {
            other.kustomization.id != one.kustomization.id && one.file.starts_with(&other.directory)
        };
        declared.iter().any(builds_it)
    };
    let orphans: Vec<_> = declared
        .iter()
        .map(|one| !is_built_by_another(one))
        .collect();
    let mut candidates = Vec::new();
    let mut roots = Vec::new();
    for (one, is_orphan) in declared.into_iter().zip(orphans) {
        if one.is_instance || (is_orphan && one.file.starts_with(&one.directory)) {
            roots.push(one);
        } else if is_orphan {
            candidates.extend(one.file.parent().map(Utf8Path::to_owned));
        }
    }
    roots.sort_by(|a, b| a.directory.cmp(&b.directory));
    roots.dedup_by(|a, b| a.directory == b.directory);
    candidates.sort();
    candidates.dedup();
    match (roots.is_empty(), candidates.as_slice()) {
        (false, _) => Ok(roots.iter().map(|one| one.root()).collect()),
        (true, [only]) => Ok(vec![Root {
            kustomization: bootstrapped(only),
            file: None,
        }]),
        (true, _) => Err(DiscoverError::NoRoot { candidates }),
    }
}

/// The `spec.ignore` of the root's source, if the repository declares that source beside the root.
pub(crate) fn declared_ignore(files: &dyn Vfs, root: &Root) -> Option<String> {
    let source = &root.kustomization.source;
    let documents =
        portolan_yaml::parse_bytes(&files.read(root.file.as_deref()?).ok()?, Dialect::Kustomize)
            .ok()?;
    let text =
        |node: &Node, path: &[&str]| node.at_path(path).and_then(Node::as_str).map(str::to_owned);
    let is_source = |node: &&Node| {
        text(node, &["kind"]).as_deref() == Some(&source.kind)
            && text(node, &["metadata", "name"]).as_deref() == Some(&source.id.name)
    };
    text(documents.iter().find(is_source)?, &["spec", "ignore"])
}

/// The version of Flux that a cluster installs, if the repository says so beside the cluster's root: in the manifests
/// of `flux bootstrap`, or in a FluxInstance.
pub(crate) fn installed_version(files: &dyn Vfs, root: &Root) -> Option<String> {
    let directory = resolve(
        Utf8Path::new("/"),
        root.kustomization.path.trim_start_matches('/'),
    );
    let beside = root.file.as_deref().and_then(Utf8Path::parent);
    let places = [
        beside.map(Utf8Path::to_owned),
        Some(directory.join(FLUX_SYSTEM)),
        Some(directory),
    ];
    let manifests = places.iter().flatten().find_map(|directory| {
        let text = files.read(&directory.join("gotk-components.yaml")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("# Flux Version:"));
        line.map(|version| version.trim().to_owned())
    });
    manifests.or_else(|| {
        let text = files.read(root.file.as_deref()?).ok()?;
        let documents = portolan_yaml::parse_bytes(&text, Dialect::Kustomize).ok()?;
        documents.iter().find_map(|document| {
            let version = document.at_path(&["spec", "distribution", "version"]);
            version.and_then(Node::as_str).map(str::to_owned)
        })
    })
}

/// The top directory of the repository that a path lies in.
///
/// A git work tree's top ends the search. On the way up, the nearest directory is taken from which the paths of the
/// Kustomizations below lead somewhere, so that a copy without `.git` is recognised too. A cluster's own directory is
/// never the top.
pub fn repository_root(machine: &dyn Vfs, path: &Utf8Path, is_cluster: bool) -> Utf8PathBuf {
    let path = clean(path);
    let is_git = |directory: &&Utf8Path| {
        machine
            .kind(&directory.join(".git"))
            .is_ok_and(|kind| kind.is_some())
    };
    let git_top = path.ancestors().find(is_git);
    if git_top == Some(&path) {
        return path;
    }
    let built = built_paths(machine, &path);
    let leads_somewhere = |directory: &&Utf8Path| {
        built
            .iter()
            .any(|below| machine.is_directory(&resolve(directory, below.trim_start_matches('/'))))
    };
    let above = path
        .ancestors()
        .take_while(|directory| git_top.is_none_or(|top| directory.starts_with(top)));
    let found = above
        .skip(usize::from(is_cluster))
        .find(leads_somewhere)
        .or(git_top);
    found.unwrap_or(&path).to_owned()
}

/// What the Kustomizations in a directory build, where it says something about where the repository begins.
fn built_paths(files: &dyn Vfs, directory: &Utf8Path) -> Vec<Text> {
    let declared = declared_below(files, directory, &Memo::default()).unwrap_or_default();
    let paths = declared.iter().map(|one| one.kustomization.path.clone());
    paths
        .filter(|path| !matches!(path.trim_matches(['.', '/']), ""))
        .collect()
}

impl Declared {
    fn read(file: &Utf8Path, document: &Node) -> Option<Self> {
        let api_version = document.get("apiVersion")?.as_str()?;
        let kind = document.get("kind")?.as_str()?;
        let is_instance =
            api_version.starts_with("fluxcd.controlplane.io/") && kind == "FluxInstance";
        let kustomization = if is_instance {
            synced(document)?
        } else if api_version.starts_with("kustomize.toolkit.fluxcd.io/") && kind == "Kustomization"
        {
            Kustomization::read(document).ok()?
        } else {
            return None;
        };
        let directory = resolve(
            Utf8Path::new("/"),
            kustomization.path.trim_start_matches('/'),
        );
        Some(Self {
            file: file.to_owned(),
            kustomization,
            directory,
            is_instance,
        })
    }

    fn root(&self) -> Root {
        Root {
            kustomization: self.kustomization.clone(),
            file: Some(self.file.clone()),
        }
    }
}

/// The Kustomization that a FluxInstance makes for its `spec.sync`.
fn synced(instance: &Node) -> Option<Kustomization> {
    let sync = instance.at_path(&["spec", "sync"])?;
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).map(Text::from);
    let namespace = instance
        .at_path(&["metadata", "namespace"])
        .and_then(Node::as_str)
        .unwrap_or(FLUX_SYSTEM);
    let name = text(sync, "name").unwrap_or_else(|| Text::from(namespace));
    let id = NamespacedName {
        namespace: Text::from(namespace),
        name,
    };
    let kind = text(sync, "kind").unwrap_or(Text::from_static("GitRepository"));
    Some(synthetic(
        id.clone(),
        SourceRef { kind, id },
        text(sync, "path").unwrap_or_default(),
    ))
}

/// The Kustomization that `flux bootstrap` makes for a directory.
fn bootstrapped(directory: &Utf8Path) -> Kustomization {
    let id = NamespacedName::new(FLUX_SYSTEM, FLUX_SYSTEM);
    let source = SourceRef {
        kind: Text::from_static("GitRepository"),
        id: id.clone(),
    };
    synthetic(id, source, Text::from(format!(".{directory}")))
}

fn synthetic(id: NamespacedName, source: SourceRef, path: Text) -> Kustomization {
    Kustomization {
        id,
        path,
        source,
        suspend: false,
        prune: true,
        depends_on: Vec::new(),
        target_namespace: None,
        name_prefix: None,
        name_suffix: None,
        components: Vec::new(),
        ignore_missing_components: false,
        patches: None,
        patches_strategic_merge: None,
        patches_json6902: None,
        images: None,
        build_metadata: None,
        post_build: None,
        common_metadata: CommonMetadata::default(),
        decryption: None,
    }
}

/// Every Kustomization and FluxInstance in files below a directory; files that are no YAML have none.
fn declared_below(
    files: &dyn Vfs,
    directory: &Utf8Path,
    memo: &Memo<Arc<Declared>>,
) -> Result<Vec<Arc<Declared>>, DiscoverError> {
    let mut found = Vec::new();
    search(files, directory, MAX_DEPTH, memo, &mut found)?;
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

fn search(
    files: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    memo: &Memo<Arc<Declared>>,
    found: &mut Vec<Arc<Declared>>,
) -> Result<(), DiscoverError> {
    memo.extend(found, directory, files.stamp(directory), |found| {
        for entry in files.list(directory)? {
            let path = directory.join(&entry.name);
            if entry.is_directory && is_searched(&entry) && depth > 0 {
                search(files, &path, depth - 1, memo, found)?;
            } else if !entry.is_directory && matches!(path.extension(), Some("yaml" | "yml")) {
                read_declared(files, &path, found);
            }
        }
        Ok(())
    })
}

fn is_searched(entry: &DirEntry) -> bool {
    !entry.is_symlink && !entry.name.starts_with('.')
}

fn read_declared(files: &dyn Vfs, path: &Utf8Path, found: &mut Vec<Arc<Declared>>) {
    let Ok(bytes) = files.read(path) else { return };
    let mentions = |group: &str| memchr::memmem::find(&bytes, group.as_bytes()).is_some();
    // Most files are something else; looking costs less than parsing.
    if !mentions("kustomize.toolkit.fluxcd.io/") && !mentions("fluxcd.controlplane.io/") {
        return;
    }
    let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Kustomize).unwrap_or_default();
    found.extend(
        documents
            .iter()
            .filter_map(|document| Declared::read(path, document))
            .map(Arc::new),
    );
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    fn kustomization(name: &str, path: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec: {{path: {path}, prune: true, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
        )
    }

    fn names(files: &[(&str, String)]) -> Vec<String> {
        let memory: Memory = files
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        roots(&memory, &Memo::default())
            .unwrap()
            .iter()
            .map(|root| root.kustomization.path.to_string())
            .collect()
    }

    #[test]
    fn a_kustomization_in_its_own_directory_is_a_root() {
        let files = [
            (
                "/clusters/a/flux-system/gotk-sync.yaml",
                kustomization("flux-system", "./clusters/a"),
            ),
            (
                "/clusters/b/flux-system/gotk-sync.yaml",
                kustomization("flux-system", "./clusters/b"),
            ),
            ("/clusters/a/apps.yaml", kustomization("apps", "./apps")),
        ];
        assert_eq!(names(&files), ["./clusters/a", "./clusters/b"]);
    }

    #[test]
    fn the_version_of_flux_is_that_of_its_manifests() {
        let sync = kustomization("flux-system", "./clusters/a");
        let memory: Memory = [
            ("/clusters/a/flux-system/gotk-sync.yaml", sync.as_str()),
            (
                "/clusters/a/flux-system/gotk-components.yaml",
                "---\n# This manifest was generated by flux. DO NOT EDIT.\n# Flux Version: v2.8.1\n",
            ),
        ]
        .into_iter()
        .collect();
        let root = roots(&memory, &Memo::default()).unwrap().remove(0);
        let version = installed_version(&memory, &root);
        assert_eq!(version.as_deref(), Some("v2.8.1"));
    }

    #[test]
    fn one_that_another_builds_is_no_root_even_in_its_own_directory() {
        let files = [
            ("/flux/root.yaml", kustomization("root", "./flux")),
            ("/flux/apps.yaml", kustomization("apps", "./apps")),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db")),
        ];
        assert_eq!(names(&files), ["./flux"]);
    }

    #[test]
    fn the_only_directory_that_nobody_builds_is_taken_as_bootstrapped() {
        let files = [("/flux/cluster/apps.yaml", kustomization("apps", "./apps"))];
        assert_eq!(names(&files), ["./flux/cluster"]);
    }
}
