//! The path of a FluxInstance that contains variables, resolved if the repository sets them.
//!
//! One instance often serves several clusters, each of which sets the variable in a Kustomization or a ConfigMap.
//! Every value that gives a directory of the repository is used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use portolan_envsubst::{Unset, substitute};
use portolan_object::Place;
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node};

use super::UnknownRoot;
use super::declared::Declared;
use crate::kustomization::generate;
use crate::walk::hints::for_each_manifest;

/// How many combinations of values are tried for one path.
const MAX_PATHS: usize = 256;

/// Values by variable.
type Values = BTreeMap<String, BTreeSet<String>>;

/// Puts instances with the paths that their variables lead to in place of those with variables; names those for which
/// there is none, which stay as they are.
pub(super) fn resolve_all(
    files: &dyn Vfs,
    declared: Vec<Arc<Declared>>,
) -> (Vec<Arc<Declared>>, Vec<UnknownRoot>) {
    if !declared.iter().any(|one| one.has_variable_path()) {
        return (declared, Vec::new());
    }
    let values = values(files, &declared);
    let mut resolved = Vec::new();
    let mut unknown = Vec::new();
    for one in declared {
        if !one.has_variable_path() {
            resolved.push(one);
            continue;
        }
        let paths = paths(files, &one, &values);
        if paths.is_empty() {
            unknown.push(UnknownRoot {
                place: Place::new(one.file.as_str(), one.path_at),
                path: one.kustomization.path.clone(),
            });
            resolved.push(one);
            continue;
        }
        let instances = paths.iter().map(|path| Arc::new(one.with_path(path)));
        resolved.extend(instances);
    }
    (resolved, unknown)
}

/// What a path with variables may be, of what exists; nothing when a variable has no value.
fn paths(files: &dyn Vfs, one: &Declared, values: &Values) -> Vec<String> {
    let path = one.kustomization.path.as_str();
    let names = names(path);
    let mut settings: Vec<BTreeMap<&str, &str>> = vec![BTreeMap::new()];
    for name in &names {
        let Some(values) = values.get(name) else {
            return Vec::new();
        };
        let mut more = Vec::new();
        for (setting, value) in settings
            .iter()
            .flat_map(|setting| values.iter().map(move |value| (setting, value)))
            .take(MAX_PATHS)
        {
            let mut setting = setting.clone();
            setting.insert(name, value);
            more.push(setting);
        }
        settings = more;
    }
    let put_in = |setting: &BTreeMap<&str, &str>| {
        substitute(path, Unset::Refused, |name| setting.get(name).copied()).ok()
    };
    let exists = |path: &String| {
        let directory = generate::directory(&one.with_path(path).kustomization);
        directory != Utf8Path::new("/") && files.is_directory(&directory)
    };
    settings.iter().filter_map(put_in).filter(exists).collect()
}

/// The variables of a path.
fn names(path: &str) -> Vec<String> {
    let seen = std::cell::RefCell::new(Vec::new());
    let fill = |name: &str| {
        seen.borrow_mut().push(name.to_owned());
        String::new()
    };
    let _ = substitute(path, Unset::Filled(&fill), |_| None);
    let mut names = seen.into_inner();
    names.sort();
    names.dedup();
    names
}

/// Every value that a Kustomization or a ConfigMap of the repository gives to a variable.
fn values(files: &dyn Vfs, declared: &[Arc<Declared>]) -> Values {
    let mut values = Values::new();
    let mut add = |name: &str, value: &str| {
        let known = values.entry(name.to_owned()).or_default();
        known.insert(value.to_owned());
    };
    let post_builds = declared
        .iter()
        .filter_map(|one| one.kustomization.post_build.as_ref());
    for (name, value) in post_builds.flat_map(|post_build| &post_build.substitute) {
        add(name, value);
    }
    for_each_manifest(files, Utf8Path::new("/"), 0, &mut |path| {
        let Ok(bytes) = files.read(&path) else { return };
        if memchr::memmem::find(&bytes, b"ConfigMap").is_none() {
            return;
        }
        let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Kustomize).unwrap_or_default();
        let maps = documents
            .iter()
            .filter(|document| document.get("kind").and_then(Node::as_str) == Some("ConfigMap"));
        for entry in maps.filter_map(|map| map.get("data")?.as_map()).flatten() {
            if let Some(value) = entry.value.as_str() {
                add(entry.key.as_str(), value);
            }
        }
    });
    values
}
