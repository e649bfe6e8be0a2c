//! Real repositories: every object, every failure and all values as Flux's own libraries give them.
//!
//! The expectations were made by the Go libraries of Flux 2.9; they lie beside the checkout, not in it.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::Utf8Path;
use portolan_engine::{Journal, JournalOptions, Limits, Report, Run, Unit};
use portolan_flux::{
    Cluster, Depth, Pair, Rendering, Repo, RepoOptions, Session, Walked, cluster_unit, pair_unit,
    problems, release_name, release_namespace, unskipped_pair_unit,
};
use portolan_helm::values::Tree;
use portolan_object::{canonical_json, holds_placeholder, placeholder};
use portolan_vfs::{Disk, Frozen, Lineage, Memory, Vfs};
use portolan_yaml::{Dialect, parse_one};
use serde_json::Value;

/// The repository, the directory its cluster starts from, and the expectations.
const CLUSTERS: [(&str, &str, &str); 4] = [
    (
        "buroa+k8s-gitops",
        "/kubernetes/flux/cluster",
        "buroa+k8s-gitops/cluster",
    ),
    (
        "onedr0p+home-ops",
        "/kubernetes/flux/cluster",
        "onedr0p+home-ops/cluster",
    ),
    (
        "truxnell+home-cluster",
        "/kubernetes/hegira/flux",
        "truxnell+home-cluster/hegira",
    ),
    (
        "truxnell+home-cluster",
        "/kubernetes/helios/flux",
        "truxnell+home-cluster/helios",
    ),
];

fn corpus() -> Option<PathBuf> {
    let expected = portolan_testbed::corpus("flux-expected")?;
    expected.parent().map(Path::to_owned)
}

fn render(repository: &Path, root: &str) -> (Arc<Rendering>, Report) {
    let disk = Disk::open(Utf8Path::from_path(repository).unwrap()).unwrap();
    let files: Arc<dyn Vfs> = Arc::new(disk);
    let options = RepoOptions {
        path: Some(root.into()),
        ..Default::default()
    };
    let repo = Repo::open(&files, &options).unwrap();
    let cluster = Arc::clone(&repo.clusters()[0]);
    let report = finish(cluster_unit(cluster, Depth::Releases));
    (report.output::<Rendering>(&"unit".into()).unwrap(), report)
}

/// Runs a unit and all that it adds.
fn finish<T>(unit: Unit<T>) -> Report {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let run = Run::new(
            Limits::default(),
            Journal::in_memory(JournalOptions::default()),
        );
        run.add("unit", &[], unit);
        run.finish().await
    })
}

/// Each Kustomization's objects in order, as JSON.
fn expected_objects(directory: &Path) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(directory.join("objects.yaml")).unwrap();
    let mut objects = BTreeMap::<String, Vec<String>>::new();
    for document in text.split("---\n# Kustomization ").skip(1) {
        let (id, yaml) = document.split_once('\n').unwrap();
        let node = parse_one(yaml, Dialect::Kustomize).unwrap();
        objects
            .entry(id.to_owned())
            .or_default()
            .push(canonical_json(&node).unwrap());
    }
    objects
}

fn index(directory: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join("index.json")).unwrap()).unwrap()
}

#[test]
fn every_object_of_real_repositories_is_as_flux_builds_it() {
    let Some(corpus) = corpus() else { return };
    for (repository, root, expected) in CLUSTERS {
        let (rendering, _) = render(&corpus.join("flux").join(repository), root);
        let expected = expected_objects(&corpus.join("flux-expected").join(expected));
        let mut built = BTreeMap::new();
        for (id, walked) in &rendering.walk.kustomizations {
            let objects = walked.built.iter().flat_map(|built| built.objects.iter());
            // Where nothing stands in the place of a placeholder, an object may have no name, and then is none.
            let named = objects.filter(|object| !without_words(object.name()).is_empty());
            let objects: Vec<_> = named
                .map(|object| canonical_json(object.node()).unwrap())
                .collect();
            if !objects.is_empty() {
                built.insert(id.to_string(), objects);
            }
        }
        assert_eq!(
            built.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{root}"
        );
        for (id, objects) in &expected {
            for (ours, theirs) in built[id].iter().zip(objects) {
                if ours == theirs {
                    continue;
                }
                let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                let difference = difference(&read(ours), &read(theirs), "");
                assert_eq!(difference, None, "{root} {id}: {theirs}");
                assert!(holds_placeholder(ours), "{root} {id}: {ours}\n{theirs}");
            }
            assert_eq!(built[id].len(), objects.len(), "{root} {id}");
        }
    }
}

