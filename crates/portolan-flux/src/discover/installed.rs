//! What the repository says about the Flux installation of a cluster: its version, its feature gates, and the root as
//! it is applied when Flux is installed.
//!
//! ```text
//! flux bootstrap ──▶ flux-system/: gotk-components.yaml (version), kustomization.yaml (patches, also over the root)
//! flux-operator  ──▶ FluxInstance: distribution.version, kustomize.patches (also over the root)
//! ```

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_kustomize::{LoadRestrictor, Options, Reorder};
use portolan_object::{Origin, Place};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Dialect, Map, Node, Text, Value};

use super::declared::{self, Declared};
use super::{FLUX_SYSTEM, Root};
use crate::api::{FluxInstance, Kustomization};
use crate::kustomization::generate;
use crate::version::chosen::{Chosen, ChosenBy};
use crate::version::flux_version::FluxVersion;
use crate::version::profile::Profile;
use crate::walk::KUSTOMIZATION_GROUP;
use crate::walk::flux_instance;
use crate::walk::hints::Reach;

/// The feature gate of kustomize-controller that decides whether a variable must be set.
const STRICT_GATE: &str = "StrictPostBuildSubstitutions=";

/// How deep YAML in the text of YAML is read: a patch is one level.
const MAX_TEXT_DEPTH: usize = 4;

/// What the repository says of a cluster's Flux.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Its version or range of versions, and the line that says so.
    pub(crate) version: Option<(FluxVersion, Place)>,
    /// Whether a variable must be set, where a feature gate says so.
    pub(crate) strict_substitution: Option<bool>,
}

impl Installed {
    /// Reads the manifests of `flux bootstrap` beside the root, or a FluxInstance: the one that the root stands for,
    /// else the only one that the repository has.
    pub(crate) fn read(files: &dyn Vfs, root: &Root, declared: &[Arc<Declared>]) -> Self {
        let bootstrapped = Self::bootstrapped(files, root);
        let instance = Self::of_instance(files, root, declared);
        Self {
            version: bootstrapped.version.or(instance.version),
            strict_substitution: bootstrapped
                .strict_substitution
                .or(instance.strict_substitution),
        }
    }

    /// The version that counts: what the user chose, else what the repository says, else the newest known.
    pub(crate) fn flux(&self, chosen: Option<&Chosen<FluxVersion>>) -> Chosen<FluxVersion> {
        if let Some(chosen) = chosen {
            return chosen.clone();
        }
        match &self.version {
            Some((version, place)) => Chosen {
                value: version.clone(),
                by: ChosenBy::Repository(place.clone()),
            },
            None => Chosen::default_of(FluxVersion::newest_known()),
        }
    }

    /// The behaviour of a version with the feature gates of the repository.
    pub(crate) fn profile(&self, version: &FluxVersion) -> Profile {
        let mut profile = version.profile();
        if let Some(strict) = self.strict_substitution {
            profile.strict_substitution = strict;
        }
        profile
    }

    fn bootstrapped(files: &dyn Vfs, root: &Root) -> Self {
        let mut installed = Self::default();
        for directory in places(root) {
            let components = directory.join("gotk-components.yaml");
            if let Ok(text) = files.read(&components) {
                let version = version_of_components(&components, &String::from_utf8_lossy(&text));
                installed.version = installed.version.or(version);
            }
            let gate = gate_in_directory(files, &directory);
            installed.strict_substitution = installed.strict_substitution.or(gate);
        }
        installed
    }

    fn of_instance(files: &dyn Vfs, root: &Root, declared: &[Arc<Declared>]) -> Self {
        if let Some(file) = root.file.as_deref()
            && let Some(document) = instance(files, file)
        {
            let spec = declared::instance_spec(&document);
            return spec.map_or_else(Self::default, |spec| Self::of_spec(spec, file));
        }
        let mut instances = declared.iter().filter_map(|one| one.installed.as_ref());
        let Some(first) = instances.next() else {
            return Self::default();
        };
        // Several clusters with different versions: nothing tells which is this one's.
        if instances.all(|other| first.is_same(other)) {
            first.clone()
        } else {
            Self::default()
        }
    }

    /// Whether both say the same, wherever they say it.
    fn is_same(&self, other: &Self) -> bool {
        let version = |one: &Self| one.version.as_ref().map(|(version, _)| version.clone());
        version(self) == version(other) && self.strict_substitution == other.strict_substitution
    }

