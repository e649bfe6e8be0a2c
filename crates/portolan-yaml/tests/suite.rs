//! Go's own answers for thousands of texts, from the shared corpus: reading, printing and refusing alike.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "the helpers of a test report by panics and on stderr"
)]

use std::collections::BTreeMap;
use std::fmt::Write;

use portolan_yaml::json::{Numbers, to_json_with};
use portolan_yaml::{
    Dialect, Node, outline, parse_bytes, parse_one_bytes, parse_one_strict, to_json,
    write_kustomize, write_v2, write_v3_pretty,
};
use serde_json::Value;

/// Results by field: how many were tried, and what differs.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, (usize, Vec<String>)>);

impl Tally {
    fn compare(&mut self, field: &'static str, id: &str, expected: &str, actual: Option<&str>) {
        let same = actual == Some(expected);
        self.note(field, id, same, || {
            format!("expected {expected:?}\n     got {actual:?}")
        });
    }

    fn note(&mut self, field: &'static str, id: &str, same: bool, why: impl FnOnce() -> String) {
        let entry = self.0.entry(field).or_default();
        entry.0 += 1;
        if !same {
            entry.1.push(format!("{field} {id}\n{}", why()));
        }
    }

    fn require(&self, field: &str, share: f64) {
        let Some((tried, different)) = self.0.get(field) else {
            panic!("no case has {field}");
        };
        let good = (tried - different.len()) as f64 / *tried as f64;
        let mut list = String::new();
        for case in different.iter().take(40) {
            let _ = writeln!(list, "{case}");
        }
        eprintln!("{field}: {} of {tried} differ\n{list}", different.len());
        assert!(good >= share, "{field}: only {:.2} % equal", good * 100.0);
    }
}

fn text<'c>(case: &'c Value, field: &str) -> Option<&'c str> {
    case.get(field).and_then(Value::as_str)
}

fn unstable(case: &Value, field: &str) -> bool {
    let list = case.get("unstable").and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|name| name == field))
}

fn input(case: &Value) -> Vec<u8> {
    match text(case, "input") {
        Some(input) => input.as_bytes().to_vec(),
        None => base64(text(case, "input_b64").expect("a case has an input")),
    }
}

fn base64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u32;
    let mut bytes = Vec::new();
    for (index, symbol) in text.bytes().filter(|byte| *byte != b'=').enumerate() {
        let value = alphabet
            .iter()
            .position(|known| *known == symbol)
            .expect("base64");
        bits = bits << 6 | value as u32;
        if index % 4 != 0 {
            bytes.push((bits >> (6 - 2 * (index % 4))) as u8);
        }
    }
    bytes
}

/// Our own cases, of which all must be equal, and the shared corpus, of which a share must be.
///
/// `YAML_SUITE` names a file to try instead of the shared one, with answers freshly made by `bench/go-yaml`.
fn suites(share: f64) -> Vec<(Vec<Value>, f64)> {
    let own = serde_json::from_str(include_str!("cases/go.json")).expect("our cases are JSON");
    let mut suites = vec![(own, 1.0)];
    let given = std::env::var_os("YAML_SUITE").map(std::path::PathBuf::from);
    if let Some(path) = given.or_else(|| portolan_testbed::corpus("suites/yaml.json")) {
        let text = std::fs::read_to_string(path).expect("a suite is readable");
        suites.push((serde_json::from_str(&text).expect("a suite is JSON"), share));
    }
    suites
}

#[test]
fn helm_reads_and_prints_as_go_does() {
    for (cases, share) in suites(0.998) {
        let mut tally = Tally::default();
        for case in &cases {
            helm_case(&mut tally, case);
        }
        for field in ["read2json", "write2", "pretty2", "tojson2", "strict2_error"] {
            tally.require(field, share);
        }
    }
}

