//! Every Kustomization and FluxInstance in a repository's files, with the fields that say where a cluster starts.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{DirEntry, Vfs, VfsError};
use portolan_yaml::{Dialect, Node, Position, Text};

use super::installed::Installed;
use super::stated_version::{self, StatedVersion};
use super::{FLUX_SYSTEM, bootstrapped_from, synthetic};
use crate::api::{Kustomization, NamespacedName, SourceRef};
use crate::kustomization::generate;
use crate::session::memo::Memo;

/// How deep directories are searched.
const MAX_DEPTH: usize = 64;

/// What a file says about clusters.
#[derive(Debug, Clone)]
pub(crate) enum Mentioned {
    /// Where one starts.
    Root(Arc<Declared>),
    /// Which Kubernetes it runs.
    Kubernetes(Arc<StatedVersion>),
}

/// A Kustomization or FluxInstance that stands in a file.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(super) file: Utf8PathBuf,
    pub(super) kustomization: Kustomization,
    /// The directory that it builds.
    pub(super) directory: Utf8PathBuf,
    pub(super) form: Form,
    /// Where the path of an instance stands in the file.
    pub(super) path_at: Position,
    /// The Flux that an instance installs.
    pub(super) installed: Option<Installed>,
}

/// How much of a Kustomization a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Whole,
    /// A patch for one: it names a path and leaves out what is required.
    Patch,
    /// A FluxInstance, or the values of the chart that makes one: Flux makes the Kustomization of its `sync`.
    Instance,
    /// Such values that do not say what that Kustomization is called.
    NamelessInstance,
}

/// Everything declared in files below a directory, by file; files that are no YAML declare nothing.
pub(super) fn below(
    files: &dyn Vfs,
    directory: &Utf8Path,
    memo: &Memo<Mentioned>,
) -> Result<Vec<Arc<Declared>>, VfsError> {
    let mut found = Vec::new();
    search(files, directory, MAX_DEPTH, memo, &mut found)?;
    let declared = found.into_iter().filter_map(|mentioned| match mentioned {
        Mentioned::Root(declared) => Some(declared),
        Mentioned::Kubernetes(_) => None,
    });
    let mut declared: Vec<_> = declared.collect();
    declared.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(declared)
}

/// Every Kubernetes version that files of a repository state, by file.
pub(super) fn stated_versions(
    files: &dyn Vfs,
    memo: &Memo<Mentioned>,
) -> Result<Vec<Arc<StatedVersion>>, VfsError> {
    let mut found = Vec::new();
    search(files, Utf8Path::new("/"), MAX_DEPTH, memo, &mut found)?;
    let stated = found.into_iter().filter_map(|mentioned| match mentioned {
        Mentioned::Kubernetes(stated) => Some(stated),
        Mentioned::Root(_) => None,
    });
    let mut stated: Vec<_> = stated.collect();
    stated.sort_by(|a, b| a.place.file.cmp(&b.place.file));
    Ok(stated)
}

fn search(
    files: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    memo: &Memo<Mentioned>,
    found: &mut Vec<Mentioned>,
) -> Result<(), VfsError> {
    memo.extend(found, directory, files.stamp(directory), |found| {
        for entry in files.list(directory)? {
            let path = directory.join(&entry.name);
            if entry.is_directory && is_searched(&entry) && depth > 0 {
                search(files, &path, depth - 1, memo, found)?;
            } else if !entry.is_directory && matches!(path.extension(), Some("yaml" | "yml")) {
                read_file(files, &path, found);
            }
        }
        Ok(())
    })
}

fn is_searched(entry: &DirEntry) -> bool {
    !entry.is_symlink && !entry.name.starts_with('.')
}

fn read_file(files: &dyn Vfs, path: &Utf8Path, found: &mut Vec<Mentioned>) {
    let Ok(bytes) = files.read(path) else { return };
    let mentions = |word: &str| memchr::memmem::find(&bytes, word.as_bytes()).is_some();
    // Most files are something else; looking costs less than parsing.
    let may_declare = mentions("kustomize.toolkit.fluxcd.io/")
        || mentions("fluxcd.controlplane.io/")
        || (mentions("instance:") && mentions("sync:"));
    let may_state = stated_version::may_state(path, &bytes);
    if !may_declare && !may_state {
        return;
    }
    let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Kustomize).unwrap_or_default();
    for document in &documents {
        let declared = Declared::read(path, document).filter(|_| may_declare);
        found.extend(declared.map(Arc::new).map(Mentioned::Root));
        let stated = StatedVersion::read(path, document).filter(|_| may_state);
        found.extend(stated.map(Arc::new).map(Mentioned::Kubernetes));
    }
}

