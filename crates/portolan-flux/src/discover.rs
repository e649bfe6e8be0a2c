//! Where clusters start in a repository.
//!
//! A root is a Kustomization whose file is in the directory that it builds and in no other built directory, as
//! `flux bootstrap` writes it; or what a FluxInstance syncs; or the Kustomization that Flux would be pointed at, in a
//! directory of Kustomizations that nothing builds or that the user names.

mod declared;
mod installed;
mod search;
mod stated_version;
mod variable_path;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_object::Place;
use portolan_vfs::{Vfs, VfsError, clean, resolve};
use portolan_yaml::{Dialect, Node, Text};

use crate::api::{CommonMetadata, Kustomization, NamespacedName, SourceRef};
use crate::session::memo::Memo;
pub(crate) use declared::Mentioned;
use declared::{Declared, Form};
pub(crate) use installed::{Installed, applied};
use search::Search;
pub(crate) use stated_version::{Site, StatedVersion, stated_for};

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
    /// The only clusters start where nobody can tell.
    #[error(
        "no cluster found: {}:{} syncs the path `{}`, and nothing in the repository sets its variable",
        _0.place.file.trim_start_matches('/'), _0.place.at.line, _0.path
    )]
    UnknownPath(UnknownRoot),
    /// There is no Kustomization that could be the first.
    #[error(
        "no cluster found: neither a Kustomization that lies in the directory it builds, nor a FluxInstance with a sync, nor a directory of Kustomizations that nothing else builds"
    )]
    NoRoot {
        /// The files that hold Kustomizations.
        seen: Vec<Utf8PathBuf>,
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

/// The root of the cluster in a directory: the Kustomization there that builds this directory, or the one that
/// `flux bootstrap` would make.
pub(crate) fn root_at(
    files: &dyn Vfs,
    directory: &Utf8Path,
    memo: &Memo<Mentioned>,
) -> Result<Root, DiscoverError> {
    let directory = clean(directory);
    if !files.is_directory(&directory) {
        return Err(DiscoverError::NoDirectory(directory));
    }
    let declared = declared::below(files, &directory, memo)?;
    let own = declared
        .iter()
        .find(|one| one.directory == directory && one.form != Form::Patch);
    Ok(match own {
        Some(own) => Root::declared(own),
        None => Root {
            kustomization: bootstrapped(
                files,
                &directory,
                &declared.iter().map(Arc::as_ref).collect::<Vec<_>>(),
            ),
            file: None,
        },
    })
}

/// A FluxInstance that syncs a path with variables which nothing in the repository sets: where that cluster starts is
/// not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRoot {
    /// The line of the path in the file that declares the instance.
    pub place: Place,
    /// The path as written.
    pub path: Text,
}

/// Where clusters start.
pub(crate) struct Found {
    /// The roots, by directory.
    pub(crate) roots: Vec<Root>,
    /// What may be further roots.
    pub(crate) unknown: Vec<UnknownRoot>,
}

