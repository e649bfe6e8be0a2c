//! The shared suite: substitutions answered by Flux's own library.

use std::collections::BTreeMap;

use portolan_envsubst::{Unset, substitute};
use portolan_testbed::corpus;
use serde_json::Value;

#[test]
fn every_case_of_the_suite_is_answered_as_flux_does() {
    let Some(suite) = corpus("suites/envsubst.json") else {
        return;
    };
    let text = std::fs::read_to_string(suite).unwrap();
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
    let unset = if case["strict"].as_bool()? {
        Unset::Refused
    } else {
        Unset::Empty
    };
    let answer = substitute(input, unset, |name| vars.get(name).copied());
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