    /// What the spec of a FluxInstance in a file says.
    pub(super) fn of_spec(spec: &Node, file: &Utf8Path) -> Self {
        let version = spec.at_path(&["distribution", "version"]);
        let patches = spec.at_path(&["kustomize", "patches"]);
        let place = |node: &Node| Place {
            file: Text::from(file.as_str()),
            at: node.at,
        };
        let version = version.and_then(|node| Some((node.as_str()?.parse().ok()?, place(node))));
        let is_open = |(version, _): &(FluxVersion, Place)| version.is_any_minor();
        // The operator takes the newest version of the range that the artifact with its manifests holds.
        let manifests = spec.at_path(&["distribution", "artifact"]);
        let manifests = manifests.filter(|_| version.as_ref().is_none_or(is_open));
        let held = manifests.and_then(|node| {
            let (_, tag) = node.as_str()?.rsplit_once("/flux-operator-manifests:")?;
            let tag = tag.split('@').next()?;
            Some((FluxVersion::newest_of_operator(tag)?, place(node)))
        });
        Self {
            version: held.or(version),
            strict_substitution: patches.and_then(|patches| gate_in(patches, MAX_TEXT_DEPTH)),
        }
    }
}

/// What `flux bootstrap` writes on top of its manifests.
fn version_of_components(file: &Utf8Path, text: &str) -> Option<(FluxVersion, Place)> {
    let mut lines = (1..).zip(text.lines());
    let (line, version) =
        lines.find_map(|(at, line)| Some((at, line.strip_prefix("# Flux Version:")?)))?;
    let place = Place::line(file.as_str().to_owned(), line);
    Some((version.trim().parse().ok()?, place))
}

/// The root as it is applied when Flux is installed, with the patches of that installation.
///
/// `None` when nothing patches it, or when its own build gives it: what is emitted counts then anyway.
pub(crate) fn applied(files: &dyn Vfs, root: &Root) -> Option<Kustomization> {
    let file = root.file.as_deref()?;
    let directory = generate::directory(&root.kustomization);
    if Reach::of(files, &directory).covers(file) {
        return None;
    }
    let applied = match instance(files, file) {
        Some(document) => by_instance(&document, root)?,
        None => by_bootstrap(files, file.parent()?, root)?,
    };
    Some(Kustomization {
        id: root.kustomization.id.clone(),
        source: root.kustomization.source.clone(),
        path: root.kustomization.path.clone(),
        ..applied
    })
}

/// `flux bootstrap` applies the directory that it wrote, with whatever was added to its kustomization file since.
fn by_bootstrap(files: &dyn Vfs, directory: &Utf8Path, root: &Root) -> Option<Kustomization> {
    let file = read_first(files, &generate::existing(files, directory)?)?;
    let plain = ["apiVersion", "kind", "metadata", "resources"];
    let mut fields = file.as_map()?.iter();
    if fields.all(|field| plain.contains(&field.key.as_str())) {
        return None;
    }
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        ..Options::default()
    };
    let built = portolan_kustomize::build(directory, files, &options).ok()?;
    let mut resources = built.into_resources().into_iter();
    resources.find_map(|resource| read_root(&resource.node, root))
}

fn by_instance(document: &Node, root: &Root) -> Option<Kustomization> {
    let id = &root.kustomization.id;
    let mut metadata = Map::new();
    metadata.insert("name", Node::string("flux"));
    metadata.insert("namespace", Node::string(id.namespace.clone()));
    let mut object = Map::new();
    object.insert("metadata", Node::new(Value::Map(metadata)));
    object.insert("spec", declared::instance_spec(document)?.clone());
    let instance = FluxInstance::read(&Node::new(Value::Map(object))).ok()?;
    instance.patches.as_ref()?;
    let made = flux_instance::expand(&instance, &Origin::default()).ok()?;
    let kustomization = made
        .iter()
        .find(|object| object.gvk().is(KUSTOMIZATION_GROUP, "Kustomization"));
    Kustomization::read(kustomization?.node()).ok()
}

fn read_root(node: &Node, root: &Root) -> Option<Kustomization> {
    let api_version = node.get("apiVersion")?.as_str()?;
    let read = || Kustomization::read(node).ok();
    let is_kustomization = api_version.starts_with(KUSTOMIZATION_GROUP);
    is_kustomization
        .then(read)
        .flatten()
        .filter(|read| read.id == root.kustomization.id)
}

