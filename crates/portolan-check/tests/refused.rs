//! What a server refuses beyond types is found at the line of the mistake, and nowhere in what real tools printed for
//! real charts, overlays and repositories.

use std::path::{Path, PathBuf};

use portolan_check::{Settings, Subject, check};
use portolan_object::{KubeVersion, Object, Origin, Owner, OwnerKind, Place, expand_lists};
use portolan_schema::Catalogue;
use portolan_vfs::Memory;
use portolan_yaml::{Dialect, parse_bytes};

const MISTAKES: &str = include_str!("../../portolan-admission/tests/examples/refused.yaml");
const FILE: &str = "/web.yaml";

/// `object: rule, line: message` for all that is wrong with a text's objects.
fn findings(text: &[u8], catalogue: &Catalogue) -> Vec<(String, &'static str, u32, String)> {
    let nodes = parse_bytes(text, Dialect::Helm).unwrap_or_default();
    let objects: Vec<Object> = nodes
        .into_iter()
        .flat_map(expand_lists)
        .filter_map(|node| {
            let origin = Origin::read(Place::new(FILE, node.at));
            Object::new(node, origin).ok()
        })
        .collect();
    let subject = |object| Subject {
        owner: Owner::new(OwnerKind::Kustomization, "flux-system", "apps"),
        id: Object::id(object).clone(),
        object,
        lacks_variables: false,
    };
    let subjects: Vec<Subject<'_>> = objects.iter().map(subject).collect();
    let files = Memory::from_iter([(FILE, text)]);
    let found = check(&subjects, catalogue, &Settings::default(), &[], &files);
    let line = |place: &Option<Place>| place.as_ref().map_or(0, |place| place.at.line);
    found
        .into_iter()
        .map(|finding| {
            let object = finding.object.as_ref().expect("it is about an object");
            let name = format!("{}/{}", object.gvk.kind, object.name);
            let message = finding.message();
            (name, finding.rule.id, line(&finding.place), message)
        })
        .collect()
}

#[test]
fn a_mistake_is_found_at_its_line() {
    let catalogue = Catalogue::of(KubeVersion::new(1, 34));
    for document in MISTAKES.split("\n---\n") {
        let mut lines = document.lines().enumerate();
        let marked = lines.find(|(_, line)| !line.starts_with('#') && line.contains("#! "));
        let (index, text) = marked.expect("a mark");
        let found = findings(document.as_bytes(), &catalogue);
        let here = found
            .iter()
            .any(|(_, _, line, _)| *line == index as u32 + 1);
        assert!(here, "line {} `{text}`: {found:?}", index + 1);
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

/// What is listed was looked at: a server refuses it too.
#[test]
fn what_real_tools_printed_is_accepted() {
    let Some(corpus) = portolan_testbed::corpus("") else {
        return;
    };
    let catalogue = Catalogue::of(KubeVersion::new(1, 34));
    let mut wrong = Vec::new();
    for part in ["expected/helm", "expected/kustomize", "flux-expected"] {
        for path in files(&corpus.join(part)) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let found = findings(&std::fs::read(&path).expect("a readable file"), &catalogue);
            let ours = |rule: &str| rule.starts_with("admission/") || rule == "reference/inside";
            for (object, rule, _, message) in found {
                if ours(rule) || message.contains("is missing") {
                    wrong.push(format!("{name}: {object}: {rule}: {message}"));
                }
            }
        }
    }
    insta::assert_snapshot!("refused_in_the_corpus", wrong.join("\n"));
}