#[test]
fn the_same_kustomizations_fail_and_name_the_same_missing_data() {
    let Some(corpus) = corpus() else { return };
    for (repository, root, expected) in CLUSTERS {
        let directory = corpus.join("flux").join(repository);
        let (rendering, report) = render(&directory, root);
        let index = index(&corpus.join("flux-expected").join(expected));
        let files = Disk::open(Utf8Path::from_path(&directory).unwrap()).unwrap();
        let problems = problems(&rendering, &report, &files);
        for entry in index["kustomizations"].as_array().unwrap() {
            let id = entry["id"].as_str().unwrap();
            let told = problems
                .iter()
                .any(|problem| problem.subject() == format!("Kustomization {id}"));
            assert_eq!(told, entry["status"] != "ok", "{root} {id}");
            let (_, walked) = rendering
                .walk
                .kustomizations
                .iter()
                .find(|(other, _)| other.to_string() == id)
                .unwrap();
            let missing: Vec<_> = walked
                .missing
                .iter()
                .map(|reference| {
                    let namespace = id.split('/').next().unwrap_or_default();
                    Value::from(format!(
                        "{} {namespace}/{}",
                        reference.kind.as_str(),
                        reference.name
                    ))
                })
                .collect();
            assert_eq!(
                Value::from(missing),
                entry
                    .get("missing")
                    .cloned()
                    .unwrap_or(Value::Array(vec![])),
                "{id}"
            );
        }
    }
}

#[test]
fn values_and_names_of_every_release_are_as_flux_composes_them() {
    let Some(corpus) = corpus() else { return };
    for (repository, root, expected) in CLUSTERS {
        let (rendering, _) = render(&corpus.join("flux").join(repository), root);
        let index = index(&corpus.join("flux-expected").join(expected));
        for entry in index["helmreleases"].as_array().unwrap() {
            let id = entry["id"].as_str().unwrap();
            let found = rendering
                .releases
                .iter()
                .find(|(other, _)| other.to_string() == id);
            let (_, release) = found.unwrap_or_else(|| panic!("{root} {id}"));
            let spec = release.spec.as_ref().unwrap();
            assert_eq!(release_name(spec).as_str(), entry["releaseName"], "{id}");
            assert_eq!(
                release_namespace(spec).as_str(),
                entry["releaseNamespace"],
                "{id}"
            );
            let wanted = entry
                .get("values")
                .cloned()
                .unwrap_or_else(|| serde_json::json!({}));
            let difference = difference(&json(&release.composed.values), &floats(wanted), "");
            assert_eq!(difference, None, "{root} {id}");
        }
    }
}

/// Where ours differs from theirs. They put nothing in where ours has a placeholder; everything else must be equal.
fn difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    let differ = || Some(format!("{path}:\n  ours   {ours}\n  theirs {theirs}"));
    match (ours, theirs) {
        (Value::String(text), _) if holds_placeholder(text) => {
            let is_same = text_of(theirs) == without_words(text);
            if is_same { None } else { differ() }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut items = ours.iter().zip(theirs).enumerate();
            items
                .find_map(|(at, (ours, theirs))| difference(ours, theirs, &format!("{path}[{at}]")))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let renamed: BTreeMap<String, &Value> = ours
                .iter()
                .map(|(key, value)| (without_words(key), value))
                .collect();
            let keys = renamed.keys().chain(theirs.keys());
            let keys: BTreeSet<&String> = keys.collect();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}.{key}");
                let (ours, theirs) = (renamed.get(key), theirs.get(key));
                match (ours, theirs) {
                    (Some(ours), Some(theirs)) => difference(ours, theirs, &path),
                    // An empty value may be left out by whatever reads it.
                    (Some(ours), None) if is_only_placeholders(ours) => None,
                    _ => Some(format!("{path}: ours {ours:?}, theirs {theirs:?}")),
                }
            })
        }
        _ if ours == theirs => None,
        _ => differ(),
    }
}

/// A scalar as it is written: what is put together of a placeholder is a text, and without it may be something else.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_only_placeholders(value: &Value) -> bool {
    match value {
        Value::String(text) => holds_placeholder(text) && without_words(text).is_empty(),
        Value::Object(map) => map.values().all(is_only_placeholders),
        _ => false,
    }
}

fn without_words(text: &str) -> String {
    let length = placeholder("").len();
    let mut left = text.to_owned();
    while let Some(at) =
        (0..left.len()).find(|at| left.get(*at..*at + length).is_some_and(holds_placeholder))
    {
        left.replace_range(at..at + length, "");
    }
    left
}