fn helm_case(tally: &mut Tally, case: &Value) {
    let id = text(case, "id").expect("a case has an id");
    let group = id.split('/').next().unwrap_or_default();
    let input = input(case);
    let node = parse_one_bytes(&input, Dialect::Helm);
    if text(case, "read2json_error").is_some() {
        let json = node.as_ref().ok().and_then(|node| to_json(node).ok());
        tally.note("read2json", id, json.is_none(), || {
            format!("not refused: {input:?} {json:?}")
        });
        return;
    }
    let Ok(node) = node else {
        tally.note("read2json", id, false, || {
            format!("refused: {node:?} {:?}", String::from_utf8_lossy(&input))
        });
        return;
    };
    if let Some(expected) = text(case, "read2json") {
        tally.compare("read2json", id, expected, to_json(&node).ok().as_deref());
        let strict = std::str::from_utf8(&input).map(|text| parse_one_strict(text, Dialect::Helm));
        if let Ok(strict) = strict {
            let refused = text(case, "strict2_error").is_some();
            tally.note("strict2_error", id, strict.is_err() == refused, || {
                format!("refused: {refused}")
            });
        }
        if group != "real" && !unstable(case, "tojson2") {
            let expected = text(case, "tojson2").unwrap_or(expected);
            tally.compare(
                "tojson2",
                id,
                expected,
                to_json_with(&node, Numbers::Float64).ok().as_deref(),
            );
        }
    }
    if text(case, "write2_error").is_some() {
        let printed = write_v2(&node);
        tally.note("write2", id, printed.is_err(), || {
            format!("not refused: {printed:?}")
        });
    }
    if let Some(expected) = text(case, "write2") {
        tally.compare("write2", id, expected, write_v2(&node).ok().as_deref());
        if !["real", "damaged", "comment"].contains(&group) && !unstable(case, "pretty2") {
            let expected = text(case, "pretty2").unwrap_or(expected);
            tally.compare(
                "pretty2",
                id,
                expected,
                write_v3_pretty(&node).ok().as_deref(),
            );
        }
    }
}

#[test]
fn kustomize_reads_and_prints_as_go_does() {
    for (cases, share) in suites(0.998) {
        let mut tally = Tally::default();
        for case in &cases {
            kustomize_case(&mut tally, case);
        }
        tally.require("asyaml3", share);
    }
}

fn kustomize_case(tally: &mut Tally, case: &Value) {
    let id = text(case, "id").expect("a case has an id");
    let input = input(case);
    let nodes = parse_bytes(&input, Dialect::Kustomize);
    let printed = nodes
        .as_ref()
        .map_err(ToString::to_string)
        .and_then(|nodes| print_all(nodes));
    if let Some(expected) = text(case, "asyaml3") {
        tally.note("asyaml3", id, printed.as_deref() == Ok(expected), || {
            format!(
                "input {:?}\nexpected {expected:?}\n     got {printed:?}",
                String::from_utf8_lossy(&input)
            )
        });
    } else if text(case, "asyaml3_error").is_some() || text(case, "kyaml_error").is_some() {
        tally.note("asyaml3", id, printed.is_err(), || {
            format!(
                "not refused: {printed:?} {:?} {:?} {:?}",
                String::from_utf8_lossy(&input),
                text(case, "asyaml3_error"),
                text(case, "kyaml_error")
            )
        });
    }
}

fn print_all(nodes: &[Node]) -> Result<String, String> {
    let printed: Result<Vec<String>, _> = nodes.iter().map(write_kustomize).collect();
    printed
        .map(|documents| documents.join("---\n"))
        .map_err(|error| error.to_string())
}

#[test]
fn nodes_have_the_places_tags_and_styles_of_go() {
    for (cases, share) in suites(0.99) {
        let mut tally = Tally::default();
        for case in &cases {
            outline_case(&mut tally, case);
        }
        tally.require("v3node", share);
    }
}

fn outline_case(tally: &mut Tally, case: &Value) {
    let id = text(case, "id").expect("a case has an id");
    let (expected, error) = (text(case, "v3node"), text(case, "v3node_error"));
    if expected.is_none() && error.is_none() {
        return;
    }
    let expected = expected.unwrap_or_default();
    let found = outline(&input(case));
    let same = found.lines == expected && found.error.is_some() == error.is_some();
    tally.note("v3node", id, same, || {
        format!("expected {expected}{error:?}\n     got {found:?}")
    });
}

/// Not only the refusal but also the words and the line, which templates show (`fromYaml`).
#[test]
fn refusals_use_the_words_of_go() {
    for (cases, share) in suites(0.99) {
        let mut tally = Tally::default();
        for case in &cases {
            words_case(&mut tally, case);
        }
        tally.require("read2json_error", share);
        tally.require("v3node_error", share);
    }
}

fn words_case(tally: &mut Tally, case: &Value) {
    let id = text(case, "id").expect("a case has an id");
    if let Some(expected) = text(case, "read2json_error") {
        let message = match parse_one_bytes(&input(case), Dialect::Helm) {
            Err(errors) => Some(errors.first().go_message()),
            Ok(node) => to_json(&node).err().map(|error| error.to_string()),
        };
        tally.compare("read2json_error", id, expected, message.as_deref());
    }
    if let Some(expected) = text(case, "v3node_error") {
        let message = outline(&input(case)).error.map(|error| error.go_message());
        tally.compare("v3node_error", id, expected, message.as_deref());
    }
}
