//! One word for one thing: a public type name stands in one library only, but for those that are listed here with the
//! reason why they stand in several.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates without a public interface, or for tests alone.
const NOT_LIBRARIES: [&str; 4] = ["portolan", "portolan-fuzz", "portolan-testbed", "xtask"];

/// Names in several crates, by the reason.
const SHARED: [(&str, &[&str]); 7] = [
    (
        "the word of the tool or standard that each crate copies, which differs between them",
        &[
            "Chart",
            "Dependency",
            "Descriptor",
            "Fetch",
            "GitRef",
            "Gvk",
            "Image",
            "List",
            "Lock",
            "LockError",
            "Manifest",
            "Map",
            "Metadata",
            "Mirror",
            "Node",
            "Object",
            "OciRef",
            "Origin",
            "Platform",
            "Profile",
            "Release",
            "Repository",
            "Resource",
            "ResourceSet",
            "Table",
            "Time",
            "Tree",
            "Value",
        ],
    ),
    (
        "what each library calls its own options, limits, errors and results; named with the crate where two meet",
        &[
            "Access",
            "Answer",
            "ArchiveError",
            "BuildError",
            "Counts",
            "Error",
            "ErrorKind",
            "Failure",
            "Format",
            "Limits",
            "Options",
            "Problem",
            "Query",
            "Question",
            "Refusal",
            "Report",
            "ScanError",
            "ScanOptions",
            "Settings",
            "SettingsError",
            "SnapshotError",
            "StoreError",
            "Verdict",
            "Wanted",
            "WriteError",
        ],
    ),
    (
        "one model per job: a rollout, a store, an image layout, a shipped artifact, a run and a diff each have theirs, and no crate uses two",
        &[
            "Artifact",
            "Batch",
            "Built",
            "Cache",
            "Change",
            "ChangeKind",
            "Clock",
            "Cluster",
            "Collected",
            "Effect",
            "Entry",
            "Event",
            "Evidence",
            "Fault",
            "Frozen",
            "Index",
            "Key",
            "Level",
            "Memory",
            "Operator",
            "Outcome",
            "Phase",
            "Plan",
            "Position",
            "Record",
            "Revision",
            "Root",
            "Run",
            "Secret",
            "Snapshot",
            "Source",
            "Sources",
            "Span",
            "Stage",
            "Stamp",
            "State",
            "Status",
            "Step",
            "Store",
            "Watch",
        ],
    ),
    (
        "the audit's and the judge's own, richer than the one of portolan-object and made into it where they are printed",
        &["Finding", "Owner", "Rule", "Subject"],
    ),
    (
        "a place in a template, and a cause in an error of one: positions of their own, without files",
        &["Cause", "Emitter", "Place"],
    ),
    (
        "the same type, named again by the crate that hands it out",
        &["ChartArchive", "Digest"],
    ),
    (
        "what a fleet calls the parts of a book, of a run and of a server, as its users do; the crate that has the same word for a \
         render, a rollout, a build or its own clock never meets it",
        &[
            "Command",
            "Content",
            "Decision",
            "FileKind",
            "Gate",
            "Host",
            "InputKind",
            "JournalError",
            "Observed",
            "Program",
            "Progress",
            "RunState",
            "Unreachable",
            "Work",
        ],
    ),
];

#[test]
fn a_public_type_name_stands_in_one_library_or_has_a_reason() {
    let shared: BTreeSet<&str> = SHARED
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let several: BTreeMap<String, BTreeSet<String>> = public_types()
        .into_iter()
        .filter(|(_, crates)| crates.len() > 1)
        .collect();
    let new: Vec<String> = several
        .iter()
        .filter(|(name, _)| !shared.contains(name.as_str()))
        .map(|(name, crates)| format!("{name}: {crates:?}"))
        .collect();
    assert!(
        new.is_empty(),
        "these names stand in several libraries; give one of them another name, or a reason here:\n{}",
        new.join("\n")
    );
    let gone: Vec<&&str> = shared
        .iter()
        .filter(|name| !several.contains_key(**name))
        .collect();
    assert!(
        gone.is_empty(),
        "these stand in one library only by now: {gone:?}"
    );
}

/// The libraries that have each public type.
fn public_types() -> BTreeMap<String, BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for library in fs::read_dir(crates)
        .expect("the crates are there")
        .flatten()
    {
        let name = library.file_name().to_string_lossy().into_owned();
        if NOT_LIBRARIES.contains(&name.as_str()) {
            continue;
        }
        for file in rust_files(&library.path().join("src")) {
            let text = fs::read_to_string(&file).expect("a source file can be read");
            // The names of messages are a protocol's, and the same message may be spoken by several crates.
            if text.starts_with("// This file is @generated") {
                continue;
            }
            for declared in text.lines().filter_map(declared_type) {
                types.entry(declared).or_default().insert(name.clone());
            }
        }
    }
    types
}

/// The type that a line at the beginning of a declaration names.
fn declared_type(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric())
        .unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
