//! Real overlays of public projects give the same bytes as `kubectl kustomize`, also when built side by side.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails, and says why"
)]

use std::path::Path;
use std::thread;

use camino::Utf8Path;
use portolan_kustomize::{Options, build, to_yaml};
use portolan_vfs::Disk;
use serde_json::Value;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");

/// The overlays and what they must build to; none when the corpus is not there.
fn overlays() -> Vec<(String, String)> {
    let Some(list) = portolan_testbed::corpus("cases-kustomize.json") else {
        return Vec::new();
    };
    let list = std::fs::read_to_string(list).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&list).unwrap();
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    cases
        .iter()
        .map(|case| (text(case, "dir"), text(case, "expected")))
        .collect()
}

fn render(directory: &str) -> String {
    let root = Utf8Path::new(CORPUS)
        .join(directory)
        .canonicalize_utf8()
        .unwrap();
    let set = build(&root, &Disk::machine(), &Options::default());
    let set = set.unwrap_or_else(|error| panic!("{directory}: {error}: {:?}", &error));
    to_yaml(&set).unwrap()
}

#[test]
fn every_overlay_gives_the_recorded_bytes() {
    let overlays = overlays();
    let chunk = overlays.len().div_ceil(4).max(1);
    let wrong: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = overlays
            .chunks(chunk)
            .map(|part| scope.spawn(|| check(part)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert!(
        wrong.is_empty(),
        "{} of {} differ: {wrong:?}",
        wrong.len(),
        overlays.len()
    );
}

fn check(overlays: &[(String, String)]) -> Vec<String> {
    let differs = |(directory, expected): &&(String, String)| {
        let expected = std::fs::read_to_string(Path::new(CORPUS).join(expected)).unwrap();
        render(directory) != expected
    };
    overlays
        .iter()
        .filter(differs)
        .map(|(directory, _)| directory.clone())
        .collect()
}

#[test]
fn eight_builds_at_once_give_the_bytes_of_one() {
    let overlays: Vec<_> = overlays().into_iter().step_by(9).collect();
    let alone: Vec<String> = overlays
        .iter()
        .map(|(directory, _)| render(directory))
        .collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for ((directory, _), alone) in overlays.iter().zip(&alone) {
                    assert_eq!(render(directory), *alone, "{directory}");
                }
            });
        }
    });
}