impl Declared {
    fn read(file: &Utf8Path, document: &Node) -> Option<Self> {
        let instance = instance_spec(document);
        let (kustomization, form) = match instance {
            Some(spec) => synced(document, spec)?,
            None => read_kustomization(document)?,
        };
        let path = instance.and_then(|spec| spec.at_path(&["sync", "path"]));
        let path_at = path.map(|node| node.at);
        Some(Self {
            file: file.to_owned(),
            directory: generate::directory(&kustomization),
            kustomization,
            form,
            path_at: path_at.unwrap_or_default(),
            installed: instance.map(|spec| Installed::of_spec(spec, file)),
        })
    }

    /// The same with another path.
    pub(super) fn with_path(&self, path: &str) -> Self {
        let mut kustomization = self.kustomization.clone();
        kustomization.path = Text::from(path);
        Self {
            file: self.file.clone(),
            directory: generate::directory(&kustomization),
            kustomization,
            form: self.form,
            path_at: self.path_at,
            installed: self.installed.clone(),
        }
    }

    /// Whether it is an instance whose path has variables.
    pub(super) fn has_variable_path(&self) -> bool {
        matches!(self.form, Form::Instance | Form::NamelessInstance)
            && self.kustomization.path.contains("${")
    }

    /// Whether it says itself where it is to be applied from, so that it cannot be a part of something else. A path
    /// with variables does not say it.
    pub(super) fn is_instance(&self) -> bool {
        matches!(self.form, Form::Instance | Form::NamelessInstance) && !self.has_variable_path()
    }
}

fn read_kustomization(document: &Node) -> Option<(Kustomization, Form)> {
    let api_version = document.get("apiVersion")?.as_str()?;
    let is_kustomization = api_version.starts_with("kustomize.toolkit.fluxcd.io/")
        && document.get("kind")?.as_str()? == "Kustomization";
    if !is_kustomization {
        return None;
    }
    if let Ok(whole) = Kustomization::read(document) {
        return Some((whole, Form::Whole));
    }
    let text = |path: &[&str]| document.at_path(path).and_then(Node::as_str);
    let mut patch = bootstrapped_from(Text::from(text(&["spec", "path"])?));
    if let Some(name) = text(&["metadata", "name"]) {
        patch.id.name = Text::from(name);
    }
    Some((patch, Form::Patch))
}

/// The spec of a FluxInstance: of the object itself, or in the values that a release or a values file gives to the
/// chart `flux-instance`.
pub(super) fn instance_spec(document: &Node) -> Option<&Node> {
    let text = |key: &str| document.get(key).and_then(Node::as_str);
    match (text("apiVersion"), text("kind")) {
        (Some(version), Some("FluxInstance")) if version.starts_with("fluxcd.controlplane.io/") => {
            document.get("spec")
        }
        (Some(_), Some("HelmRelease")) => document.at_path(&["spec", "values", "instance"]),
        (None, None) => document.get("instance"),
        _ => None,
    }
}

/// The Kustomization that a FluxInstance makes for its `spec.sync`.
fn synced(document: &Node, spec: &Node) -> Option<(Kustomization, Form)> {
    let sync = spec.get("sync")?;
    let text = |key: &str| sync.get(key).and_then(Node::as_str).map(Text::from);
    // The release may stand in another namespace than the instance, a values file in none.
    let is_object = document.get("kind").and_then(Node::as_str) == Some("FluxInstance");
    let namespace = document
        .at_path(&["metadata", "namespace"])
        .and_then(Node::as_str)
        .filter(|_| is_object)
        .unwrap_or(FLUX_SYSTEM);
    let form = match (is_object, text("name")) {
        (false, None) => Form::NamelessInstance,
        _ => Form::Instance,
    };
    let name = text("name").unwrap_or_else(|| Text::from(namespace));
    let id = NamespacedName {
        namespace: Text::from(namespace),
        name,
    };
    if !is_object {
        // Other charts may have values of these names; only this one has an address among them.
        text("url")?;
    }
    let kind = text("kind").unwrap_or(Text::from_static("GitRepository"));
    let source = SourceRef {
        kind,
        id: id.clone(),
    };
    let path = text("path").unwrap_or_default();
    Some((synthetic(id, source, path), form))
}