/// The document of a file that declares a FluxInstance.
fn instance(files: &dyn Vfs, file: &Utf8Path) -> Option<Node> {
    let documents = portolan_yaml::parse_bytes(&files.read(file).ok()?, Dialect::Kustomize).ok()?;
    let is_instance = |document: &Node| declared::instance_spec(document).is_some();
    documents.into_iter().find(is_instance)
}

/// The directories that `flux bootstrap` may have written its manifests to.
fn places(root: &Root) -> Vec<Utf8PathBuf> {
    let directory = resolve(
        Utf8Path::new("/"),
        root.kustomization.path.trim_start_matches('/'),
    );
    let beside = root.file.as_deref().and_then(Utf8Path::parent);
    let mut places: Vec<_> = beside.map(Utf8Path::to_owned).into_iter().collect();
    places.extend([directory.join(FLUX_SYSTEM), directory]);
    places.dedup();
    places
}

/// What the manifests and the kustomization file of a directory, and the patch files that it names, say of the gate.
fn gate_in_directory(files: &dyn Vfs, directory: &Utf8Path) -> Option<bool> {
    let mut paths = vec![directory.join("gotk-components.yaml")];
    if let Some(file) = generate::existing(files, directory) {
        let read = read_first(files, &file);
        let patches = read
            .as_ref()
            .and_then(|file| file.get("patches")?.as_list());
        let named = patches.into_iter().flatten();
        let named = named.filter_map(|patch| patch.get("path")?.as_str());
        paths.push(file.clone());
        paths.extend(named.map(|path| resolve(directory, path)));
    }
    // A patch wins over what it patches.
    paths.iter().rev().find_map(|path| {
        let text = files.read(path).ok()?;
        memchr::memmem::find(&text, STRICT_GATE.as_bytes())?;
        let documents = portolan_yaml::parse_bytes(&text, Dialect::Kustomize).ok()?;
        documents
            .iter()
            .rev()
            .find_map(|document| gate_in(document, MAX_TEXT_DEPTH))
    })
}

/// What the arguments in a tree, or in the YAML that its texts hold, say of the gate; the last one counts.
fn gate_in(node: &Node, depth: usize) -> Option<bool> {
    match &node.value {
        Value::Map(map) => {
            let values = map.iter().map(|entry| gate_in(&entry.value, depth));
            values.flatten().last()
        }
        Value::List(list) => list.iter().rev().find_map(|item| gate_in(item, depth)),
        Value::Scalar(scalar) if scalar.text.contains('\n') && depth > 0 => {
            let inner = portolan_yaml::parse(scalar.text.clone(), Dialect::Kustomize).ok()?;
            inner.iter().rev().find_map(|node| gate_in(node, depth - 1))
        }
        Value::Scalar(scalar) => {
            let (_, value) = scalar.text.rsplit_once(STRICT_GATE)?;
            let value = value.split(',').next().unwrap_or(value).trim();
            value.to_ascii_lowercase().parse().ok()
        }
    }
}