/// The roots of all clusters in a repository.
pub(crate) fn roots(files: &dyn Vfs, memo: &Memo<Mentioned>) -> Result<Found, DiscoverError> {
    let declared = declared::below(files, Utf8Path::new("/"), memo)?;
    let (declared, unknown) = variable_path::resolve_all(files, declared);
    let roots = Search::new(files, &declared, !unknown.is_empty()).roots();
    if let (true, Some(unknown)) = (roots.is_empty(), unknown.first()) {
        return Err(DiscoverError::UnknownPath(unknown.clone()));
    }
    if roots.is_empty() {
        return Err(DiscoverError::NoRoot {
            seen: declared.iter().map(|one| one.file.clone()).collect(),
        });
    }
    Ok(Found { roots, unknown })
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

/// What the repository says of the Flux that a cluster runs.
pub(crate) fn installed(
    files: &dyn Vfs,
    root: &Root,
    memo: &Memo<Mentioned>,
) -> Result<Installed, DiscoverError> {
    let declared = declared::below(files, Utf8Path::new("/"), memo)?;
    Ok(Installed::read(files, root, &declared))
}

/// Every Kubernetes version that files of the repository state.
pub(crate) fn stated_versions(
    files: &dyn Vfs,
    memo: &Memo<Mentioned>,
) -> Result<Vec<Arc<StatedVersion>>, DiscoverError> {
    Ok(declared::stated_versions(files, memo)?)
}

/// The top directory of the repository that a path lies in.
///
/// A git work tree's top ends the search. On the way up, the nearest directory is taken from which most paths of the
/// Kustomizations below lead somewhere, so that a copy without `.git` is recognised too. A cluster's own directory is
/// the top only when no other leads to as much.
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
    let leading = |directory: &Utf8Path| {
        let exists =
            |path: &&Text| machine.is_directory(&resolve(directory, path.trim_start_matches('/')));
        built.iter().filter(exists).count()
    };
    let mut upwards: Vec<&Utf8Path> = path
        .ancestors()
        .take_while(|directory| git_top.is_none_or(|top| directory.starts_with(top)))
        .collect();
    if is_cluster {
        upwards.rotate_left(1);
    }
    let mut best = (0, git_top.unwrap_or(&path));
    for directory in upwards {
        let count = leading(directory);
        if count > best.0 {
            best = (count, directory);
        }
    }
    best.1.to_owned()
}

/// What the Kustomizations in a directory build, where it says something about where the repository begins.
fn built_paths(files: &dyn Vfs, directory: &Utf8Path) -> Vec<Text> {
    let declared = declared::below(files, directory, &Memo::default()).unwrap_or_default();
    let in_repository = declared
        .iter()
        .filter(|one| one.kustomization.source.kind != "ExternalArtifact");
    in_repository
        .map(|one| one.kustomization.path.clone())
        .filter(|path| !matches!(path.trim_matches(['.', '/']), ""))
        .collect()
}

impl Root {
    fn declared(declared: &Declared) -> Self {
        Self {
            kustomization: declared.kustomization.clone(),
            file: Some(declared.file.clone()),
        }
    }
}

/// The Kustomization that `flux bootstrap` makes for a directory. Its source is the one that the Kustomizations there
/// use for what lies in this repository.
fn bootstrapped(files: &dyn Vfs, directory: &Utf8Path, inside: &[&Declared]) -> Kustomization {
    let mut kustomization = bootstrapped_from(Text::from(format!(".{directory}")));
    let is_part = |one: &&&Declared| {
        one.directory != Utf8Path::new("/") && files.is_directory(&one.directory)
    };
    let sources = inside
        .iter()
        .filter(|one| one.form == Form::Whole)
        .filter(is_part)
        .map(|one| &one.kustomization.source)
        .filter(|source| source.kind != "ExternalArtifact");
    let mut sources = sources.peekable();
    let default = kustomization.source.clone();
    let itself = inside
        .iter()
        .find(|one| one.form == Form::Whole && one.kustomization.id == kustomization.id);
    if let Some(itself) = itself {
        // What it builds may define it anew, and then says best where it comes from.
        kustomization.source = itself.kustomization.source.clone();
        return kustomization;
    }
    if let Some(first) = sources.peek().copied()
        && sources.all(|source| source == first)
        && first.id.name != default.id.name
    {
        kustomization.source = first.clone();
        if first.id.namespace.is_empty() {
            kustomization.source.id.namespace = default.id.namespace;
        }
    }
    kustomization
}