/// Skipping work changes no answer: what differs, and what changes without having been rendered.
#[test]
fn a_comparison_finds_the_same_with_and_without_skipping() {
    let Some(corpus) = corpus() else { return };
    for (repository, root, _) in CLUSTERS {
        let files = memory(&corpus.join("flux").join(repository));
        let edited = |(path, text): (&String, &String)| {
            let is_release = path.starts_with("/kubernetes") && text.contains("kind: HelmRelease");
            is_release.then(|| {
                (
                    path.clone(),
                    text.replacen("values:", "values:\n    touched: yes", 1),
                )
            })
        };
        let edits: Vec<_> = files.iter().filter_map(edited).collect();
        let (rendering, _) = render(&corpus.join("flux").join(repository), root);
        let (applied, failed) = (applied_files(&rendering), failed_directories(&rendering));
        let mut shown = 0;
        for (path, text) in edits.into_iter().step_by(20) {
            let mut after = files.clone();
            let is_edited = files[&path] != text;
            after.insert(path.clone(), text);
            let found = compared(&files, &after, &path, root, pair_unit);
            let whole = compared(&files, &after, &path, root, unskipped_pair_unit);
            assert_eq!(found, whole, "{repository} {path}");
            // A file that no object was read from, and one whose release has no values to edit, show nowhere. What a
            // Kustomization that fails would give is not known on either side.
            let is_applied = is_edited && applied.contains(&path);
            let is_unknown = failed.iter().any(|directory| path.starts_with(directory));
            assert!(
                found.is_empty() != is_applied || is_unknown,
                "{root} {path}: {found:?}"
            );
            shown += usize::from(!found.is_empty());
        }
        assert!(
            shown > 0,
            "{repository}: edits that show nowhere prove nothing"
        );
    }
}

/// The files that objects were read from.
fn applied_files(rendering: &Rendering) -> BTreeSet<String> {
    let emitted = rendering.walk.index.emitted();
    let objects = emitted.flat_map(|(_, objects)| objects.iter());
    let places = objects.filter_map(portolan_object::Object::place);
    places.map(|place| place.file.to_string()).collect()
}

/// The directories of Kustomizations that cannot be built.
fn failed_directories(rendering: &Rendering) -> Vec<String> {
    let walked = rendering.walk.kustomizations.values();
    let failed = walked.filter(|walked| walked.is_failed());
    let specs = failed.filter_map(|walked| walked.spec.as_ref().ok());
    specs
        .map(|spec| format!("/{}/", spec.path.trim_matches(['.', '/'])))
        .collect()
}

/// The texts of a repository, by path.
type Files = BTreeMap<String, String>;

fn memory(directory: &Path) -> Files {
    let mut files = Files::new();
    let mut queue = vec![directory.to_owned()];
    while let Some(at) = queue.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                queue.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let inside = path.strip_prefix(directory).unwrap().to_str().unwrap();
                files.insert(format!("/{inside}"), text);
            }
        }
    }
    files
}

/// What differs between two trees, a line each.
fn compared(
    before: &Files,
    after: &Files,
    touched: &str,
    root: &str,
    unit: impl FnOnce(Arc<Cluster>, Arc<Cluster>, Depth) -> Unit<Pair>,
) -> Vec<String> {
    let session = Arc::<Session>::default();
    let first = Lineage::begin();
    let second = first.followed_by([Utf8Path::new(touched)]);
    let [old, new] = [(before, first), (after, second)].map(|(files, lineage)| {
        let memory: Memory = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let files: Arc<dyn Vfs> = Arc::new(Frozen::new(memory).with_lineage(lineage));
        let options = RepoOptions {
            path: Some(root.into()),
            session: Some(Arc::clone(&session)),
            ..Default::default()
        };
        Arc::clone(&Repo::open(&files, &options).unwrap().clusters()[0])
    });
    let report = finish(unit(old, new, Depth::Releases));
    let pair = report.output::<Pair>(&"unit".into()).unwrap();
    let mut lines = Vec::new();
    for (id, walked) in &pair.after.walk.kustomizations {
        let was = pair.before.walk.kustomizations.get(id);
        let objects = |walked: Option<&Walked>| -> Option<Vec<String>> {
            let built = walked?.built.as_ref()?;
            let objects = built.objects.iter();
            Some(
                objects
                    .map(|object| canonical_json(object.node()).unwrap())
                    .collect(),
            )
        };
        if objects(was) != objects(Some(walked)) {
            lines.push(format!("Kustomization {id}"));
        }
    }
    for (id, differences) in &pair.not_rendered.releases {
        if !differences.is_empty() {
            lines.push(format!("HelmRelease {id} {differences:?}"));
        }
    }
    lines
}

fn json(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => Value::from(*value),
        Tree::Int(value) => Value::from(*value as f64),
        Tree::Float(value) => Value::from(*value),
        Tree::Text(text) => Value::from(text.as_str()),
        Tree::List(items) => items.iter().map(json).collect(),
        Tree::Table(table) => table
            .iter()
            .map(|(key, value)| (key.to_string(), json(value)))
            .collect(),
    }
}

/// Helm holds every number as a float.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, floats(value)))
            .collect(),
        other => other,
    }
}
