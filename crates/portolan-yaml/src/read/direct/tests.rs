//! The direct reader must give the same result as the scanner, parser and composer, wherever it does not give up.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;
use crate::read::compose::Composer;
use crate::read::parser::Parser;

const BOTH: [Dialect; 2] = [Dialect::Helm, Dialect::Kustomize];

/// What the direct way makes of a text; it must be what the long way makes of it, places and styles included.
fn directly(text: &str, dialect: Dialect) -> Option<Node> {
    let source = Source::from_text(text.into()).expect("is not too long");
    let direct = Direct::new(&source, source.start, source.end, 0, dialect);
    let node = direct.and_then(|mut direct| direct.document())?;
    let scanner = Scanner::new(&source, source.start, source.end, 0, dialect);
    let long = Composer::new(Parser::new(scanner), dialect, true).next_document();
    let long = long.unwrap_or_else(|error| panic!("{error} in {text:?}"));
    assert_eq!(
        format!("{:?}", Some(&node)),
        format!("{long:?}"),
        "{text:?}"
    );
    Some(node)
}

#[track_caller]
fn check(text: &str, accepted: bool) {
    for dialect in BOTH {
        let found = directly(text, dialect).is_some();
        assert_eq!(found, accepted, "{dialect:?} {text:?}");
    }
}

#[test]
fn manifests_are_read_directly() {
    check(
        "a: b\nc:\n  d: 1\n  e:\n  - f\n  - g: h\n    i: [j, {k: l}]\n",
        true,
    );
    check("# c\n---\na: 'x' # c\n\n# d\nb: \"y\"\n", true);
    check("a: |\n  text\n  more\nb: >-\n  folded\n  text\n", true);
    check("a: one\n  two\n\n  three\nb:\nc:\n- d\n-\n- - e\n", true);
    check("{\"a\": [1, 2,\n 3], \"b\": {}}\n", true);
    check("a: b\r\nc:\r\n  d: [e,\n f]\r\n", true);
    check("a: é\né: b\n", false);
    check("\"é\": b\nc: é # ü\nd: e\n", true);
}

#[test]
fn what_needs_care_is_left_to_the_long_way() {
    for text in [
        "",
        "a: &b c\n",
        "a: *b\n",
        "a: !!str 1\n",
        "<<: {}\n",
        "\"<<\": {}\n",
        "a: 1\na: 2\n",
        "1: a\n",
        "~: a\n",
        "? a\n: b\n",
        "a:\tb\n",
        "a: b: c\n",
        "a: 'x' y\n",
        "a:\n  b: 1\n c: 2\n",
        "a: {b}\n",
        "[a: b]\n",
        "- a\nb\n",
        "a: 1\n- b\n",
        "%YAML 1.1\n---\na: b\n",
        "a: b\n...\n",
        "a: [b\n",
        "a: 'b\n",
        "a: @b\n",
    ] {
        check(text, false);
    }
    check(&"[".repeat(MAX_DIRECT_DEPTH + 1), false);
    check(&"- ".repeat(MAX_DIRECT_DEPTH + 1), false);
    check(&format!("{}: a\n", "k".repeat(SHORT_KEY)), false);
}

#[test]
fn the_documents_of_a_stream_follow_each_other() {
    let source = Source::from_text("a: 1\n---\nb: 2\n--- # c\nc: 3\n".into()).expect("is short");
    let mut direct =
        Direct::new(&source, 0, source.end, 0, Dialect::Helm).expect("has no bad text");
    let mut places = Vec::new();
    while let Some(node) = direct.document() {
        places.push((node.at.line, direct.rest()));
    }
    assert_eq!(places, [(1, Some((5, 1))), (3, Some((14, 3))), (5, None)]);
}

/// Every text of our own cases and of the shared suite.
#[test]
fn both_ways_agree_on_all_known_texts() {
    let shared = portolan_testbed::corpus("suites/yaml.json");
    let own = include_str!("../../../tests/cases/go.json").to_owned();
    let suites = [
        own,
        shared.map_or_else(
            || "[]".to_owned(),
            |path| std::fs::read_to_string(path).expect("the suite is readable"),
        ),
    ];
    let mut accepted = 0;
    for suite in suites {
        let cases: Vec<Json> = serde_json::from_str(&suite).expect("a suite is JSON");
        for text in cases.iter().filter_map(|case| case.get("input")?.as_str()) {
            accepted += BOTH
                .iter()
                .filter(|dialect| directly(text, **dialect).is_some())
                .count();
        }
    }
    assert!(accepted > 100, "{accepted}");
}

/// A line that fits into a manifest, mostly.
fn line() -> impl Strategy<Value = String> {
    let indent = proptest::sample::select(vec!["", "", "  ", "  ", "    ", " ", "      "]);
    let dash = proptest::sample::select(vec!["", "", "", "- ", "- ", "-", "- - "]);
    let key = proptest::sample::select(vec![
        "a: ", "b: ", "c:", "d/e.f: ", "\"g\": ", "'h': ", "i", "1: ", "yes: ", "", "j k: ", "l:m",
        "\"n\" : ",
    ]);
    let value = proptest::sample::select(vec![
        "",
        "",
        "",
        "x",
        "x y",
        "1",
        "true",
        "~",
        "2001-01-01",
        "\"q\"",
        "'s'",
        "\"\\t\"",
        "\"open",
        "|",
        ">-",
        "|2",
        "[]",
        "{}",
        "[a, b]",
        "[a,",
        "b]",
        "{a: b}",
        "{\"a\":b, c: [d]}",
        "{a}",
        "[a: b]",
        "{a: 2001-01-01 1:2:3}",
        "# c",
        "x # c",
        "x #c",
        "-x",
        "--",
        "x:y",
        ":x",
        "?x",
        "&a x",
        "*a",
        "!t x",
        "é",
        "x\u{85}",
        "x\r",
        "\tx",
        "x\t",
        "<<",
        "---",
        "...",
        "%x",
        "@",
        ",",
        "]",
        "}",
        "{a: b}: c",
        "'' 'x'",
        "x:",
        "- x",
        "\u{feff}",
        "😀",
    ]);
    (indent, dash, key, value)
        .prop_map(|(indent, dash, key, value)| format!("{indent}{dash}{key}{value}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn both_ways_agree_on_any_lines(lines in proptest::collection::vec(line(), 1..9)) {
        let text = lines.join("\n");
        for dialect in BOTH {
            directly(&text, dialect);
        }
    }
}