fn read_first(files: &dyn Vfs, path: &Utf8Path) -> Option<Node> {
    let bytes = files.read(path).ok()?;
    let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Kustomize).ok()?;
    documents.into_iter().next()
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;
    use crate::discover::roots;
    use crate::session::memo::Memo;

    const SYNC: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {path: ./clusters/a, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}}\n";

    fn instance(version: &str, more: &str) -> String {
        format!(
            "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {{name: flux, namespace: flux-system}}\nspec:\n  distribution: {{version: '{version}', registry: ghcr.io/fluxcd}}\n  sync: {{kind: GitRepository, url: 'https://example.org/x', ref: refs/heads/main, path: clusters/a}}\n{more}"
        )
    }

    fn memory(files: &[(&str, &str)]) -> Memory {
        let apps = SYNC
            .replace("name: flux-system, n", "name: apps, n")
            .replace("./clusters/a", "./apps");
        let mut memory: Memory = files.iter().copied().collect();
        memory.insert("/clusters/a/apps.yaml", apps);
        memory
    }

    fn profile(files: &[(&str, &str)]) -> Profile {
        let memory = memory(files);
        let memo = Memo::default();
        let found = roots(&memory, &memo).unwrap();
        let declared = declared::below(&memory, Utf8Path::new("/"), &memo).unwrap();
        let installed = Installed::read(&memory, &found.roots[0], &declared);
        installed.profile(&installed.flux(None).value)
    }

    #[test]
    fn an_instance_of_an_older_flux_does_not_substitute_strictly() {
        let old = instance("2.5.1", "");
        assert!(!profile(&[("/clusters/a/flux.yaml", &old)]).strict_substitution);
        let newest = instance("2.x", "");
        assert!(profile(&[("/clusters/a/flux.yaml", &newest)]).strict_substitution);
    }

    #[test]
    fn an_instance_has_no_newer_flux_than_its_manifests() {
        let strict = |version: &str, tag: &str| {
            let distribution = format!(
                "{version}artifact: 'oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests:{tag}', registry: x"
            );
            let instance = instance("2.x", "")
                .replace("version: '2.x', registry: ghcr.io/fluxcd", &distribution);
            profile(&[("/clusters/a/flux.yaml", &instance)]).strict_substitution
        };
        assert!(!strict("version: '2.x', ", "v0.46.0"));
        assert!(!strict("", "v0.46.0@sha256:abc"));
        assert!(strict("version: '2.x', ", "v0.53.0"));
        assert!(strict("version: '2.x', ", "latest"));
        assert!(strict("version: '2.9.x', ", "v0.46.0"));
    }

    #[test]
    fn the_only_instance_counts_also_when_the_root_is_declared_elsewhere() {
        let old = instance("2.5.1", "").replace("path: clusters/a", "path: '${FLUX_PATH}'");
        let files = [
            ("/clusters/a/flux-system/gotk-sync.yaml", SYNC),
            ("/apps/flux/instance.yaml", old.as_str()),
        ];
        assert!(!profile(&files).strict_substitution);
    }

    #[test]
    fn a_feature_gate_in_a_patch_of_an_instance_counts() {
        let patches = "  kustomize:\n    patches:\n    - target: {kind: Deployment, name: kustomize-controller}\n      patch: |\n        # not --feature-gates=StrictPostBuildSubstitutions=true\n        - op: add\n          path: /spec/template/spec/containers/0/args/-\n          value: --feature-gates=StrictPostBuildSubstitutions=false,Other=true\n";
        let gated = instance("2.9.1", patches);
        let profile = profile(&[("/clusters/a/flux.yaml", &gated)]);
        assert!(!profile.strict_substitution && profile.helm4);
    }

    #[test]
    fn a_feature_gate_in_a_patch_file_of_the_bootstrap_counts() {
        let files = [
            ("/clusters/a/flux-system/gotk-sync.yaml", SYNC),
            (
                "/clusters/a/flux-system/gotk-components.yaml",
                "---\n# Flux Version: v2.9.0\n",
            ),
            (
                "/clusters/a/flux-system/kustomization.yaml",
                "resources: [gotk-components.yaml, gotk-sync.yaml]\npatches: [{path: gates.yaml, target: {kind: Deployment}}]\n",
            ),
            (
                "/clusters/a/flux-system/gates.yaml",
                "- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: --feature-gates=StrictPostBuildSubstitutions=false\n",
            ),
        ];
        assert!(!profile(&files).strict_substitution);
    }

    /// The root's own kustomization file does not list the directory, so that nothing else would bring the patch.
    #[test]
    fn patches_of_the_bootstrap_reach_a_root_that_its_own_build_leaves_out() {
        let memory = memory(&[
            ("/clusters/a/kustomization.yaml", "resources: [apps.yaml]\n"),
            ("/clusters/a/flux-system/gotk-sync.yaml", SYNC),
            (
                "/clusters/a/flux-system/kustomization.yaml",
                "resources: [gotk-sync.yaml]\npatches:\n- target: {kind: Kustomization}\n  patch: |\n    - op: add\n      path: /spec/decryption\n      value: {provider: sops}\n",
            ),
        ]);
        let found = super::super::root_at(&memory, Utf8Path::new("/clusters/a"), &Memo::default());
        let mut root = found.unwrap();
        root.file = Some("/clusters/a/flux-system/gotk-sync.yaml".into());
        let decryption = applied(&memory, &root).unwrap().decryption;
        assert_eq!(decryption.unwrap().provider, "sops");
    }

    #[test]
    fn patches_of_an_instance_reach_a_root_that_its_own_build_leaves_out() {
        let patches = "  kustomize:\n    patches:\n    - target: {kind: Kustomization}\n      patch: |\n        - op: add\n          path: /spec/decryption\n          value: {provider: sops}\n";
        let patched = instance("2.x", patches);
        let memory = memory(&[("/bootstrap/flux.yaml", &patched)]);
        let found = roots(&memory, &Memo::default()).unwrap();
        let decryption = applied(&memory, &found.roots[0]).unwrap().decryption;
        assert_eq!(decryption.unwrap().provider, "sops");
    }
}