/// The Kustomization that `flux bootstrap` makes for a path.
fn bootstrapped_from(path: Text) -> Kustomization {
    let id = NamespacedName::new(FLUX_SYSTEM, FLUX_SYSTEM);
    let source = SourceRef {
        kind: Text::from_static("GitRepository"),
        id: id.clone(),
    };
    synthetic(id, source, path)
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
        let found = roots(&memory, &Memo::default()).unwrap();
        found
            .roots
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
        let root = roots(&memory, &Memo::default()).unwrap().roots.remove(0);
        let installed = installed(&memory, &root, &Memo::default()).unwrap();
        let version = installed
            .version
            .map(|(version, place)| format!("{version} {place}"));
        let expected = "2.8.1 /clusters/a/flux-system/gotk-components.yaml:3";
        assert_eq!(version.as_deref(), Some(expected));
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

    #[test]
    fn what_installs_flux_from_another_source_builds_nothing_here() {
        let install =
            kustomization("flux", "./").replace("name: flux-system}}", "name: manifests}}");
        let files = [
            (
                "/flux/config/cluster.yaml",
                kustomization("cluster", "./flux"),
            ),
            ("/flux/config/flux.yaml", install),
            ("/flux/apps.yaml", kustomization("apps", "./apps")),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db/app")),
        ];
        assert_eq!(names(&files), ["./flux"]);
    }

    #[test]
    fn several_directories_that_nobody_builds_are_several_clusters() {
        let files = [
            ("/clusters/a/apps.yaml", kustomization("apps", "./apps")),
            ("/clusters/b/apps.yaml", kustomization("apps", "./apps")),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db/app")),
        ];
        assert_eq!(names(&files), ["./clusters/a", "./clusters/b"]);
    }

    #[test]
    fn leftovers_that_lead_nowhere_are_no_clusters() {
        let files = [
            ("/flux/cluster/apps.yaml", kustomization("apps", "./apps")),
            (
                "/apps/kustomization.yaml",
                "resources: [db/ks.yaml]\n".to_owned(),
            ),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db/app")),
            ("/apps/old/ks.yaml", kustomization("old", "./apps/old/app")),
        ];
        assert_eq!(names(&files), ["./flux/cluster"]);
    }

    #[test]
    fn an_overlay_that_patches_the_path_of_its_own_kustomization_is_a_root() {
        let patch = |path: &str| {
            format!(
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: flux-system, namespace: flux-system}}\nspec: {{path: {path}}}\n"
            )
        };
        let overlay = |patch: &str| {
            format!(
                "resources: [../base]\npatches: [{{path: ../../apps/flux-system/{patch}.yaml}}]\n"
            )
        };
        let files = [
            ("/clusters/a/kustomization.yaml", overlay("a")),
            ("/clusters/b/kustomization.yaml", overlay("b")),
            (
                "/clusters/base/kustomization.yaml",
                "resources: [../../apps/ks.yaml]\n".to_owned(),
            ),
            ("/apps/ks.yaml", kustomization("apps", "./apps/base")),
            ("/apps/flux-system/a.yaml", patch("./clusters/a")),
            ("/apps/flux-system/b.yaml", patch("./clusters/b")),
        ];
        assert_eq!(names(&files), ["./clusters/a", "./clusters/b"]);
    }

    #[test]
    fn values_of_the_chart_that_makes_an_instance_tell_what_is_synced() {
        let values = "instance:\n  sync: {kind: GitRepository, url: 'https://example.org/x', path: flux/cluster}\n";
        let files = [
            ("/apps/flux-instance/values.yaml", values.to_owned()),
            ("/flux/cluster/ks.yaml", kustomization("apps", "./apps")),
            ("/other/ks.yaml", kustomization("other", "./apps")),
        ];
        assert_eq!(names(&files), ["flux/cluster"]);
    }

    #[test]
    fn a_bootstrapped_directory_has_the_source_that_its_kustomizations_use() {
        let other = kustomization("apps", "./apps").replace("name: flux-system}}", "name: home}}");
        let memory: Memory = [("/flux/apps.yaml", other.as_str()), ("/apps/a.yaml", "")]
            .into_iter()
            .collect();
        let root = roots(&memory, &Memo::default()).unwrap().roots.remove(0);
        assert_eq!(root.kustomization.source.id.to_string(), "flux-system/home");
    }

    #[test]
    fn a_path_with_variables_is_no_root() {
        let values = "instance:\n  sync: {kind: GitRepository, url: 'https://example.org/x', path: 'clusters/${NAME}'}\n";
        let files = [
            ("/apps/flux-instance/values.yaml", values.to_owned()),
            ("/clusters/a/apps.yaml", kustomization("apps", "./apps")),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db/app")),
        ];
        assert_eq!(names(&files), ["./clusters/a"]);
    }

    /// As one FluxInstance in a shared directory has it, whose variable each cluster sets.
    #[test]
    fn variables_in_the_path_of_an_instance_are_taken_from_wherever_they_are_set() {
        let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  sync: {kind: GitRepository, url: 'https://example.org/x', ref: main, path: '${FLUX_PATH}'}\n";
        let settings = |path: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{FLUX_PATH: {path}}}\n"
            )
        };
        let platform = kustomization("platform", "./platform").replace(
            "prune: true",
            "postBuild: {substitute: {FLUX_PATH: ./clusters/c}}, prune: true",
        );
        let files = [
            ("/platform/instance.yaml", instance.to_owned()),
            ("/clusters/a/settings.yaml", settings("./clusters/a")),
            ("/clusters/a/apps.yaml", kustomization("apps", "./apps")),
            ("/clusters/b/settings.yaml", settings("clusters/b")),
            ("/clusters/b/apps.yaml", kustomization("apps", "./apps")),
            ("/clusters/c/platform.yaml", platform),
        ];
        assert_eq!(
            names(&files),
            ["./clusters/a", "clusters/b", "./clusters/c"]
        );
    }

    #[test]
    fn a_path_that_nothing_sets_is_told_and_hides_no_cluster() {
        let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  sync: {kind: GitRepository, url: 'https://example.org/x', ref: main, path: '${FLUX_PATH}'}\n";
        let sync = kustomization("flux-system", "./clusters/a");
        let apps = kustomization("apps", "./apps");
        let memory: Memory = [
            ("/platform/instance.yaml", instance),
            ("/clusters/a/flux-system/gotk-sync.yaml", sync.as_str()),
            ("/clusters/b/apps.yaml", apps.as_str()),
            ("/clusters/c/apps.yaml", apps.as_str()),
            ("/apps/map.yaml", ""),
        ]
        .into_iter()
        .collect();
        let found = roots(&memory, &Memo::default()).unwrap();
        let paths: Vec<_> = found
            .roots
            .iter()
            .map(|root| root.kustomization.path.as_str())
            .collect();
        assert_eq!(paths, ["./clusters/a", "./clusters/b", "./clusters/c"]);
        let [unknown] = found.unknown.as_slice() else {
            panic!("one instance has an unknown path");
        };
        assert_eq!(
            (unknown.place.file.as_str(), unknown.path.as_str()),
            ("/platform/instance.yaml", "${FLUX_PATH}")
        );
    }

    #[test]
    fn a_patch_that_leaves_out_the_path_builds_nothing() {
        let patch = kustomization("defaults", "x").replace("path: x, ", "");
        let files = [
            (
                "/clusters/a/kustomization.yaml",
                "resources: [apps.yaml]\npatches: [{path: ../../patch.yaml}]\n".to_owned(),
            ),
            ("/clusters/a/apps.yaml", kustomization("apps", "./apps")),
            ("/apps/db/ks.yaml", kustomization("db", "./apps/db/app")),
            ("/patch.yaml", patch),
        ];
        assert_eq!(names(&files), ["./clusters/a"]);
    }

    #[test]
    fn an_instance_that_does_not_say_its_name_has_that_of_what_it_leads_to() {
        let values =
            "instance:\n  sync: {kind: GitRepository, url: 'https://example.org/x', path: flux}\n";
        let apps = kustomization("apps", "./apps")
            .replace("namespace: flux-system}", "namespace: gitops}")
            .replace("name: flux-system}}", "name: gitops}}");
        let memory: Memory = [
            ("/apps/flux-instance/values.yaml", values),
            ("/flux/apps.yaml", apps.as_str()),
        ]
        .into_iter()
        .collect();
        let root = roots(&memory, &Memo::default()).unwrap().roots.remove(0);
        assert_eq!(root.kustomization.id.to_string(), "gitops/gitops");
        assert_eq!(root.kustomization.source.id.to_string(), "gitops/gitops");
    }
}
