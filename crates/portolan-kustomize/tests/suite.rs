//! kustomize's own tests as data: the same bytes where it builds, a refusal where it refuses.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use camino::Utf8Path;
use portolan_kustomize::{LoadRestrictor, Options, build, to_yaml};
use portolan_testbed::corpus;
use portolan_vfs::{Memory, clean};
use serde_json::Value;

fn run(case: &Value) -> Result<String, String> {
    let mut files = Memory::new();
    for (path, content) in case["files"].as_object().unwrap() {
        files.insert(Utf8Path::new("/case").join(path), content.as_str().unwrap());
    }
    let mut options = Options::default();
    if case["args"]
        .as_array()
        .is_some_and(|args| args.iter().any(|arg| arg == "LoadRestrictionsNone"))
    {
        options.load_restrictor = LoadRestrictor::None;
    }
    let root = clean(&Utf8Path::new("/case").join(case["path"].as_str().unwrap()));
    let set = build(&root, &files, &options).map_err(|error| error.to_string())?;
    to_yaml(&set).map_err(|error| error.to_string())
}

#[test]
fn every_case_of_kustomizes_own_tests_holds() {
    let Some(suite) = corpus("suites/kustomize.json") else {
        return;
    };
    let suite = std::fs::read_to_string(suite).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&suite).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let is_right = match (run(case), case["expected"].as_str()) {
            (Ok(output), Some(expected)) => output == expected,
            (Err(_), None) => true,
            _ => false,
        };
        if !is_right {
            wrong.push(case["id"].as_str().unwrap());
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ: {wrong:?}",
        wrong.len(),
        cases.len()
    );
}
