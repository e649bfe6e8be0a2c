//! Small repositories beside Flux itself: `flux-oracle` (`testbed/flux-oracle`) asks the Go libraries that Flux is made of.
//!
//! A case is a file in `oracle/`: a line that says what it shows, then files, each below a line `-- path --`. The cluster
//! is bootstrapped from `cluster`. Every Kustomization must fail here when it fails there, and give the same objects in
//! the same order otherwise; the values that a release hands to its chart must be the same too.

mod portolan;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan::repository::repository;
use portolan::{Answer, portolan_in};
use portolan_testbed::has_program;
use portolan_yaml::{Dialect, Node, from_json, parse, to_json};
use tempfile::TempDir;

/// How many cases are compared at once; most of the time goes into starting the oracle.
const THREADS: usize = 4;

/// Objects as canonical JSON, by the Kustomization or HelmRelease that they belong to.
type Owned = BTreeMap<String, Vec<String>>;

#[test]
fn kustomizations_and_releases_are_built_as_flux_builds_them() {
    if !has_program("flux-oracle", "-h") {
        return;
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("the cases are there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    names.sort();
    let next = AtomicUsize::new(0);
    let differences = Mutex::new(Vec::new());
    let work = || {
        while let Some(path) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = std::fs::read_to_string(path).expect("a case");
            let name = path.file_stem().expect("a name").to_string_lossy();
            let found = compare(&text);
            let mut differences = differences.lock().expect("no thread panicked");
            differences.extend(found.iter().map(|text| format!("{name}: {text}")));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let differences = differences.into_inner().expect("no thread panicked");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// What differs between the two in one case.
fn compare(text: &str) -> Vec<String> {
    let (case, root) = unpack(text);
    let theirs = oracle(&root);
    let directory = root.path().to_str().expect("UTF-8");
    let args = "build all --path cluster --repo . --offline --no-owner-labels --show-secrets --provenance --missing strict -v";
    let ours = portolan_in(directory, &args.split(' ').collect::<Vec<_>>());
    let mut differences = kustomizations(&theirs, &ours);
    differences.extend(releases_differ(&theirs, &ours));
    let case = case.trim();
    differences
        .into_iter()
        .map(|difference| format!("{case}\n{difference}"))
        .collect()
}

fn unpack(text: &str) -> (String, TempDir) {
    let mut sections = text.split("\n-- ");
    let case = sections.next().unwrap_or_default().to_owned();
    let files: Vec<(&str, String)> = sections
        .map(|section| {
            let (path, content) = section.split_once(" --\n").expect("a path, then its text");
            (path, format!("{content}\n"))
        })
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    (case, repository(&files))
}

fn oracle(root: &TempDir) -> Node {
    let answer = Command::new("flux-oracle")
        .args(["-strict", "-root", "cluster", "-repo"])
        .arg(root.path())
        .output()
        .expect("it was there a moment ago");
    let complaint = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{complaint}");
    from_json(&String::from_utf8(answer.stdout).expect("UTF-8")).expect("JSON")
}

/// Whether an error is told about an owner, alone or in the list of those that share its cause.
fn is_refused(stderr: &str, owner: &str) -> bool {
    let (alone, listed) = (format!("error: {owner}: "), format!("  {owner}: "));
    let mut is_error = false;
    stderr.lines().any(|line| {
        if !line.starts_with(' ') {
            is_error = line.starts_with("error: ");
        }
        line.starts_with(&alone) || is_error && line.starts_with(&listed)
    })
}

fn kustomizations(theirs: &Node, ours: &Answer) -> Vec<String> {
    let objects = owned(&ours.stdout);
    let mut differences = Vec::new();
    let built = theirs
        .get("kustomizations")
        .and_then(Node::as_map)
        .expect("a map");
    for entry in built {
        let owner = format!("Kustomization {}", entry.key.as_str());
        let complains = is_refused(&ours.stderr, &owner);
        let fails = entry.value.get("status").and_then(Node::as_str) != Some("ok");
        if fails != complains {
            differences.push(format!(
                "{owner} {}\nthey say: {}\nwe say: {}",
                if fails {
                    "should fail"
                } else {
                    "should not fail"
                },
                entry
                    .value
                    .get("error")
                    .and_then(Node::as_str)
                    .unwrap_or_default(),
                ours.stderr
            ));
        }
        let has_missing = entry.value.get("missing").is_some();
        if !fails || has_missing {
            let wanted = entry
                .value
                .get("objects")
                .and_then(Node::as_list)
                .expect("a list");
            let wanted: Vec<String> = wanted.iter().map(canonical).collect();
            let got = objects.get(&owner).cloned().unwrap_or_default();
            differences.extend(objects_differ(&owner, &wanted, &got));
        }
    }
    differences
}

fn objects_differ(owner: &str, wanted: &[String], got: &[String]) -> Option<String> {
    if wanted == got {
        return None;
    }
    let only = |these: &[String], those: &[String]| {
        let lines = these.iter().filter(|object| !those.contains(object));
        lines.cloned().collect::<Vec<_>>().join("\n  ")
    };
    Some(format!(
        "{owner}: the objects differ, or their order\ntheirs only:\n  {}\nours only:\n  {}",
        only(wanted, got),
        only(got, wanted)
    ))
}

/// The charts of the cases print their values into a ConfigMap.
fn releases_differ(theirs: &Node, ours: &Answer) -> Vec<String> {
    let objects = owned(&ours.stdout);
    let releases = theirs.get("helmReleases").and_then(Node::as_map);
    let mut differences = Vec::new();
    for entry in releases.into_iter().flatten() {
        let owner = format!("HelmRelease {}", entry.key.as_str());
        let wanted = entry.value.get("values").map(canonical).unwrap_or_default();
        let got = objects.get(&owner).and_then(|objects| objects.first());
        let got = got.map(|object| printed_values(object)).unwrap_or_default();
        if wanted != got {
            differences.push(format!(
                "{owner}: the values differ\ntheirs {wanted}\nours {got}\n{}",
                ours.stderr
            ));
        }
        let fails = entry.value.get("error").is_some();
        if fails != is_refused(&ours.stderr, &owner) {
            differences.push(format!(
                "{owner}: one of the two complains\n{}",
                ours.stderr
            ));
        }
    }
    differences
}

fn printed_values(object: &str) -> String {
    let object = from_json(object).expect("JSON");
    let values = object.at_path(&["data", "values"]).and_then(Node::as_str);
    let read = parse(values.unwrap_or_default().to_owned(), Dialect::Helm).expect("YAML");
    read.first().map_or_else(|| "{}".to_owned(), canonical)
}

/// Printed documents by the owner that the comment before each names.
fn owned(stdout: &str) -> Owned {
    let mut owned = Owned::new();
    for document in stdout.split("---\n# ").skip(1) {
        let (owner, text) = document
            .split_once('\n')
            .expect("a comment, then the object");
        let read = parse(text.to_owned(), Dialect::Helm).expect("YAML");
        let objects = owned.entry(owner.to_owned()).or_default();
        objects.extend(read.iter().map(canonical));
    }
    owned
}

fn canonical(node: &Node) -> String {
    to_json(node).expect("it came from JSON or YAML")
}
