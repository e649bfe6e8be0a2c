//! The shared suite: substitutions answered by Flux's own library.

use std::collections::BTreeMap;
use std::path::Path;

use portolan_envsubst::substitute;
use serde_json::Value;

const SUITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/suites/envsubst.json"
);

#[test]
fn every_case_of_the_suite_is_answered_as_flux_does() {
    if !Path::new(SUITE).exists() {
        eprintln!("skipped: the corpus is not at {SUITE}");
        return;
    }
    let text = std::fs::read_to_string(SUITE).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let failures: Vec<String> = cases.iter().filter_map(check).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(case: &Value) -> Option<String> {
    let vars: BTreeMap<&str, &str> = case["vars"]
        .as_object()?
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    let input = case["input"].as_str()?;
    let strict = case["strict"].as_bool()?;
    let answer = substitute(input, strict, |name| vars.get(name).copied());
    let expected = match case["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(case["output"].as_str()?.to_owned()),
    };
    let answer = answer.map_err(|error| error.to_string());
    (answer != expected).then(|| {
        format!(
            "{}: {input:?}\n  expected {expected:?}\n  answered {answer:?}",
            case["id"]
        )
    })
}
